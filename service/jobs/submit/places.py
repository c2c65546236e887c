"""Where tables of jobs may be: none in another one, and no output in place of a directory.

Compared are real paths: symbolic links and `..` are followed, and case counts for nothing, because
on some file systems it does not.
"""

import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from joins.adapters.delta.entries import has_log
from joins.adapters.store_path import StorePath
from joins.plan.connections import StoreTable
from joins.plan.errors import SinkError
from joins.plan.plan import DeltaSink, DeltaTableSource, FileSource, JoinPlan
from service.config import Settings
from service.jobs.store import plan_codec
from service.jobs.store.layout import JobLayout
from service.security.allowed import check_store, confined_path, store_address
from watermark.errors import SluiceError

_LOG = "_delta_log"
_MOST_OBJECTS = 5_000
_MOST_ENTRIES = 100_000  # that a directory is searched for tables in it
_WORDS = (b'"delta"', b'"filesystem"', b'"late_records_path":"')  # of plans that have such tables
OUTPUT, LATE, DIMENSION, FILES = "output", "late records", "dimension", "files"
Parts = tuple[str, ...]
Table = tuple[str, DeltaSink | DeltaTableSource | FileSource]


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A Delta table, or files, that a script names.

    Attributes:
        role: what the job does with it.
        written: the path as the script has it.
        real: the path without links; None in an object store.
        parts: the path to be compared.
        owner: whose it is, for people.
    """

    role: str
    written: str
    real: Path | None
    parts: Parts
    owner: str

    @classmethod
    def of(cls, named: Table, settings: Settings, owner: str) -> "TablePlace":
        """The place of a table that a script names.

        Raises:
            NotAllowedError: it is where the operator has allowed none.
        """
        role, table = named
        address = None if isinstance(table, FileSource) else store_address(table, settings)
        if address is not None and not isinstance(table, FileSource):
            check_store(table, settings)
            return cls(role, table.path, None, address_of(table, settings), owner)
        real = confined_path(table, settings).resolve()
        return cls(role, table.path, real, _parts(real), owner)


def address_of(table: DeltaSink | DeltaTableSource, settings: Settings) -> Parts:
    """Where a Delta table is, the same for every way to write its path; allowed or not.

    Raises:
        OSError: the path cannot be followed.
    """
    address = store_address(table, settings)
    if address is None:
        return _parts((settings.warehouse_dir / table.path.removeprefix("file://")).resolve())
    stored = StoreTable.of(address)
    root = f"{stored.bucket}@{stored.server(table.store)}"
    return (root, *stored.key.split("/"))


def _tables_of(plan: JoinPlan) -> tuple[Table, ...]:
    """The Delta tables and the files of a plan, and what it does with each."""
    dimensions = [d.source for d in plan.dimensions]
    tables: list[Table] = [
        (DIMENSION, source) for source in dimensions if isinstance(source, DeltaTableSource)
    ]
    tables += [(FILES, source) for source in dimensions if isinstance(source, FileSource)]
    sinks = [insert.sink for insert in plan.inserts]
    tables += [(OUTPUT, sink) for sink in sinks if isinstance(sink, DeltaSink)]
    if plan.probe.late_records is not None:
        tables.append((LATE, plan.probe.late_records))
    return tuple(tables)


def _places(tables: Iterable[Table], settings: Settings, owner: str) -> list[TablePlace]:
    return [TablePlace.of(table, settings, owner) for table in tables]


def check_places(plan: JoinPlan, settings: Settings) -> None:
    """See that what the job writes has places of its own.

    Raises:
        SinkError: an output is the warehouse, in a table or in its log, has a table in it, or is
            where late records go, or files that are joined; or late records go to a table of
            another kind.
        NotAllowedError: one is where the operator has allowed none.
    """
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
    """See that no table has come around the place of an output since it was submitted.

    Raises:
        SinkError: the output is not there yet, and is in a table or has one in it.
    """
    (place,) = _places([(OUTPUT, sink)], settings, "the job")
    if place.real is None:
        address = store_address(sink, settings) or sink.path
        check_surroundings_in_store(StorePath.of(address, sink.store), sink.path)
    elif not _is_table(place.real, place):
        _check_surroundings(place, place.real, settings)


def check_surroundings_in_store(root: StorePath, written: str) -> None:
    """See that no table is above a new one in an object store or in it, as far as is found soon.

    Args:
        root: of the table, which may be there.
        written: the path as the script has it.

    Raises:
        SinkError: one is.
        OSError: the store does not answer, or refuses.
    """
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
    is_mixed = (place.role == LATE) != (other.role == LATE) or other.role == FILES
    if place.parts == other.parts and is_mixed:
        raise _refused(place.role, place.written, f"is {whose}")


def _check_surroundings(place: TablePlace, real: Path, settings: Settings) -> None:
    """See that no table is above the place or in it, whoever has made it."""
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
    """Tables below `root`, as far as they are found soon."""
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
    """The tables of all jobs that there are."""
    if not settings.jobs_dir.is_dir():
        return
    for job_dir in settings.jobs_dir.iterdir():
        yield from _of_job(job_dir, settings)


@lru_cache(maxsize=10_000)
def _kept(plan: Path, _: int) -> tuple[Table, ...]:
    """The tables of a plan that is kept: it never changes."""
    content = plan.read_bytes()
    if not any(word in content for word in _WORDS):
        return ()
    return _tables_of(plan_codec.load(content))


def _of_job(job_dir: Path, settings: Settings) -> list[TablePlace]:
    file = JobLayout(job_dir).plan
    try:
        tables = _kept(file, file.stat().st_mtime_ns)
        return _places(tables, settings, f"job {job_dir.name}")
    except (SluiceError, OSError):  # it is gone, cannot be read, or is not allowed any more
        return []


def _refused(role: str, written: str, why: str) -> SinkError:
    return SinkError(
        f'path "{written}" of the {role} {why}',
        hint="Give it a directory of its own, in no table and with no table in it.",
    )
