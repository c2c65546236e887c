"""Where tables of jobs may be, and which outputs and names two jobs must not share.

Real paths are compared: links and `..` are resolved, and case is ignored, as on some file systems.
"""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from joins.adapters.delta.entries import has_log
from joins.adapters.store_path import StorePath
from joins.plan.connections import StoreTable
from joins.plan.errors import SinkError
from joins.plan.plan import (
    DeltaSink,
    DeltaTableSource,
    FileSource,
    JoinPlan,
    KafkaSink,
    KafkaSource,
    PrintSink,
    SharedSource,
    files_of,
)
from service.config import Settings, runs_on_cluster
from service.errors import JobConflictError, SubmissionError
from service.jobs.store import plan_codec
from service.jobs.store.job import DesiredState, JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from service.security.allowed import check_store, confined_path, store_address
from service.sql.planner.dimension_planner import same_path
from watermark.errors import SluiceError

if TYPE_CHECKING:  # runners and inspections read places, and no store
    from service.jobs.store.rows import StoredJob, StoredJobs


def check_nodes(plan: JoinPlan, settings: Settings, *, in_store: bool) -> None:
    """Raise SubmissionError if executors cannot reach what the tasks of `plan` read and write.

    If the job's own tables are in a directory, all nodes share it and reach the rest too.
    """
    if not (in_store and runs_on_cluster(settings)):
        return
    for insert in plan.inserts:
        if isinstance(insert.sink, DeltaSink):
            _check_path(f'output "{insert.sink_table}"', insert.sink, settings)
    late = plan.probe.late_records
    if late is not None:
        _check_path(f'table of late records of "{plan.probe.table}"', late, settings)
    stream = plan.probe.source
    if isinstance(stream, KafkaSource) and stream.history is not None:
        files = stream.history.files
        if isinstance(files, FileSource) or store_address(files, settings) is None:
            raise SubmissionError(
                f'the history of stream "{plan.probe.table}" is in directory "{files.path}", which '
                f'executors of "{settings.spark_master}" do not share: the job\'s own tables are '
                "in a store",
                hint="Give it as a Delta table in an object store: 'history.connector' = 'delta'.",
            )
    for dimension in plan.dimensions:
        if settings.index_dir is None:
            raise SubmissionError(
                f'dimension "{dimension.name}" is looked up in an index, and no directory of each '
                f'node is named for the executors of "{settings.spark_master}"',
                hint="Set SLUICE_INDEX_DIR to a local directory of every node and start the "
                "control plane again.",
            )
        if isinstance(dimension.source, SharedSource):
            _check_shared(dimension.name, dimension.source, settings)


def _check_path(what: str, sink: DeltaSink, settings: Settings) -> None:
    if store_address(sink, settings) is None:
        raise SubmissionError(
            f'{what} is in directory "{sink.path}", which executors of "{settings.spark_master}" '
            "do not share: the job's own tables are in a store",
            hint="Give it a path in the warehouse, such as 'orders/enriched', or the address of an "
            "object store.",
        )


def _check_shared(name: str, source: SharedSource, settings: Settings) -> None:
    if not JobLayout(settings.jobs_dir / source.job_id).is_in_store():
        raise SubmissionError(
            f'shared table "{name}" is kept in a directory, which executors of '
            f'"{settings.spark_master}" do not share: it was created before SLUICE_WAREHOUSE was '
            "set",
            hint="Drop the table and create it again; it is kept in the warehouse then.",
        )


