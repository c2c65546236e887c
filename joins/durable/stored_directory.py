"""Restores a job's directory from its store, and hands the job's files over to a new runner."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from joins.durable.stored import (
    CHECKPOINT,
    CLAIMS,
    COMPLETE,
    PLAN,
    PLANS,
    REQUESTS,
    StoredFiles,
    claim_content,
    is_shared,
    write_here,
)
from joins.kernels.table_path import ObjectPath
from joins.plan.errors import CheckpointError

_AT_ONCE = 16
_MOST_PARTS = 64
_CLOCK_S = 0.02  # how far a file system's clock may be behind
_CLAIMS_KEPT = 100  # more than runners that start at the same time
_REPLACED = f"{CHECKPOINT}/leases/"  # shared, and a new content may be as long as the old one
_GROWS = re.compile(r"\.(rows|places|times)-\d+$")
_STORED = (CHECKPOINT, REQUESTS, PLANS)
_SUFFIXES = (".json", ".jsonl")
_ONLY_HERE = tuple(f"{CHECKPOINT}/{each}" for each in ("epochs/", "failpoints/", "spark/"))
_AREA, _SHARED, _PARTS = "epoch-", "shared", "parts"
_A = TypeVar("_A")
_B = TypeVar("_B")


@dataclass(frozen=True, slots=True)
class _Part:
    offset: int
    epoch: int
    place: ObjectPath


@dataclass(slots=True)
class _Listing:
    """What a store has of a job: shared files by name, areas by epoch, parts by file."""

    shared: dict[str, ObjectPath] = field(default_factory=dict)
    areas: dict[int, dict[str, ObjectPath]] = field(default_factory=dict)
    parts: dict[str, list[_Part]] = field(default_factory=dict)

    @classmethod
    def of(cls, place: ObjectPath) -> "_Listing":
        listing, prefix = cls(), len(str(place)) + 1
        for stored in place.below():
            try:
                listing._take(str(stored)[prefix:], stored)
            except ValueError as exc:
                raise CheckpointError(
                    f'object "{stored}" is none of a job: {exc}',
                    hint="It was put there from outside; remove it.",
                ) from exc
        return listing

    def _take(self, name: str, stored: ObjectPath) -> None:
        area, _, file = name.partition("/")
        if area == _PARTS:
            file, _, numbers = file.rpartition("/")
            offset, _, epoch = numbers.partition("-")
            self.parts.setdefault(file, []).append(_Part(int(offset), int(epoch), stored))
        elif area.startswith(_AREA):
            self.areas.setdefault(int(area.removeprefix(_AREA)), {})[file] = stored
        if ".." in file.split("/") or not (
            is_shared(file) if area == _SHARED else file.startswith((f"{CHECKPOINT}/", COMPLETE))
        ):
            raise ValueError("its name is none that a runner gives")
        if area == _SHARED:
            self.shared[file] = stored

    def claims(self) -> list[int]:
        return _numbers(name for name in self.shared if name.startswith(f"{CLAIMS}/"))

    def newest_area(self) -> int | None:
        whole = (epoch for epoch, files in self.areas.items() if COMPLETE in files)
        return max(whole, default=None)


def restore(files: StoredFiles) -> bool:
    """Make the directory equal to the store, unless the newest runner has run in it.

    True if the directory was another runner's: what exists only here is from an earlier runner.
    After an OSError of the store or the disk, call again.
    """
    began_s = time.time()
    listing = _Listing.of(files.place)
    return _restored(files, listing, max(listing.claims(), default=0), began_s)


def take_over(files: StoredFiles, above: int) -> None:
    """Claim the next epoch above `above`, restore the directory, and fill the epoch's area.

    The claim comes first: what older runners put before it is read, and what they put later is not
    needed. The directory gets the claim last, when it is complete. The runner holds the directory's
    lock; OSError as `restore`.
    """
    began_s = time.time()
    newest, content = _claim(files, above)
    listing = _Listing.of(files.place)
    assert files.epoch is not None
    _restored(files, listing, newest, began_s)
    _put_all(files, listing)
    write_here(_made(files.directory / CLAIMS / f"{files.epoch}.json"), content)
    _clear_up(files, listing)


def _claim(files: StoredFiles, above: int) -> tuple[int, bytes]:
    """Give `files` an epoch; returns the newest earlier epoch in the store, and the claim."""
    claims = files.shared / CLAIMS
    there = _numbers(each.name for each in claims.iterdir())
    content = json.dumps({"format_version": 1, **claim_content()}, separators=(",", ":")).encode()
    epoch = max([above, *there, *_claims_here(files.directory)]) + 1
    while not (claims / f"{epoch}.json").create(content):
        epoch += 1
        there.append(epoch - 1)
    files.epoch = epoch
    return max(there, default=0), content


def _claims_here(directory: Path) -> list[int]:
    claims = directory / CLAIMS
    return _numbers(path.name for path in claims.iterdir()) if claims.is_dir() else []


def _numbers(names: Iterable[str]) -> list[int]:
    stems = (name.rpartition("/")[2].removesuffix(".json") for name in names)
    return [int(stem) for stem in stems if stem.isdecimal()]


def _restored(files: StoredFiles, listing: _Listing, newest: int, began_s: float) -> bool:
    base = listing.newest_area()
    if base is None or newest in _claims_here(files.directory):
        _fetch(files, {n: p for n, p in _unclaimed(listing) if not (files.directory / n).exists()})
        return False
    area = {name: place for name, place in listing.areas[base].items() if name != COMPLETE}
    _drop_others(files.directory, {*listing.shared, *area, *listing.parts}, before_s=began_s)
    _fetch(files, area | {n: p for n, p in _unclaimed(listing) if not _is_here(files, n, p)})
    for name, parts in listing.parts.items():
        write_here(_made(files.directory / name), _whole(parts))
    return True


def _unclaimed(listing: _Listing) -> Iterator[tuple[str, ObjectPath]]:
    return ((n, p) for n, p in listing.shared.items() if not n.startswith(f"{CLAIMS}/"))


def _is_here(files: StoredFiles, name: str, place: ObjectPath) -> bool:
    if name.startswith(_REPLACED):
        return False
    try:
        return (files.directory / name).stat().st_size == place.stat().st_size
    except FileNotFoundError:
        return False


def _fetch(files: StoredFiles, objects: Mapping[str, ObjectPath]) -> None:
    def fetch(name: str) -> None:
        try:
            content = objects[name].read_bytes()
        except FileNotFoundError:  # it was removed meanwhile
            return
        write_here(_made(files.directory / name), content, 0o600)

    _in_parallel(fetch, objects)


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def _drop_others(directory: Path, known: set[str], *, before_s: float) -> None:
    for name, path in _durable_here(directory):
        if name not in known and path.stat().st_mtime < before_s - _CLOCK_S:
            path.unlink(missing_ok=True)


def _durable_here(directory: Path) -> Iterator[tuple[str, Path]]:
    """The files of a directory that belong in the store, except claims."""
    if (directory / PLAN).exists():
        yield PLAN, directory / PLAN
    for path in (each for part in _STORED for each in sorted((directory / part).rglob("*"))):
        name = path.relative_to(directory).as_posix()
        is_kept = path.name.endswith(_SUFFIXES) or _GROWS.search(path.name) is not None
        if is_kept and path.name[0] != "." and not name.startswith(_ONLY_HERE):
            yield name, path


def _put_all(files: StoredFiles, listing: _Listing) -> None:
    """Put what a runner replaces into its area; of files that are only here, all."""
    assert files.epoch is not None
    area, is_first = files.area(files.epoch), listing.newest_area() is None

    def put(each: tuple[str, Path]) -> None:
        name, path = each
        if _GROWS.search(path.name) is not None:
            if is_first:
                files.append(path, 0, path.read_bytes())
        elif not is_shared(name):
            (area / name).put(path.read_bytes())
        elif is_first and name not in listing.shared:
            (files.shared / name).create(path.read_bytes())

    _in_parallel(put, list(_durable_here(files.directory)))
    (area / COMPLETE).put(b"")


def _whole(parts: Iterable[_Part]) -> bytes:
    """Content of a file that grew; a part replaces what older runners wrote from its offset on."""
    chain: list[_Part] = []
    for part in sorted(parts, key=lambda each: (each.epoch, each.offset)):
        chain = [each for each in chain if each.offset < part.offset]
        chain.append(part)
    content = bytearray()
    for part, data in zip(chain, _in_parallel(_content, chain), strict=True):
        del content[part.offset :]
        content += data
    return bytes(content)


def _content(part: _Part) -> bytes:
    return part.place.read_bytes()


def _clear_up(files: StoredFiles, listing: _Listing) -> None:
    assert files.epoch is not None
    older = [area for epoch, area in listing.areas.items() if epoch < files.epoch]
    gone = [area[COMPLETE] for area in older if COMPLETE in area]  # first: then it is not read
    gone += [place for area in older for name, place in area.items() if name != COMPLETE]
    gone += [
        listing.shared[name]
        for name in listing.shared
        if name.startswith(f"{CLAIMS}/") and _numbers([name])[0] < files.epoch - _CLAIMS_KEPT
    ]
    for name, parts in listing.parts.items():
        if len(parts) > _MOST_PARTS:
            files.append(files.directory / name, 0, (files.directory / name).read_bytes())
            gone += [part.place for part in parts if part.offset or part.epoch != files.epoch]
    if gone:
        files.place.unlink_all(gone)
    for epoch in _claims_here(files.directory):
        if epoch < files.epoch - _CLAIMS_KEPT:
            (files.directory / CLAIMS / f"{epoch}.json").unlink(missing_ok=True)


def _in_parallel(action: Callable[[_A], _B], items: Iterable[_A]) -> list[_B]:
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return [
            each.result()
            for each in [threads.submit(copy_context().run, action, item) for item in items]
        ]
