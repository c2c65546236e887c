"""Log files of a Delta table, looked up by name if possible: listing time grows with the log."""

import errno
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from joins.durable.checkpoint import create_once, json_lines
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError
from watermark.errors import SluiceError

_ENTRY = re.compile(r"(\d+)\.json")
_LOG_FILE = re.compile(r"\.?(\d{20})\.")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


class NoLinksError(Exception):
    """The file system cannot create a file name atomically; caught within the adapters."""


class LogEntries:
    """The log files of the table at `root`."""

    # reads better long: all that is known of the files of a log.

    def __init__(self, root: TablePath) -> None:
        self._root = root
        self._log = root / "_delta_log"

    def path(self, version: int) -> TablePath:
        return self._log / f"{version:020d}.json"

    def has(self, version: int) -> bool:
        return self.path(version).exists()

    def read(self, version: int) -> list[dict[str, Any]]:
        """The actions of a commit; without an entry the SinkError's cause is FileNotFoundError."""
        try:
            return actions_of(self.path(version).read_bytes())
        except FileNotFoundError as exc:
            raise SinkError(
                f'commit {version} is not in the log of delta table "{self._root}"',
                hint="Maintenance removes entries that a checkpoint covers and no pin needs.",
            ) from exc
        except SluiceError:  # a store's error says what is wrong
            raise
        except (OSError, ValueError) as exc:
            raise SinkError(
                f'commit {version} of delta table "{self._root}" cannot be read: {exc}',
                hint="Its entry in the table's log is damaged; restore it from a backup.",
            ) from exc

    def find(self, version: int) -> list[dict[str, Any]] | None:
        """Like `read`, None if the log has no such entry."""
        try:
            return self.read(version)
        except SinkError as exc:
            if isinstance(exc.__cause__, FileNotFoundError):
                return None
            raise

    def put(self, version: int, actions: Iterable[Mapping[str, Any]]) -> bool:
        """Create the entry of `version`, durably; False if another writer's entry exists.

        NoLinksError: nothing was written. SinkError: it is missing, or may not be durable.
        StoreUnavailableError: it may exist or not.
        """
        lines = (json.dumps(action, separators=(",", ":")) for action in actions)
        place, content = self.path(version), "\n".join(lines).encode()
        if not isinstance(place, Path):
            return place.create(content)
        try:
            return create_once(place, content)
        except OSError as exc:
            if exc.errno in _NO_LINKS:
                raise NoLinksError from exc
            raise SinkError(
                f'commit to delta table "{self._root}" failed: {exc}',
                hint="Check space and permissions of the table's directory.",
            ) from exc

    def follows(self, version: int) -> bool:
        """True if the entry of `version` continues the log instead of filling a removed number.

        Clean-up removes the oldest entries first, so a stalled writer may write where no reader
        looks. A valid entry has its predecessor, or one of the two has a checkpoint, which clean-up
        keeps.
        """
        before = version - 1
        known = before < 0 or self.has(before)
        return known or self._has_checkpoint(version) or self._has_checkpoint(before)

    def _has_checkpoint(self, version: int) -> bool:
        name = f"{version:020d}.checkpoint"
        return any(path.name.startswith(name) for path in self._files())

    def _files(self) -> Iterator[TablePath]:
        with suppress(FileNotFoundError, NotADirectoryError):
            yield from self._log.iterdir()

    def oldest(self) -> int | None:
        """The oldest entry after which none is missing; None if the log has no entry."""
        if self.has(0):
            return 0
        versions = self.numbers()[::-1]
        whole = (
            at for at, number in enumerate(versions) if number - 1 not in versions[at + 1 : at + 2]
        )
        return versions[next(whole)] if versions else None

    def numbers(self) -> list[int]:
        return sorted(self._entries())

    def _entries(self) -> dict[int, TablePath]:
        matches = ((path, _ENTRY.fullmatch(path.name)) for path in self._files())
        return {int(match.group(1)): path for path, match in matches if match}

    def newest_before(self, second: float) -> int:
        """The newest version with an entry older than `second` (epoch seconds), -1 for none."""
        newest = -1
        for version, path in sorted(self._entries().items()):
            if path.stat().st_mtime >= second:
                break
            newest = version
        return newest

    def checkpoints(self) -> list[int]:
        matches = (_CHECKPOINT.fullmatch(path.name) for path in self._files())
        return sorted(int(match.group(1)) for match in matches if match)

    def last_checkpoint(self) -> int:
        try:
            pointer = json.loads((self._log / "_last_checkpoint").read_bytes())
            return int(pointer["version"])
        except (OSError, ValueError, TypeError, KeyError):
            return -1

    def remove_before(self, version: int) -> int:
        """Remove log files before `version`, which must have a checkpoint; returns their number.

        Checkpoints go first, then entries from the oldest, so that a crash leaves a valid log.
        """
        old = [
            (path.name.endswith(".json"), int(match.group(1)), path)
            for path in self._files()
            if (match := _LOG_FILE.match(path.name)) and int(match.group(1)) < version
        ]
        for _, _, path in sorted(old, key=lambda each: (*each[:2], each[2].name)):
            path.unlink(missing_ok=True)
        return len(old)

    def remove(self, version: int) -> None:
        self.path(version).unlink(missing_ok=True)


def has_log(root: TablePath) -> bool:
    log = root / "_delta_log"
    return log.is_dir() if isinstance(log, Path) else next(log.iterdir(), None) is not None


def actions_of(content: bytes) -> list[dict[str, Any]]:
    """ValueError if a line is not JSON."""
    return [json.loads(line) for line in json_lines(content)]


def added_files(entry: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(action["add"]) for action in entry if "add" in action]


def changed_files(entry: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [action for action in added_files(entry) if action.get("dataChange", True)]


def committed_at_ms(entry: Sequence[Mapping[str, Any]]) -> int | None:
    infos = [action["commitInfo"] for action in entry if "commitInfo" in action]
    at_ms = (infos[0].get("inCommitTimestamp") or infos[0].get("timestamp")) if infos else None
    return None if at_ms is None else int(at_ms)


def transactions(entry: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {a["txn"]["appId"]: int(a["txn"]["version"]) for a in entry if "txn" in a}


def metadata_of(entry: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """None unless the metadata is a JSON object."""
    infos = [a["commitInfo"].get("userMetadata") for a in entry if "commitInfo" in a]
    try:
        value = json.loads(infos[0]) if infos and infos[0] else None
    except (ValueError, RecursionError):
        return None
    return dict(value) if isinstance(value, dict) else None


def keeps_rules(entry: Sequence[Mapping[str, Any]]) -> bool:
    return not any("protocol" in action or "metaData" in action for action in entry)
