"""One Delta table through delta-rs: created, checked and committed without a JVM.

Each commit of a batch carries two application transactions: the batch number under the job's app id
and the runner's epoch under `<app id>:fence`. Check and commit use one loaded table, never reloaded
in between, so a stale runner's commit conflicts instead of repeating the number.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from joins.errors import FencedError, SinkError
from joins.kernels.files import StagedFile

OWN_TABLE_PROPERTIES = {"delta.enableExpiredLogCleanup": "false"}
_ALLOWED_FEATURES = frozenset({"timestampNtz", "appendOnly", "invariants", "changeDataFeed"})
_ALLOWED_PROPERTIES = frozenset(
    {"delta.enableExpiredLogCleanup", "delta.enableChangeDataFeed", "delta.checkpointInterval"}
)


def create_table(
    path: Path, schema: pa.Schema, *, properties: Mapping[str, str] = OWN_TABLE_PROPERTIES
) -> None:
    """Create an empty table at `path` unless there is one.

    Raises:
        SinkError: the place cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(str(path), schema, mode="ignore", configuration=dict(properties))
    except (DeltaError, OSError) as exc:
        raise SinkError(
            f'delta table "{path}" cannot be created: {exc}',
            hint="Check that the directory exists, has space and may be written by this user.",
        ) from exc


def _same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    pairs = {pa.large_string(): pa.string(), pa.string_view(): pa.string()}
    pairs |= {pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary()}
    return bool(pairs.get(found, found) == pairs.get(wanted, wanted))


