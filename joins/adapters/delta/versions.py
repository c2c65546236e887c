"""The versions of one Delta table by the entries of its log.

delta-rs lists the whole log to refresh. This looks up the next entries by name; a loaded table
stays valid until an entry changes protocol, columns or properties.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, TableFeatures
from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    TableNotFoundError,
)

from joins.adapters.delta.entries import LogEntries, keeps_rules, transactions
from joins.adapters.store_client import plain
from joins.adapters.store_path import StorePath
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError, StoreUnavailableError
from watermark.errors import SluiceError

_OF_THE_TABLE = (CommitFailedError, DeltaProtocolError, TableNotFoundError)


def delta_options(path: TablePath) -> dict[str, str] | None:
    return path.store.for_delta() if isinstance(path, StorePath) else None


@contextmanager
def store_faults(path: TablePath) -> Iterator[None]:
    """Translate delta-rs's errors about a store into StoreUnavailableError."""
    try:
        yield
    except (DeltaError, OSError) as exc:
        if not isinstance(path, StorePath) or isinstance(
            exc, (*_OF_THE_TABLE, StoreUnavailableError)
        ):
            raise
        raise StoreUnavailableError(
            f'store does not serve delta table "{path}": {plain(str(exc))}',
            hint="It is tried again; see that the store's server answers and that the credentials "
            "are valid now.",
        ) from None


OWN_TABLE_PROPERTIES = {"delta.enableExpiredLogCleanup": "false"}
# Without VACUUM: files go when no pin needs them, so checkpoints need not list removed files.
INTERNAL_TABLE_PROPERTIES = {
    **OWN_TABLE_PROPERTIES,
    "delta.deletedFileRetentionDuration": "interval 0 seconds",
}
CREATOR = "sluice.creator"
CHECKPOINTS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
_MOST_STEPS = 200  # entries that are quicker to read one by one than with a listing
_T = TypeVar("_T")


def create_table(
    path: TablePath,
    schema: pa.Schema,
    *,
    properties: Mapping[str, str] = OWN_TABLE_PROPERTIES,
    creator: str = "",
    partition_by: Sequence[str] = (),
) -> None:
    """Create an empty table unless it exists; `creator` is the app id of the creating job."""
    commit_properties = CommitProperties(custom_metadata={CREATOR: creator})
    with _creation_faults(path):
        if isinstance(path, Path):
            path.mkdir(parents=True, exist_ok=True)
        table = DeltaTable.create(
            str(path),
            schema,
            mode="ignore",
            partition_by=list(partition_by) or None,
            configuration=dict(properties),
            storage_options=delta_options(path),
            commit_properties=commit_properties,
        )
        # Add the NOT NULL feature, which Spark requires and delta-rs leaves out of the protocol
        named = table.protocol().writer_features
        strict = any(not column.nullable for column in table.schema().fields)
        if strict and named is not None and "invariants" not in named:
            table.alter.add_feature(
                TableFeatures.Invariants,
                allow_protocol_versions_increase=True,
                commit_properties=commit_properties,
            )


@contextmanager
def _creation_faults(path: TablePath) -> Iterator[None]:
    try:
        with store_faults(path):
            yield
    except SluiceError:
        raise
    except (DeltaError, OSError) as exc:
        raise SinkError(
            f'delta table "{path}" cannot be created: {exc}',
            hint="Check that the directory exists, has space and may be written by this user.",
        ) from exc


@dataclass(frozen=True, slots=True)
class Seen:
    """One version, the newest one when it was loaded.

    `numbers` are the newest per followed application id; `rules` is a table with this version's
    protocol, columns and properties.
    """

    at: int
    numbers: Mapping[str, int | None]
    rules: DeltaTable

    def version(self) -> int:
        return self.at


def _behind(seen: Seen, entry: Sequence[Mapping[str, Any]]) -> Seen:
    versions = transactions(entry)
    newer = {name: versions[name] for name in seen.numbers.keys() & versions.keys()}
    return replace(seen, at=seen.at + 1, numbers={**seen.numbers, **newer})


