"""The evidence of one real run, and what each planted bug would have made of it.

An edit changes a copy of the job's directory and of its output: pins, files of tables, words of
commits. What happened outside, the stream and the database, stays what it is.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.reliability.experiment import Lab
from tests.reliability.oracle import AuditInputs, World, read_world
from tests.reliability.oracle_log import TableLog
from tests.reliability.planted_load import PARTITIONS, Load, inputs_of, loaded_job

_KEPT_OUT = shutil.ignore_patterns("scratch", "spark", "index", "current")
Keep = Callable[[pa.Table], Any]


@dataclass(frozen=True)
class Recorded:
    """The inputs of an audit, and the world that they are judged by."""

    inputs: AuditInputs
    world: World

    @contextmanager
    def copy(self) -> Iterator["Recorded"]:
        """The same evidence elsewhere, to be changed; removed at the end."""
        with tempfile.TemporaryDirectory(prefix="sluice-evidence-") as directory:
            job = Path(directory) / self.inputs.job_directory.name
            output = Path(directory) / "output"
            shutil.copytree(self.inputs.job_directory, job, ignore=_KEPT_OUT)
            shutil.copytree(self.inputs.output, output)
            inputs = replace(
                self.inputs, job_directory=job, output=output, dead_letters=job / "dead_letters"
            )
            yield Recorded(inputs, self.world)

    # What edits change
    # ------------------------------------------------------------------------------------------

    def pin_file(self, batch: int) -> Path:
        return self.inputs.job_directory / "checkpoint" / "pins" / f"{batch:010d}.json"

    def change_pin(self, batch: int, **values: Any) -> None:
        path = self.pin_file(batch)
        path.write_text(json.dumps({**json.loads(path.read_bytes()), **values}))

    def pin(self, batch: int) -> dict[str, Any]:
        return dict(json.loads(self.pin_file(batch).read_bytes()))

    def batches(self) -> list[int]:
        """Batches with rows, oldest first."""
        found: set[int] = set()
        for table in self._tables(self.inputs.output):
            found |= set(table.column("_batch").to_pylist())
        return sorted(found)

    @staticmethod
    def _tables(root: Path) -> list[pa.Table]:
        log = TableLog(root)
        found = [log.read(file) for file in sorted(log.files_at(log.newest))]
        return [table for table in found if table is not None]

    def change_rows(self, root: Path, change: Callable[[pa.Table], pa.Table]) -> None:
        """Rewrite every data file of a table in place."""
        log = TableLog(root)
        for file in log.files_at(log.newest):
            table = log.read(file)
            assert table is not None
            pq.write_table(change(table), root / file)

    def keep_rows(self, keep: Keep) -> None:
        self.change_rows(self.inputs.output, lambda table: table.filter(keep(table)))


@contextmanager
def recorded(lab: Lab, rounds: int) -> Iterator[Recorded]:
    """A real run, stopped so that nobody changes its files; it is there until the block ends."""
    with loaded_job(lab, "as-it-is", Load(rounds=rounds)) as subject:
        subject.job.stop()
        inputs = inputs_of(subject)
        yield Recorded(inputs, read_world(inputs))


# The edits
# --------------------------------------------------------------------------------------------------


def skip_pin_write(run: Recorded) -> None:
    for batch in run.batches():
        run.pin_file(batch).unlink()


def pin_after_commit(run: Recorded) -> None:
    first, *_, last = run.batches()
    run.change_pin(first, versions=run.pin(last)["versions"], epoch=run.pin(last)["epoch"])


def forget_dead_letters(run: Recorded) -> None:
    run.change_rows(run.inputs.dead_letters, lambda table: table.slice(0, 0))


def offsets_before_output(run: Recorded) -> None:
    lost = run.batches()[1]
    run.keep_rows(lambda table: pc.not_equal(table.column("_batch"), lost))


def reused_app_id(run: Recorded) -> None:
    log = TableLog(run.inputs.output)
    newest = next(c.version for c in reversed(list(log.commits())) if c.added)
    (run.inputs.output / "_delta_log" / f"{newest:020d}.json").write_text("{}\n")


def stale_index(run: Recorded) -> None:
    """A batch met what the first one had met: every row says its version and shows older values."""
    tables = pa.concat_tables(run._tables(run.inputs.output))
    first, last = run.batches()[0], run.batches()[-1]
    old = tables.filter(pc.equal(tables.column("_batch"), first)).to_pylist()
    seen = {row["user_id"]: (row["gender"], row["name"]) for row in old}

    def change(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        for row in rows:
            if row["_batch"] == last:
                row["gender"], row["name"] = seen.get(row["user_id"], (row["gender"], row["name"]))
        return pa.Table.from_pylist(rows, table.schema)

    run.change_rows(run.inputs.output, change)


def range_off_by_one(run: Recorded) -> None:
    ends = {(p, int(e) - 1) for b in run.batches() for p, e in run.pin(b)["end_offsets"].items()}

    def keep(table: pa.Table) -> pa.Array:
        pairs = zip(*(table.column(n).to_pylist() for n in ("_partition", "_offset")), strict=True)
        return pa.array([(str(p), o) not in ends for p, o in pairs], pa.bool_())

    run.keep_rows(keep)


def last_partition_dropped(run: Recorded) -> None:
    run.keep_rows(lambda table: pc.less(table.column("_partition"), PARTITIONS - 1))


def _show_former_rows(run: Recorded, users: range) -> None:
    """Rows of `users`, who are gone, show what they were when they were there."""

    def change(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        for row in rows:
            if row["user_id"] in users and row["name"] is None:
                row["gender"] = "F" if row["user_id"] % 2 else "M"
                row["name"] = f"user {row['user_id']}"
        return pa.Table.from_pylist(rows, table.schema)

    run.change_rows(run.inputs.output, change)


def drop_tombstone(run: Recorded) -> None:
    _show_former_rows(run, range(1, 6))


def primary_key_change_ignored(run: Recorded) -> None:
    _show_former_rows(run, range(6, 11))


def valve_opens_early(run: Recorded) -> None:
    """The opening names the newest version whose copy is not complete."""
    changelog = run.inputs.job_directory / "tables" / run.inputs.dimension / "changelog"
    log = TableLog(changelog)
    marked = [c.version for c in log.commits() if any(_is_marked(log, f) for f in c.added)]
    path = run.inputs.job_directory / "checkpoint" / "phase.json"
    phase = json.loads(path.read_bytes())
    phase["versions"][run.inputs.dimension] = marked[0] - 1
    path.write_text(json.dumps(phase))


def _is_marked(log: TableLog, file: str) -> bool:
    rows = log.read(file, ["_op"])
    return rows is not None and "w" in rows.column("_op").to_pylist()


def double_commit(run: Recorded) -> None:
    """A file is there twice: its copy came with a commit of its own."""
    log = TableLog(run.inputs.output)
    commit = next(c for c in log.commits() if c.added)
    twin = f"again-{Path(commit.added[0]).name}"
    shutil.copy(log.root / commit.added[0], log.root / twin)
    size = (log.root / twin).stat().st_size
    add = {"path": twin, "size": size, "partitionValues": {}, "dataChange": True}
    entry = log.root / "_delta_log" / f"{log.newest + 1:020d}.json"
    entry.write_text(json.dumps({"add": {**add, "modificationTime": 0}}) + "\n")


EDITS: dict[str, Callable[[Recorded], None]] = {
    "skip-pin-write": skip_pin_write,
    "pin-after-commit": pin_after_commit,
    "forget-dead-letters": forget_dead_letters,
    "offsets-before-output": offsets_before_output,
    "reused-app-id": reused_app_id,
    "stale-index": stale_index,
    "range-off-by-one": range_off_by_one,
    "drop-tombstone": drop_tombstone,
    "valve-opens-early": valve_opens_early,
    "primary-key-change-ignored": primary_key_change_ignored,
    "last-partition-dropped": last_partition_dropped,
    "double-commit": double_commit,
}