_LOG = "_delta_log"
_MOST_OBJECTS = 5_000
_MOST_ENTRIES = 100_000  # limit of the search for tables below a directory
_WORDS = (b'"delta"', b'"filesystem"', b'"late_records_path":"')  # in plans that have such tables
OUTPUT, LATE, DIMENSION, FILES = "output", "late records", "dimension", "files"
Parts = tuple[str, ...]
Table = tuple[str, DeltaSink | DeltaTableSource | FileSource]


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A Delta table, or files, that a script names."""

    role: str
    written: str  # the path as in the script
    real: Path | None  # the path without links; None in an object store
    parts: Parts  # the path for comparisons
    owner: str

    @classmethod
    def of(cls, named: Table, settings: Settings, owner: str) -> "TablePlace":
        """Raises NotAllowedError if the operator's lists do not have the table's path."""
        role, table = named
        address = None if isinstance(table, FileSource) else store_address(table, settings)
        if address is not None and not isinstance(table, FileSource):
            check_store(table, settings)
            return cls(role, table.path, None, address_of(table, settings), owner)
        real = confined_path(table, settings).resolve()
        return cls(role, table.path, real, _parts(real), owner)

    def is_spelled_unlike(self, other: "TablePlace") -> bool:
        """Whether the planner, which compares paths as they are written, saw two outputs."""
        both = self.role == other.role == OUTPUT and self.owner == other.owner
        return both and not same_path(self.written, other.written)


def address_of(table: DeltaSink | DeltaTableSource, settings: Settings) -> Parts:
    """Where a Delta table is, equal for every spelling of its path; allowed or not."""
    address = store_address(table, settings)
    if address is None:
        return _parts((settings.warehouse_dir / table.path.removeprefix("file://")).resolve())
    stored = StoreTable.of(address)
    root = f"{stored.bucket}@{stored.server(table.store)}"
    return (root, *stored.key.split("/"))


def _tables_of(plan: JoinPlan) -> tuple[Table, ...]:
    dimensions = [d.source for d in plan.dimensions]
    read = (files for source in dimensions if (files := files_of(source)) is not None)
    tables: list[Table] = [
        (FILES if isinstance(files, FileSource) else DIMENSION, files) for files in read
    ]
    sinks = [insert.sink for insert in plan.inserts]
    tables += [(OUTPUT, sink) for sink in sinks if isinstance(sink, DeltaSink)]
    if plan.probe.late_records is not None:
        tables.append((LATE, plan.probe.late_records))
    return tuple(tables)


def _places(tables: Iterable[Table], settings: Settings, owner: str) -> list[TablePlace]:
    return [TablePlace.of(table, settings, owner) for table in tables]


def check_places(plan: JoinPlan, settings: Settings) -> None:
    """Check that outputs are apart from all other tables. Raises SinkError or NotAllowedError."""
    own = _places(_tables_of(plan), settings, "the script")
    written = [place for place in own if place.role not in (DIMENSION, FILES)]
    if not written:
        return
    known = [*own, *_of_jobs(settings)]
    for place in written:
        _check_root(place, settings)
        for other in known:
            _check_pair(place, other)
        if place.real is not None:
            _check_surroundings(place, place.real, settings)


def check_new_table(sink: DeltaSink, settings: Settings) -> None:
    """Raise SinkError if an output that does not exist yet is inside a table or contains one."""
    (place,) = _places([(OUTPUT, sink)], settings, "the job")
    if place.real is None:
        address = store_address(sink, settings) or sink.path
        check_surroundings_in_store(StorePath.of(address, sink.store), sink.path)
    elif not _is_table(place.real, place):
        _check_surroundings(place, place.real, settings)


def check_surroundings_in_store(root: StorePath, written: str) -> None:
    """Raise SinkError for a table above or below a new one in an object store."""
    if has_log(root):
        return
    above = root.parent
    while above.key:
        if has_log(above):
            raise _refused(OUTPUT, written, f'is in delta table "{above}"')
        above = above.parent
    for file in islice(root.below(), _MOST_OBJECTS):
        inner, is_log, _ = file.key.rpartition(f"/{_LOG}/")
        if is_log:
            raise _refused(OUTPUT, written, f'has in it delta table "{inner}"')


def _parts(path: Path) -> Parts:
    return tuple(unicodedata.normalize("NFC", part).casefold() for part in path.parts)


def _holds(outer: Parts, inner: Parts) -> bool:
    return len(outer) < len(inner) and inner[: len(outer)] == outer


def _check_root(place: TablePlace, settings: Settings) -> None:
    root = _parts(settings.warehouse_dir.resolve())
    if place.parts == root or _holds(place.parts, root):
        raise _refused(
            place.role, place.written, f'is the warehouse "{settings.warehouse_dir}" or above it'
        )
    if _LOG in place.parts:
        raise _refused(place.role, place.written, "is in the log of a delta table")


def _check_pair(place: TablePlace, other: TablePlace) -> None:
    if place is other:
        return
    whose = f'{other.role} "{other.written}" of {other.owner}'
    if _holds(place.parts, other.parts):
        raise _refused(place.role, place.written, f"has in it {whose}")
    if _holds(other.parts, place.parts):
        raise _refused(place.role, place.written, f"is in {whose}")
    if place.parts == other.parts and place.is_spelled_unlike(other):
        raise SinkError(
            f'paths "{other.written}" and "{place.written}" of the script may be one table',
            hint="Write the path of an output in the same way in each table of the script.",
        )
    is_mixed = (place.role == LATE) != (other.role == LATE) or other.role == FILES
    is_joined = other.role == DIMENSION and other.owner == place.owner
    if place.parts == other.parts and (is_mixed or is_joined):
        raise _refused(place.role, place.written, f"is {whose}")


def _check_surroundings(place: TablePlace, real: Path, settings: Settings) -> None:
    roots = {_parts(root.resolve()) for root in (settings.warehouse_dir, Path("/"))}
    for above in real.parents:
        if _is_table(above, place):
            raise _refused(place.role, place.written, f'is in delta table "{above}"')
        if _parts(above) in roots:
            break
    inner = next(_tables_in(real), None)
    if inner is not None:
        raise _refused(place.role, place.written, f'has in it delta table "{inner}"')


def _is_table(directory: Path, place: TablePlace) -> bool:
    try:
        return (directory / _LOG).is_dir()
    except OSError as exc:
        raise _refused(place.role, place.written, f"cannot be looked at: {exc}") from exc


def _tables_in(root: Path) -> Iterator[Path]:
    """Tables below `root`; the search stops after `_MOST_ENTRIES`."""
    left = _MOST_ENTRIES
    for directory, names, files in os.walk(root):
        left -= len(names) + len(files)
        if _LOG in names:
            names.remove(_LOG)
            if Path(directory) != root:
                yield Path(directory)
        if left < 0:
            return


def _of_jobs(settings: Settings) -> Iterable[TablePlace]:
    if not settings.jobs_dir.is_dir():
        return
    for job_dir in settings.jobs_dir.iterdir():
        yield from _of_job(job_dir, settings)


@lru_cache(maxsize=10_000)
def _kept(plan: Path, _: int) -> tuple[Table, ...]:
    content = plan.read_bytes()
    if not any(word in content for word in _WORDS):
        return ()
    return _tables_of(plan_codec.load(content))


def _of_job(job_dir: Path, settings: Settings) -> list[TablePlace]:
    layout = JobLayout(job_dir)
    try:
        file = layout.plan_of(JobPlans(layout).newest_number)
        tables = _kept(file, file.stat().st_mtime_ns)
        return _places(tables, settings, f"job {job_dir.name}")
    except (SluiceError, OSError):  # gone, unreadable, or no longer allowed
        return []


def _refused(role: str, written: str, why: str) -> SinkError:
    return SinkError(
        f'path "{written}" of the {role} {why}',
        hint="Give it a separate directory, in no table and with no table in it.",
    )


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a job; `role` is `output` or `late records`."""

    role: str
    sink: DeltaSink | KafkaSink

    @property
    def text(self) -> str:
        if isinstance(self.sink, KafkaSink):
            return f'topic "{self.sink.kafka.topic}"'
        return f'delta table "{self.sink.path}"'