class TableVersions:
    """One table by its log, with the newest number of each `followed` app id; thread-safe."""

    def __init__(self, path: TablePath, followed: Sequence[str] = ()) -> None:
        self.path = path
        self.entries = LogEntries(path)
        self.followed = tuple(followed)
        self._seen: Seen | None = None
        self.lock = threading.RLock()  # one commit at a time: two threads must not conflict

    # The newest version
    # -----------------------------------------------------------------------------------------

    def fresh(self) -> Seen:
        """The table now; from the second call on only new log entries are read."""
        with self.lock:
            if self._seen is not None:
                self._seen = self.follow(self._seen)
            return self._seen or self.reload()

    def reload(self) -> Seen:
        table = self.load()
        numbers = {each: table.transaction_version(each) for each in self.followed}
        self._seen = Seen(int(table.version()), numbers, table)
        return self._seen

    def since(self, version: int) -> Seen:
        with self.lock:
            known = self._seen
            return known if known is not None and known.at >= version else self.fresh()

    def note(self, before: Seen, entry: Sequence[Mapping[str, Any]]) -> None:
        if keeps_rules(entry):
            self._seen = _behind(before, entry)

    def follow(self, seen: Seen) -> Seen | None:
        """The newest version by the entries after `seen`; None if they are insufficient."""
        newest = seen
        with suppress(SinkError):
            while not self._ends_with(newest.at):
                entry = self.entries.read(newest.at + 1)
                is_gone = not self.entries.has(newest.at)  # then the next one may follow nothing
                if is_gone or not keeps_rules(entry) or newest.at - seen.at >= _MOST_STEPS:
                    return None
                newest = _behind(newest, entry)
            return newest
        return None

    def _ends_with(self, version: int) -> bool:
        """True if the log ends with `version`: looked up by name, since listing grows with the log.

        Entries are removed oldest first: while that of `version` exists, so does a written next
        one. Hence the order of the two lookups.
        """
        try:
            return not self.entries.has(version + 1) and self.entries.has(version)
        except OSError:
            return False  # delta-rs reports what is wrong

    def whole(self, seen: Seen) -> DeltaTable:
        table = seen.rules
        if int(table.version()) < seen.at:
            with suppress(DeltaError), store_faults(self.path):
                table.update_incremental()
        return table if int(table.version()) == seen.at else self.load(seen.at)

    def of(self, version: int, tell: Callable[[DeltaTable], _T]) -> _T:
        """`tell` of the table at `version`; the newest one is usually loaded already."""
        with self.lock:
            newest = None if self._seen is None else self.fresh()
            if newest is not None and newest.at == version:
                return tell(self.whole(newest))
        return tell(self.load(version))

    def load(self, version: int | None = None) -> DeltaTable:
        try:
            with store_faults(self.path):
                return DeltaTable(
                    str(self.path), version=version, storage_options=delta_options(self.path)
                )
        except DeltaError as exc:
            if version is not None:
                raise SinkError(
                    f'version {version} of delta table "{self.path}" cannot be read: {exc}',
                    hint="Maintenance removes versions that no pin needs; take a newer one.",
                ) from exc
            if isinstance(exc, TableNotFoundError):
                raise SinkError(
                    f'delta table "{self.path}" is not there',
                    hint="It was removed while the job existed; restore it or submit the job "
                    "again.",
                ) from exc
            raise SinkError(
                f'delta table "{self.path}" cannot be read: {exc}',
                hint="Its log is damaged or of a newer protocol; repair it or use another path.",
            ) from exc

    def version(self) -> int:
        return self.fresh().at

    # Entries of the log
    # -----------------------------------------------------------------------------------------

    def commit_entry(self, version: int) -> list[dict[str, Any]]:
        return self.entries.read(version)

    def oldest_entry(self) -> int:
        oldest = self.entries.oldest()
        return self.version() + 1 if oldest is None else oldest

    def oldest_version(self) -> int:
        if self.entries.has(0):
            return 0
        return min(self.entries.checkpoints(), default=self.version())


def newest_numbered(
    versions: TableVersions,
    limit: int,
    number_in: Callable[[Sequence[Mapping[str, Any]]], int | None],
) -> tuple[int, int] | None:
    """(version, number) of the newest entry with a number ≤ `limit`; numbers only grow."""
    newest: tuple[int, int] | None = None
    low, high = versions.oldest_entry(), versions.version()
    while low <= high:
        at = middle = (low + high) // 2
        while (number := number_in(versions.commit_entry(at))) is None and at < high:
            at += 1
        if number is None or number > limit:
            high = middle - 1
        else:
            newest, low = (at, number), at + 1
    return newest
