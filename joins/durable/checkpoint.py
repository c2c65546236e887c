"""The job's durable files: each is replaced as a whole and has a format version.

A file is written to a temporary name, fsynced and renamed, and its directory is fsynced: a reader
sees the old or the new content, even after a power failure. A file with `stored_files` goes to its
store first.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from joins.durable.codec import as_json, from_json
from joins.durable.stored import create_here, stored_files, write_here
from joins.kernels.local_files import take_lock
from joins.plan.errors import CheckpointError, CheckpointInUseError
from joins.plan.stream_topics import NO_TOPICS, StreamTopics, topics_as_json, topics_of_json

_REPLAY = ":replay"
_Kind = TypeVar("_Kind")


def job_app_id(job_id: str, incarnation: str) -> str:
    return f"sluice:{job_id}:{incarnation}"


def output_app_id(app_id: str, insert: int) -> str:
    return app_id if insert == 0 else f"{app_id}:insert-{insert + 1}"


def late_app_id(app_id: str) -> str:
    return f"{app_id}:late"


def replay_app_id(output_id: str) -> str:
    return output_id + _REPLAY


def batches_app_id(app_id: str) -> str:
    return app_id.removesuffix(_REPLAY)


FORMAT_VERSION = 1
_EPOCHS_KEPT = 100  # more than runners that start at the same time


def _json(path: Path, value: Mapping[str, Any]) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"format_version": FORMAT_VERSION, **value}
    return json.dumps(content, separators=(",", ":")).encode()


def write_atomically(
    path: Path, content: bytes, *, mode: int = 0o666, lazily: bool = False
) -> None:
    """Replace the file `path`, durably; its directory must exist, and `mode` is less the umask.

    With `lazily` a store may get the content later: a runner elsewhere must cope with older
    content. After an OSError the old content is untouched, but a store may have the new one.
    """
    stored = stored_files(path)
    if stored is not None and lazily:
        stored.put_lazily(path, content)
    elif stored is not None:
        stored.put(path, content)
    write_here(path, content, mode)


def write_json_atomically(path: Path, value: Mapping[str, Any], *, lazily: bool = False) -> None:
    """Replace `path` by `value` with `format_version` added, as `write_atomically` does."""
    write_atomically(path, _json(path, value), lazily=lazily)


def create_json_once(path: Path, value: Mapping[str, Any]) -> bool:
    """Write `value`, durably, unless `path` exists; True if this call created the file."""
    return create_once(path, _json(path, value))


def create_once(path: Path, content: bytes) -> bool:
    """Write `path`, durably, unless it exists; True if this call created it. Readers see no part.

    After an OSError no file of this call is at `path`, but a store may have it.
    """
    stored = stored_files(path)
    if stored is None:
        return create_here(path, content)
    there = path.read_bytes() if path.exists() else stored.create(path, content)
    return create_here(path, there) and there == content


def remove_durably(*paths: Path) -> None:
    """Remove the files that exist; after an OSError some are left, here or in the store."""
    stored = stored_files(paths[0]) if paths else None
    if stored is not None:
        stored.remove(*paths)
    for path in paths:
        path.unlink(missing_ok=True)


def json_lines(content: bytes) -> Iterator[bytes]:
    """The non-blank lines of a text with one JSON value a line.

    Only a line feed ends a line: JSON strings may contain U+2028, U+2029 and U+0085. Every reader
    of such a text uses this function; `tests/test_lines.py` enforces it.
    """
    return (line for line in content.split(b"\n") if line.strip())


PROGRESS_DAMAGED = (
    "Remove this file and resume the job: it goes on where its output ends, nothing is lost or "
    "repeated, and the newest pin has the counters, too."
)
_DAMAGED = "It was damaged from outside; restore it from a backup or submit the job again."


def read_json(path: Path, *, damaged: str = _DAMAGED) -> dict[str, Any] | None:
    """The content, or None without a file; CheckpointError if damaged or of another version."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise CheckpointError(f'file "{path}" is not valid JSON', hint=damaged) from exc
    if not isinstance(value, dict):
        raise CheckpointError(f'file "{path}" is not a JSON object', hint=damaged)
    version = value.get("format_version")
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f'file "{path}" has format version {version}, expected {FORMAT_VERSION}',
            hint="Run the version of Sluice that wrote this job, or submit the job again.",
        )
    return dict(value)


def read_document(path: Path, kind: type[_Kind]) -> _Kind | None:
    """The content of a file; None and errors as `read_json`."""
    document = read_json(path)
    return None if document is None else from_json(kind, document)


def write_document(path: Path, value: object, *, lazily: bool = False) -> None:
    write_json_atomically(path, as_json(value), lazily=lazily)