class DeltaLog:
    """The commits of one table under one app id; not thread-safe."""

    def __init__(self, path: Path, app_id: str) -> None:
        self.path = path
        self._app_id = app_id
        self._fence_id = f"{app_id}:fence"
        self._kept: DeltaTable | None = None

    def _fresh(self) -> DeltaTable:
        """The table as it is now; from the second call on only what is new in its log is read."""
        if self._kept is not None:
            try:
                self._kept.update_incremental()
            except DeltaError:
                self._kept = None
        if self._kept is None:
            self._kept = self._load()
        return self._kept

    def _load(self, version: int | None = None) -> DeltaTable:
        try:
            return DeltaTable(str(self.path), version=version)
        except TableNotFoundError as exc:
            raise SinkError(
                f'delta table "{self.path}" is not there',
                hint="It was removed while the job existed; restore it or submit the job anew.",
            ) from exc
        except DeltaError as exc:
            raise SinkError(
                f'delta table "{self.path}" cannot be read: {exc}',
                hint="Its log is damaged or of a newer protocol; repair it or use another path.",
            ) from exc

    def version(self) -> int:
        """The newest version."""
        return int(self._fresh().version())

    def last_batch(self) -> int | None:
        """The newest batch number committed under the app id, None before the first."""
        return self._fresh().transaction_version(self._app_id)

    def check_writable(self, schema: pa.Schema) -> None:
        """See that this writer may append rows of `schema` to the table.

        Raises:
            SinkError: other columns or types, NOT NULL where rows may be NULL, partitions, or a
                table feature not on our allow-list.
        """
        table = self._load()
        hint = "Use another path, or a table with these columns and no further table features."
        found = pa.schema(table.schema().to_arrow())
        if found.names != schema.names or not all(
            _same_type(a.type, b.type) for a, b in zip(found, schema, strict=True)
        ):
            raise SinkError(
                f'delta table "{self.path}" has columns {_describe(found)}, '
                f"expected {_describe(schema)}",
                hint=hint,
            )
        strict = [a.name for a, b in zip(found, schema, strict=True) if b.nullable > a.nullable]
        if strict:
            raise SinkError(
                f'delta table "{self.path}" has column "{strict[0]}" NOT NULL, rows may be NULL',
                hint="Declare the sink's column NOT NULL, or use another path.",
            )
        protocol = table.protocol()
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        properties = {k for k in table.metadata().configuration if k.startswith("delta.")}
        rules = {k for field in table.schema().fields for k in field.metadata if "delta." in k}
        denied = (features - _ALLOWED_FEATURES) | (properties - _ALLOWED_PROPERTIES) | rules
        if denied or table.metadata().partition_columns:
            reason = ", ".join(sorted(denied)) or "partition columns"
            raise SinkError(
                f'delta table "{self.path}" uses {reason}, which is not supported', hint=hint
            )

    def commit_epoch(self, epoch: int) -> None:
        """Fence every older runner: commit `epoch`, empty.

        Raises:
            FencedError: a newer epoch is there already.
        """
        table = self._fresh()
        self._check_epoch(table, epoch)
        if table.transaction_version(self._fence_id) == epoch:
            return
        self._write(table, (), (Transaction(self._fence_id, epoch),), {"sluice.epoch": epoch})

    def commit(
        self, batch: int, epoch: int, files: Sequence[StagedFile], metadata: Mapping[str, Any]
    ) -> int:
        """Commit `files` as `batch`, once.

        Returns:
            The version after the commit; if the batch was there already, the newest version.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: a staged file is missing or has another size, or the commit failed.
        """
        table = self._fresh()
        self._check_epoch(table, epoch)
        last = table.transaction_version(self._app_id)
        if last is not None and last >= batch:
            return int(table.version())
        for file in files:
            self._check_file(file)
        transactions = (Transaction(self._app_id, batch), Transaction(self._fence_id, epoch))
        self._write(table, files, transactions, metadata)
        table = self._fresh()
        committed = table.transaction_version(self._app_id)
        if committed != batch:
            raise SinkError(
                f'delta table "{self.path}" shows batch {committed} after the commit of {batch}',
                hint="Another program writes under this job's app id; stop it.",
            )
        return int(table.version())

    def _check_epoch(self, table: DeltaTable, epoch: int) -> None:
        newest = table.transaction_version(self._fence_id)
        if newest is not None and newest > epoch:
            raise FencedError(
                f'delta table "{self.path}" belongs to epoch {newest}, this runner is {epoch}',
                hint="A newer runner of the job has taken over; this one ends.",
            )

    def _check_file(self, file: StagedFile) -> None:
        path = self.path / file.path
        size = path.stat().st_size if path.exists() else None
        if size != file.size_bytes:
            raise SinkError(
                f'staged file "{path}" has {size} bytes, expected {file.size_bytes}',
                hint="The file was changed from outside; the batch is run again.",
            )

    def _write(
        self,
        table: DeltaTable,
        files: Sequence[StagedFile],
        transactions: Sequence[Transaction],
        metadata: Mapping[str, Any],
    ) -> None:
        now_ms = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(f.path, f.size_bytes, {}, now_ms, True, f.stats) for f in files
        ]
        properties = CommitProperties(
            custom_metadata={"userMetadata": json.dumps(dict(metadata), separators=(",", ":"))},
            app_transactions=list(transactions),
        )
        try:
            table.create_write_transaction(
                actions, "append", table.schema(), commit_properties=properties
            )
        except CommitFailedError as exc:
            raise self._conflict(transactions[-1].version, exc) from exc
        except DeltaError as exc:
            raise SinkError(
                f'commit to delta table "{self.path}" failed: {exc}',
                hint="Check space and permissions of the table's directory.",
            ) from exc

    def _conflict(self, epoch: int, exc: CommitFailedError) -> SinkError | FencedError:
        """What a refused commit means: a newer runner, or somebody else's change of the table."""
        newest = self._load().transaction_version(self._fence_id)
        if newest is not None and newest > epoch:
            return FencedError(
                f'commit to delta table "{self.path}" met one of epoch {newest}, this is {epoch}',
                hint="A newer runner of the job has taken over; this one ends.",
            )
        return SinkError(
            f'commit to delta table "{self.path}" met a concurrent one: {exc}',
            hint="The batch is tried again; let nobody else change the table while the job runs.",
        )

    def commit_entry(self, version: int) -> list[dict[str, Any]]:
        """The actions of one commit, from the log's JSON."""
        text = (self.path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line]

    def batch_metadata(self, batch: int) -> dict[str, Any] | None:
        """The metadata of the commit of `batch`, found from the newest version backwards."""
        transaction = {"appId": self._app_id, "version": batch}
        for version in range(self.version(), 0, -1):
            actions = self.commit_entry(version)
            if any(transaction.items() <= action.get("txn", {}).items() for action in actions):
                told = [a["commitInfo"].get("userMetadata") for a in actions if "commitInfo" in a]
                return dict(json.loads(told[0])) if told and told[0] else None
        return None

    def read_commit(self, version: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows that commit `version` added."""
        tables = list(self.read_files(self.files_added(version, version), columns))
        return pa.concat_tables(tables) if tables else pa.table({})

    def read_files(
        self, files: Sequence[Path], columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows of data files, one table a file."""
        names = list(columns) if columns is not None else None
        for file in files:
            yield pq.read_table(file, columns=names, partitioning=None)

    def files_added(self, first: int, last: int) -> list[Path]:
        """The data files that commits `first` to `last` added, in commit order."""
        return [
            self.path / action["add"]["path"]
            for version in range(first, last + 1)
            for action in self.commit_entry(version)
            if "add" in action
        ]

    def files_at(self, version: int) -> list[Path]:
        """The data files of `version`, in no order."""
        table = self._load(version)
        actions = pa.table(table.get_add_actions())
        return [self.path / path for path in actions.column("path").to_pylist()]


def _describe(schema: pa.Schema) -> str:
    return "(" + ", ".join(f"{field.name} {field.type}" for field in schema) + ")"