def outputs_of(plan: JoinPlan) -> tuple[Output, ...]:
    sinks = (insert.sink for insert in plan.inserts)
    outputs = [Output(OUTPUT, sink) for sink in sinks if isinstance(sink, DeltaSink | KafkaSink)]
    if plan.probe.late_records is not None:
        outputs.append(Output(LATE, plan.probe.late_records))
    return tuple(dict.fromkeys(outputs))


def is_preview(plan: JoinPlan) -> bool:
    return isinstance(plan.sink, PrintSink) and plan.sink.row_limit is not None


class TakenOutputs:
    """Finds stored jobs with a new job's name or one of its outputs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: Mapping[str, tuple[Output, ...]] = {}

    def check(self, plan: JoinPlan, stored: "StoredJobs", *, append: bool) -> tuple[str, ...]:
        """Warnings about outputs shared with other jobs.

        Raises JobConflictError if a job that can still run has the name or, unless `append`, an
        output.
        """
        if is_preview(plan):
            return ()
        jobs = stored.jobs()
        known = self._read(stored, jobs)
        shared = [(job, out) for job in jobs for out in self._shared(plan, known[job.id])]
        living = [(job, output) for job, output in shared if job.state is not JobState.FINISHED]
        refused = [pair for pair in living if _is_exclusive(pair[1]) and not append]
        named = next((job for job in jobs if job.takes(plan.name)), None)
        if named is not None:
            raise _name_taken(named, [out for job, out in refused if job.id == named.id])
        if refused:
            raise _output_taken(*refused[0])
        return tuple(_warning(job, output) for job, output in shared)

    def _read(
        self, stored: "StoredJobs", jobs: "Sequence[StoredJob]"
    ) -> Mapping[str, tuple[Output, ...]]:
        """By job; checks at the same time may have read other jobs."""
        before = self._known
        known = {job.id: before.get(job.id, ()) for job in jobs}
        for job_id, content in stored.plans([j.id for j in jobs if j.id not in before]):
            with suppress(SluiceError):  # the job cannot start either
                known[job_id] = outputs_of(plan_codec.load(content))
        self._known = known
        return known

    def _shared(self, plan: JoinPlan, others: Sequence[Output]) -> Iterator[Output]:
        for own in outputs_of(plan):
            for other in others:
                if self._are_same(own.sink, other.sink):
                    is_topic = isinstance(other.sink, KafkaSink)
                    exclusive = other if is_topic and _is_exclusive(other) else own
                    yield Output(exclusive.role, exclusive.sink)
                    break

    def _are_same(self, own: DeltaSink | KafkaSink, other: DeltaSink | KafkaSink) -> bool:
        if isinstance(own, KafkaSink) or isinstance(other, KafkaSink):
            both = isinstance(own, KafkaSink) and isinstance(other, KafkaSink)
            return both and _is_same_topic(own, other)  # type: ignore[arg-type] # as just seen
        try:
            return address_of(own, self._settings) == address_of(other, self._settings)
        except (OSError, RuntimeError):  # a loop of links: neither can be written
            return False


def _is_exclusive(output: Output) -> bool:
    sink = output.sink
    return isinstance(sink, DeltaSink) or sink.transactional_id_prefix is not None


def _is_same_topic(own: KafkaSink, other: KafkaSink) -> bool:
    if own.kafka.topic != other.kafka.topic:
        return False
    if own.cluster_id is not None and other.cluster_id is not None:
        return own.cluster_id == other.cluster_id
    return not _servers(own).isdisjoint(_servers(other))


def _servers(sink: KafkaSink) -> set[str]:
    return {server.strip().lower() for server in sink.kafka.bootstrap_servers.split(",")}


def _name_taken(job: "StoredJob", outputs: Sequence[Output]) -> JobConflictError:
    also = f", and writes to {outputs[0].text} as this one would" if outputs else ""
    other = "give this one another name with --name" + (" and add --append" if outputs else "")
    return JobConflictError(
        f'job {job.id} has the name "{job.name}" and is {job.state}{also}',
        hint=f"Change that job with sluice jobs update {job.id} SCRIPT, remove it with sluice jobs "
        f"rm {job.id}, or {other}.",
    )


def _output_taken(job: "StoredJob", output: Output) -> JobConflictError:
    if job.desired_state is DesiredState.REMOVED:
        return JobConflictError(
            f'{output.text} is written by job {job.id} "{job.name}", which is being removed',
            hint=f"Wait until sluice jobs get {job.id} no longer finds that job.",
        )
    return JobConflictError(
        f'{output.text} is written by job {job.id} "{job.name}", which is {job.state}',
        hint=f"Remove that job with sluice jobs rm {job.id}, or submit with --append to have the "
        "rows of both jobs there.",
    )


def _warning(job: "StoredJob", output: Output) -> str:
    if job.state is JobState.FINISHED:
        return f'{output.text} has rows of job {job.id} "{job.name}", which has finished.'
    return f'{output.text} is also written by job {job.id} "{job.name}".'