class CheckpointLock:
    """Locks a checkpoint for a runner and its JVM, which inherits and may outlive the lock.

    While such a JVM lives, no new runner starts beside it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        if self._descriptor is None:
            raise CheckpointError(
                f'lock "{self._path}" is not held', hint="Acquire the lock before starting the job."
            )
        return self._descriptor

    def acquire(self) -> None:
        """Take the lock, or raise CheckpointInUseError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        if not take_lock(descriptor):
            os.close(descriptor)
            raise CheckpointInUseError(
                f'checkpoint "{self._path.parent}" is in use by another runner',
                hint="Stop the other runner of this job, or wait until its processes have ended.",
            )
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@dataclass(frozen=True, slots=True)
class JobMeta:
    """What stays the same over the restarts of a job, and the epoch, which grows with each."""

    incarnation: str  # UUID of this checkpoint, part of every app id
    epoch: int  # number of the current runner, from 1
    probe_topic: str  # the topic that the probe reads (internal for datagen); the first of several
    probe_topic_id: str  # Kafka's UUID of that topic
    probe_start_offsets: dict[int, int]  # partition → first offset, resolved at submission
    changelog_topics: dict[str, str]  # dimension → topic
    # partition → offset after the last joined record; None if unbounded
    probe_end_offsets: dict[int, int] | None = None
    # partition → end offset at submission, where processing time begins; None for other streams
    probe_backlog_offsets: dict[int, int] | None = None
    # the stream's topics at the first start; empty for a single topic
    probe_topics: StreamTopics = NO_TOPICS

    @property
    def topics(self) -> StreamTopics:
        return self.probe_topics or StreamTopics.one(self.probe_topic, self.probe_topic_id)


def _meta_json(meta: JobMeta) -> dict[str, Any]:
    topics = {"probe_topics": topics_as_json(meta.probe_topics)} if meta.probe_topics else {}
    document = as_json(meta)
    del document["probe_topics"]
    return {**document, **topics}


class Checkpoint:
    """Typed access to the files of one `checkpoint/` directory; ARCHITECTURE.md has the table."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lock = CheckpointLock(directory / "lock")
        self._claimed = 0

    @property
    def _meta_file(self) -> Path:
        return self.directory / "meta.json"

    @property
    def pins_directory(self) -> Path:
        return self.directory / "pins"

    def source_file(self, dimension: str) -> Path:
        return self.directory / "sources" / f"{dimension}.json"

    def cdc_file(self, dimension: str) -> Path:
        return self.directory / "sources" / f"{dimension}.cdc.json"

    def read_meta(self) -> JobMeta | None:
        value = read_json(self._meta_file)
        if value is None:
            return None
        topics = topics_of_json(value.get("probe_topics", ()))
        return from_json(JobMeta, {**value, "probe_topics": topics})

    def write_meta(self, meta: JobMeta) -> None:
        write_json_atomically(self._meta_file, _meta_json(meta))

    def create_meta(self, meta: JobMeta) -> JobMeta:
        """Write `meta`, durably, unless another runner was first; returns what is stored."""
        create_json_once(self._meta_file, _meta_json(meta))
        stored = self.read_meta()
        if stored is None:
            raise CheckpointError(
                f'file "{self._meta_file}" vanished after it was written',
                hint="Another program removes files of this job's checkpoint; stop it.",
            )
        return stored

    def claim_epoch(self, above: int) -> int:
        """The next epoch above `above` that no runner has claimed, even beside a second runner.

        The lock excludes a second runner on one node only.
        """
        stored = stored_files(self.directory / "epochs")
        if stored is not None and stored.epoch is not None:
            return stored.epoch  # it came with the job's files
        directory, before = self.directory / "epochs", self._epochs()
        epoch = max([above, *before]) + 1
        while not create_json_once(directory / f"{epoch}.json", {"pid": os.getpid()}):
            epoch += 1
        for older in before:
            if older < epoch - _EPOCHS_KEPT:
                (directory / f"{older}.json").unlink(missing_ok=True)
        self._claimed = epoch
        return epoch

    def has_newer_runner(self) -> bool:
        """True if another runner has claimed an epoch after ours: what fails here may be its work.

        In an object store its lease tells this, by `FencedError`.
        """
        return 0 < self._claimed < max(self._epochs(), default=0)

    def _epochs(self) -> list[int]:
        directory = self.directory / "epochs"
        names = [p.stem for p in directory.iterdir()] if directory.is_dir() else []
        return [int(name) for name in names if name.isdecimal()]

    @property
    def progress_file(self) -> Path:
        return self.directory / "progress.json"

    def read_progress(self) -> dict[str, Any] | None:
        """None without the file; CheckpointError if it is damaged (the job can run without it)."""
        return read_json(self.progress_file, damaged=PROGRESS_DAMAGED)

    def read_phase(self) -> dict[str, Any] | None:
        return read_json(self.directory / "phase.json")

    def write_phase(self, value: Mapping[str, Any]) -> None:
        write_json_atomically(self.directory / "phase.json", value)
