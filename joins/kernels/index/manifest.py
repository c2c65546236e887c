"""The manifest of an index version: written last, so the version is usable when it exists."""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from joins.kernels.changelog.changes import Progress
from joins.kernels.durable import sync
from joins.kernels.index.segment import StoredFile, damaged, store
from joins.plan.errors import IndexBuildError

FORMAT_VERSION = 2  # of the manifest and of the files; any other one is built anew


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment of a version.

    Attributes:
        name: of its files, without their suffixes.
        rows: number of rows, hidden ones included.
        files: of the segment itself.
        hidden: the bitmap of this version over the segment.
        visible: number of rows that `hidden` leaves.
    """

    name: str
    rows: int
    files: tuple[StoredFile, ...]
    hidden: StoredFile
    visible: int

    @property
    def all_files(self) -> tuple[StoredFile, ...]:
        return (*self.files, self.hidden)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a version consists of, oldest segment first."""

    version: int
    segments: tuple[SegmentEntry, ...]
    progress: Progress


def manifest_path(directory: Path, version: int) -> Path:
    return directory / f"v{version}.json"


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Make the version usable: its files' names become durable first, then the manifest."""
    sync(directory)
    marks = [[*key, offset] for key, offset in sorted(manifest.progress.watermarks.items())]
    body = json.dumps(
        {
            "format": FORMAT_VERSION,
            "version": manifest.version,
            "segments": [_segment_json(entry) for entry in manifest.segments],
            "watermarks": marks,
            "floor": sorted([at, *position] for at, position in manifest.progress.floor.items()),
        }
    )
    text = json.dumps({"crc": zlib.crc32(body.encode()), "body": body}).encode()

    def write(sink: BinaryIO) -> None:
        sink.write(text)

    store(manifest_path(directory, manifest.version), write)
    sync(directory)


def read_manifest(directory: Path, version: int) -> Manifest:
    """The manifest of `version`, its files present in their full size.

    Raises:
        IndexBuildError: there is none, it is damaged, or a file is missing or of another size.
    """
    path = manifest_path(directory, version)
    try:
        outer = json.loads(path.read_bytes())
        body = outer["body"]
        if zlib.crc32(body.encode()) != outer["crc"]:
            raise damaged(path, "its checksum differs")
        content = json.loads(body)
        if content["format"] != FORMAT_VERSION:
            raise damaged(path, f"format {content['format']} in place of {FORMAT_VERSION}")
        manifest = _manifest(content)
    except FileNotFoundError as error:
        raise IndexBuildError(
            f'index version {version} is not in "{directory}"',
            hint="Build the index of this version from the changelog.",
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, str(error)) from error
    for entry in manifest.segments:
        for file in entry.all_files:
            _check_size(directory, file)
    return manifest


def _check_size(directory: Path, file: StoredFile) -> None:
    path = directory / file.name
    try:
        size = path.stat().st_size
    except OSError as error:
        raise damaged(path, str(error)) from error
    if size != file.size:
        raise damaged(path, f"{size} bytes in place of {file.size}")


def _segment_json(entry: SegmentEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "rows": entry.rows,
        "visible": entry.visible,
        "files": [_file_json(file) for file in entry.files],
        "hidden": _file_json(entry.hidden),
    }


def _file_json(file: StoredFile) -> list[Any]:
    return [file.name, file.size, file.checksum]


def _manifest(content: dict[str, Any]) -> Manifest:
    segments = tuple(
        SegmentEntry(
            name=item["name"],
            rows=item["rows"],
            files=tuple(StoredFile(*file) for file in item["files"]),
            hidden=StoredFile(*item["hidden"]),
            visible=item["visible"],
        )
        for item in content["segments"]
    )
    marks = {(part, gen): offset for part, gen, offset in content["watermarks"]}
    floor = {at: (e, f, p, r) for at, e, f, p, r in content.get("floor", ())}
    return Manifest(content["version"], segments, Progress(marks, floor))
