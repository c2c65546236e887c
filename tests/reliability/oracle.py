"""The independent oracle: recomputes every row of a job from its sources and compares.

It imports nothing of the product and needs no Spark. It reads the probe topic, the database's
binlog from the table's creation (or, of a dimension that is a connector's topic, that topic), the
pins, `phase.json`, the coordinates (not the values) of the changelog, the output with its row
metadata, and the dead letters. What row `record` must have met follows from the binlog up to the
place that the pinned dimension version holds, or from the topic up to its offsets.

    verdict = audit(AuditInputs(...))
    assert verdict.ok, verdict.as_json()
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tests.reliability.oracle_changelog import Cut, place_of, read_cuts
from tests.reliability.oracle_history import Database, History, Numbers, read_history
from tests.reliability.oracle_log import TableLog
from tests.reliability.oracle_pins import JobWords, PinnedBatch, read_words
from tests.reliability.oracle_probe import Records, coordinates, pair, parse, read_records
from tests.reliability.oracle_topic import ForeignTopic, read_topic

Mask = npt.NDArray[np.bool_]
_EXAMPLES = 20
_LOOKED_AT = 2_000  # rows that differ, to tell a wrong version from a wrong value


@dataclass(frozen=True)
class JoinSpec:
    """What the statement says.

    Attributes:
        probe_key: field of the record that is looked up as the table's primary key.
        columns: output column → ("probe", field) or ("table", column).
        inner: a record without a match has no row.
        types: probe field → BIGINT, INT, STRING, DOUBLE or BOOLEAN; BIGINT where none is given.
    """

    probe_key: str
    columns: Mapping[str, tuple[str, str]]
    inner: bool = False
    types: Mapping[str, str] = field(default_factory=dict)

    def probe_types(self) -> dict[str, str]:
        read = [name for side, name in self.columns.values() if side == "probe"]
        return {n: self.types.get(n, "BIGINT") for n in dict.fromkeys([self.probe_key, *read])}

    def table_columns(self) -> tuple[str, ...]:
        read = [name for side, name in self.columns.values() if side == "table"]
        return tuple(dict.fromkeys(read))


@dataclass(frozen=True)
class AuditInputs:
    """Where the evidence is.

    Attributes:
        source: what tells the dimension's history.
        primary_key: of the table, one column.
        start_offsets: of the job; as `meta.json` has them where none are given.
        at_rest: everything in the topic must be answered; else only what pins name.
        known: coordinates → fields of that record, None if it cannot be joined: for odd values,
            where readings of JSON differ. The oracle reads all others by itself.
        corrected: coordinates → value of dead letters that were replayed with another value, if the
            job's own words on that are not to be believed.
    """

    bootstrap_servers: str
    topic: str
    source: Database | ForeignTopic
    primary_key: str
    job_directory: Path
    dimension: str
    output: Path
    dead_letters: Path
    join: JoinSpec
    start_offsets: Mapping[int, int] | None = None
    at_rest: bool = True
    known: Mapping[tuple[int, int], Mapping[str, Any] | None] = field(default_factory=dict)
    corrected: Mapping[tuple[int, int], bytes | None] = field(default_factory=dict)
    changelog_partitions: int | None = None


@dataclass
class Verdict:
    """What the audit found.

    Attributes:
        records: that had to be answered.
        lost: answered by nothing.
        duplicate: rows more than there must be.
        phantom: rows of records that are not there or must have none.
        wrong_version: rows of another dimension version than their batch's pin names.
        wrong_value: rows whose values no version of their key had.
        early: rows joined before the copy was complete.
        torn: batches that are not one commit of exactly their pin's records.
        pin_regression: pins that go back, overlap, leave a gap or are missing.
        dead_letter_mismatch: dead letters of good records, missing, doubled, changed or unreasoned.
        unproven: rows whose version is only known to lie in a span of the binlog.
        unreadable: records that retention took before the audit.
    """

    records: int = 0
    rows: int = 0
    dead: int = 0
    lost: int = 0
    duplicate: int = 0
    phantom: int = 0
    wrong_version: int = 0
    wrong_value: int = 0
    early: int = 0
    torn: int = 0
    pin_regression: int = 0
    dead_letter_mismatch: int = 0
    unproven: int = 0
    unreadable: int = 0
    examples: list[str] = field(default_factory=list)

    FAULTS = (
        "lost",
        "duplicate",
        "phantom",
        "wrong_version",
        "wrong_value",
        "early",
        "torn",
        "pin_regression",
        "dead_letter_mismatch",
        "unreadable",
    )

    @property
    def ok(self) -> bool:
        return not self.faults()

    def faults(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.FAULTS if getattr(self, name)}

    def note(self, fault: str, count: int, example: str) -> None:
        setattr(self, fault, getattr(self, fault) + count)
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"{fault}: {example}")

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


@dataclass(frozen=True)
class World:
    """What happened outside the job; read it once when several audits look at the same."""

    records: Records
    history: History


def read_world(inputs: AuditInputs) -> World:
    """The stream and the table's history up to now."""
    start = inputs.start_offsets
    if start is None:
        start = read_words(inputs.job_directory, inputs.output).start
    records = read_records(inputs.bootstrap_servers, inputs.topic, inputs.join.probe_types(), start)
    columns, source = inputs.join.table_columns(), inputs.source
    if isinstance(source, ForeignTopic):
        return World(records, read_topic(source, inputs.primary_key, columns))
    return World(records, read_history(source, inputs.primary_key, columns))


def audit(inputs: AuditInputs, world: World | None = None) -> Verdict:
    """Judge a job at rest (or, with `at_rest` False, what it has committed).

    Raises:
        OracleRefusalError: the evidence is of a kind that the oracle cannot judge.
    """
    case = _Case(inputs, world or read_world(inputs))
    case.check_pins()
    case.check_commits()
    case.check_dead_letters()
    case.check_rows()
    return case.verdict


@dataclass(frozen=True)
class _Rows:
    """Rows of the output with their coordinates.

    Attributes:
        commit: the version of the output's table that added each row.
    """

    table: pa.Table
    coordinates: Numbers
    batch: Numbers
    commit: Numbers


def _read_table(root: Path) -> tuple[pa.Table, Numbers]:
    """All rows of a Delta table, each with the commit that added its file."""
    log = TableLog(root)
    origin = {file: c.version for c in log.commits() for file in c.added}
    tables: list[pa.Table] = []
    commits: list[Numbers] = []
    for file in sorted(log.files_at(log.newest)):
        table = log.read(file)
        if table is None:
            raise FileNotFoundError(f"{root} names {file}, which is gone")
        tables.append(table)
        commits.append(np.full(table.num_rows, origin.get(file, -1), dtype=np.int64))
    empty = np.zeros(0, dtype=np.int64)
    if not tables:
        return pa.table({}), empty
    return pa.concat_tables(tables, promote_options="permissive"), np.concatenate(commits)


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return np.asarray(pc.fill_null(column, -1).to_numpy(), dtype=np.int64)


class _Case:
    """One audit."""

    def __init__(self, inputs: AuditInputs, world: World) -> None:
        self.inputs = inputs
        self.records = world.records
        self.history = world.history
        self.words: JobWords = read_words(inputs.job_directory, inputs.output)
        self.verdict = Verdict()
        self.start = dict(inputs.start_offsets or self.words.start)

    # Records
    # ------------------------------------------------------------------------------------------

    def place(self, where: tuple[int, int]) -> int:
        wanted = coordinates([where[0]], [where[1]])
        return int(np.searchsorted(self.records.coordinates, wanted)[0])

    @cached_property
    def bad(self) -> Mask:
        """The records that cannot be joined as they are."""
        found = self.records.bad.copy()
        for where, fields in self.inputs.known.items():
            found[self.place(where)] = fields is None
        return found

    @cached_property
    def fields(self) -> Mapping[str, list[Any]]:
        """The records' fields, those of corrected dead letters as they are now."""
        types = self.inputs.join.probe_types()
        changed: dict[int, tuple[Any, ...]] = {
            self.place(where): tuple(fields[name] for name in types)
            for where, fields in self.inputs.known.items()
            if fields is not None
        }
        for where, value in self.corrections.items():
            changed[self.place(where)] = parse(value, types)
        found = dict(self.records.fields)
        for at, name in enumerate(types) if changed else ():
            found[name] = list(found[name])
            for place, fields in changed.items():
                found[name][place] = fields[at]
        return found

    @cached_property
    def corrections(self) -> Mapping[tuple[int, int], bytes]:
        told = {**self.words.replayed, **self.inputs.corrected}
        return {where: value for where, value in told.items() if value is not None}

    @cached_property
    def corrected(self) -> Mask:
        found = np.zeros(len(self.records.coordinates), dtype=np.bool_)
        found[[self.place(where) for where in self.corrections]] = True
        return found

    @cached_property
    def batches(self) -> Numbers:
        """The batch whose pin names each record, -1 for none."""
        found = np.full(len(self.records.coordinates), -1, dtype=np.int64)
        for pin in self.words.pins.values():
            for partition, end in pin.end.items():
                low, high = np.searchsorted(
                    self.records.coordinates,
                    coordinates([partition] * 2, [pin.start.get(partition, 0), end]),
                )
                found[low:high] = pin.batch
        return found

    @cached_property
    def due(self) -> Mask:
        """The records that must be answered: all, but not those an operator gave up."""
        due = np.ones(len(self.records.coordinates), dtype=np.bool_)
        if not self.inputs.at_rest:
            due = self.batches >= 0
            due &= np.isin(self.batches, list(self.words.commits))
        for partition, start, end in self.words.gaps:
            ends = coordinates([partition] * 2, [start, end])
            low, high = np.searchsorted(self.records.coordinates, ends)
            due[low:high] &= self.batches[low:high] >= 0
        return due

    # Pins and commits
    # ------------------------------------------------------------------------------------------

    def check_pins(self) -> None:
        """Pins follow each other without gap, and nothing in them goes back."""
        pins = list(self.words.pins.values())
        if self.words.commits and not pins:
            self.verdict.note("pin_regression", 1, "there are commits and no pins")
        before: PinnedBatch | None = None
        for pin in pins:
            self._check_pin(before, pin)
            before = pin
        for batch in sorted(set(self.words.commits) - set(self.words.pins)):
            self.verdict.note("pin_regression", 1, f"batch {batch} is committed and has no pin")

    def _check_pin(self, before: PinnedBatch | None, pin: PinnedBatch) -> None:
        name = f"pin {pin.batch}"
        if before is None:
            expected = self.start if pin.batch == 0 else dict(pin.start)
        else:
            expected = dict(before.end)
            skipped = set(range(before.batch + 1, pin.batch))
            if not skipped <= self.words.abandoned:
                self.verdict.note("pin_regression", 1, f"{name} follows pin {before.batch}")
            self._check_order(before, pin)
        for partition, end in pin.end.items():
            start, wanted = pin.start.get(partition, 0), expected.get(partition, 0)
            if end < start:
                self.verdict.note("pin_regression", 1, f"{name}: {partition} ends before it starts")
            if start != wanted and not self._is_gap(partition, wanted, start):
                self.verdict.note(
                    "pin_regression", 1, f"{name}: {partition} starts at {start}, not at {wanted}"
                )
        for partition in sorted(set(expected) - set(pin.end)):
            self.verdict.note("pin_regression", 1, f"{name} is without partition {partition}")

    def _check_order(self, before: PinnedBatch, pin: PinnedBatch) -> None:
        name = f"pin {pin.batch}"
        for dimension, version in before.versions.items():
            if pin.versions.get(dimension, -1) < version:
                self.verdict.note("pin_regression", 1, f"{name}: {dimension} goes back")
        if pin.at_ms < before.at_ms:
            self.verdict.note("pin_regression", 1, f"{name}: time goes back")
        if pin.epoch < before.epoch:
            self.verdict.note("pin_regression", 1, f"{name}: epoch goes back")

    def _is_gap(self, partition: int, start: int, end: int) -> bool:
        return any(p == partition and a <= start and end <= b for p, a, b in self.words.gaps)

    def check_commits(self) -> None:
        """Each pinned batch is one commit with the pin's words; only the newest may be open."""
        newest = max(self.words.pins, default=-1)
        for batch, pin in self.words.pins.items():
            commits = self.words.commits.get(batch, ())
            if not commits and (self.inputs.at_rest or batch < newest):
                self.verdict.note("torn", 1, f"batch {batch} has a pin and no commit")
            if len(commits) > 1:
                versions = [commit.version for commit in commits]
                self.verdict.note("torn", 1, f"batch {batch} has commits {versions}")
            for commit in commits:
                if commit.pin is not None and commit.pin != pin:
                    self.verdict.note(
                        "pin_regression", 1, f"commit of batch {batch} says {commit.pin}, not {pin}"
                    )

    # Dead letters
    # ------------------------------------------------------------------------------------------

    def check_dead_letters(self) -> None:
        """Exactly the bad records, each once, with its bytes and a reason."""
        table, _ = _read_table(self.inputs.dead_letters)
        found = np.zeros(len(self.records.coordinates), dtype=np.int64)
        for row in table.to_pylist():
            self._check_letter(row, found)
        self.verdict.dead = table.num_rows
        missing = np.flatnonzero(self.bad & (found == 0) & self.due)
        if len(missing):
            self._note_records("dead_letter_mismatch", missing, "is bad and no dead letter")

    def _check_letter(self, row: Mapping[str, Any], found: Numbers) -> None:
        where = (row["partition"], row["offset"])
        wanted = int(coordinates([where[0]], [where[1]])[0])
        at = int(np.searchsorted(self.records.coordinates, wanted))
        if at >= len(found) or self.records.coordinates[at] != wanted:
            if not self._was_unreadable(*where):
                self.verdict.note("dead_letter_mismatch", 1, f"{where} is no record")
            return
        found[at] += 1
        told = "comes twice" if found[at] > 1 else None
        if row["topic"] != self.inputs.topic:
            told = f"names topic {row['topic']}"
        elif not self.bad[at]:
            told = f"is good, but: {row['reason']}"
        elif row["value"] != self.records.values.get(at, row["value"]):
            told = "has another value"
        elif not row["reason"]:
            told = "has no reason"
        if told:
            self.verdict.note("dead_letter_mismatch", 1, f"dead letter {where} {told}")

    def _was_unreadable(self, partition: int, offset: int) -> bool:
        return self.start.get(partition, 0) <= offset < self.records.begin.get(partition, 0)

    def _note_records(self, fault: str, at: Numbers, told: str) -> None:
        first = [pair(self.records.coordinates[i]) for i in at[:3]]
        batches = sorted({int(b) for b in self.batches[at[:1000]]})[:5]
        self.verdict.note(
            fault, len(at), f"{len(at)} records ({first} …, batches {batches}) {told}"
        )

    # Rows
    # ------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> _Rows:
        table, commits = _read_table(self.inputs.output)
        if table.num_rows == 0:
            empty = np.zeros(0, dtype=np.int64)
            return _Rows(table, empty, empty, empty)
        where = coordinates(_numbers(table["_partition"]), _numbers(table["_offset"]))
        return _Rows(table, where, _numbers(table["_batch"]), commits)

    def check_rows(self) -> None:
        """Every record's row is there once and says what it must."""
        rows, verdict = self.rows, self.verdict
        verdict.records = int(self.due.sum())
        verdict.rows = rows.table.num_rows
        self._count_unreadable()
        at = np.searchsorted(self.records.coordinates, rows.coordinates)
        at = np.minimum(at, max(0, len(self.records.coordinates) - 1))
        known = np.zeros(len(at), dtype=np.bool_)
        if len(self.records.coordinates):
            known = self.records.coordinates[at] == rows.coordinates
        self._check_phantoms(known)
        if rows.table.num_rows:
            self._check_torn(at, known)
            self._check_early()
        answers = _Answers(self, at, known)
        answers.check_counts()
        if known.any():
            answers.check_versions()
            answers.check_values()

    def _count_unreadable(self) -> None:
        for partition, begin in self.records.begin.items():
            start = self.start.get(partition, 0)
            if begin > start and not self._is_gap(partition, start, begin):
                self.verdict.note(
                    "unreadable", begin - start, f"partition {partition} begins at {begin}"
                )

    def _check_phantoms(self, known: Mask) -> None:
        strange = np.flatnonzero(~known)
        lost = [pair(c) for c in self.rows.coordinates[strange]]
        strange_pairs = [where for where in lost if not self._was_unreadable(*where)]
        if strange_pairs:
            self.verdict.note(
                "phantom", len(strange_pairs), f"rows of no record {strange_pairs[:3]}"
            )
        if self.rows.table.num_rows:
            topics = pc.unique(self.rows.table["_topic"]).to_pylist()
            if topics != [self.inputs.topic]:
                self.verdict.note("phantom", 1, f"rows of topics {topics}")

    def _check_torn(self, at: Numbers, known: Mask) -> None:
        rows = self.rows
        away = known & (self.batches[at] != rows.batch)
        if away.any():
            first = np.flatnonzero(away)[0]
            told = f"{pair(rows.coordinates[first])} has batch {rows.batch[first]}"
            batches = len(np.unique(rows.batch[away]))
            self.verdict.note("torn", batches, f"{told}, a pin says {self.batches[at[first]]}")
        replayed = np.isin(rows.coordinates, self._replayed())
        pairs = np.unique(np.stack([rows.batch, rows.commit])[:, ~replayed], axis=1)
        batches, counts = np.unique(pairs[0], return_counts=True)
        for batch in batches[counts > 1]:
            self.verdict.note("torn", 1, f"rows of batch {batch} came in several commits")

    def _replayed(self) -> Numbers:
        pairs = list(self.corrections)
        return coordinates(*zip(*pairs, strict=True)) if pairs else np.zeros(0, dtype=np.int64)

    def _check_early(self) -> None:
        opening, rows = self.words.opening, self.rows
        if opening is None:
            self.verdict.note("early", rows.table.num_rows, "there are rows and no opening")
            return
        first = int(opening["versions"][self.inputs.dimension])
        opened = self.cuts.get(first)
        if opened is None or (opened.certain and not opened.complete):
            self.verdict.note("early", rows.table.num_rows, f"version {first} is no complete copy")
            return
        if opened.certain and not self.history.is_whole(opened.whole):
            told = f"version {first} has not the whole of a snapshot"
            self.verdict.note("early", rows.table.num_rows, told)
            return
        for batch in np.unique(rows.batch).tolist():
            pin = self.words.pins.get(batch)
            if pin is None:
                continue
            version = pin.versions.get(self.inputs.dimension, -1)
            if version < first or pin.at_ms < opening["opened_at_ms"]:
                count = int((rows.batch == batch).sum())
                self.verdict.note("early", count, f"batch {batch} is older than the opening")

    @cached_property
    def cuts(self) -> Mapping[int, Cut]:
        """What the pinned versions hold, and the opening's."""
        dimension = self.inputs.dimension
        wanted = {
            p.versions[dimension] for p in self.words.pins.values() if dimension in p.versions
        }
        if self.words.opening is not None:
            wanted.add(int(self.words.opening["versions"][dimension]))
        changelog = self.inputs.job_directory / "tables" / dimension / "changelog"
        if not wanted:
            return {}
        by_offset = self.history.by_offset
        return read_cuts(changelog, wanted, self.inputs.changelog_partitions, by_offset=by_offset)


class _Answers:
    """What each record must have got, and what it got."""

    def __init__(self, case: _Case, at: Numbers, known: Mask) -> None:
        self.case = case
        self.join = case.inputs.join
        self.row_of = np.flatnonzero(known)  # rows of the output that have a record
        self.at = at[known]  # their records
        self.good = case.due & (~case.bad | case.corrected)

    # What must be
    # ------------------------------------------------------------------------------------------

    @cached_property
    def keys(self) -> Numbers:
        """The number of each record's key in the history, -1 for none."""
        case, versions = self.case, self._versions()
        levels = np.zeros(len(versions), dtype=np.int64)
        for version, cut in case.cuts.items():
            levels[versions == version] = case.history.level(cut.whole)
        return case.history.codes(case.fields[self.join.probe_key], levels)

    @cached_property
    def span(self) -> tuple[Numbers, Numbers]:
        """For each record the oldest and the newest change of its key that it may have met."""
        case, history = self.case, self.case.history
        partitions = self._partitions()
        of_key = history.partitions(partitions)
        key_partition = np.where(self.keys >= 0, of_key[np.maximum(self.keys, 0)], 0)
        versions = self._versions()
        wanted = np.unique(versions)
        index = np.searchsorted(wanted, versions)
        low = np.zeros((len(wanted), partitions), dtype=np.int64)
        high = np.full((len(wanted), partitions), history.count, dtype=np.int64)
        for row, version in enumerate(wanted.tolist()):
            cut = case.cuts.get(version)
            for partition in range(partitions) if cut is not None else ():
                places = place_of(cut.low, partition), place_of(cut.high or {}, partition)
                ends = [history.before(history.place(partition, place)) for place in places]
                low[row, partition] = ends[0]
                if cut.high is not None:
                    high[row, partition] = ends[1]
        from_change, to_change = low[index, key_partition], high[index, key_partition]
        return history.at(self.keys, from_change), history.at(self.keys, to_change)

    def _partitions(self) -> int:
        given = self.case.inputs.changelog_partitions
        named = [p for cut in self.case.cuts.values() for p in cut.low]
        return given or max(named, default=0) + 1

    def _versions(self) -> Numbers:
        """The pinned version of each record, -1 for none."""
        dimension = self.case.inputs.dimension
        pins = self.case.words.pins
        newest = max(pins, default=-1)
        of_batch = np.full(newest + 2, -1, dtype=np.int64)
        for batch, pin in pins.items():
            of_batch[batch] = pin.versions.get(dimension, -1)
        return np.asarray(of_batch[self.case.batches])

    def _has_row(self, change: Numbers) -> Mask:
        deleted = self.case.history.deleted
        if not len(deleted):
            return np.zeros(len(change), dtype=np.bool_)
        return np.asarray((change >= 0) & ~deleted[np.maximum(change, 0)])

    # Checks
    # ------------------------------------------------------------------------------------------

    def check_counts(self) -> None:
        """Nothing lost, nothing twice, no row for what must have none."""
        case = self.case
        counts = np.bincount(self.at, minlength=len(case.records.coordinates))
        least = self.good.astype(np.int64)
        most = least.copy()
        if self.join.inner:
            low, high = (self._has_row(change) for change in self.span)
            least, most = least * (low & high), most * (low | high)
        faults = {
            "lost": (counts < least) & case.due,
            "duplicate": (counts > 1),
            "phantom": (counts > 0) & (most == 0) & case.due,
        }
        told = {
            "lost": "have no row",
            "duplicate": "have several rows",
            "phantom": "must have none",
        }
        for fault, mask in faults.items():
            if mask.any():
                case._note_records(fault, np.flatnonzero(mask), told[fault])

    def check_versions(self) -> None:
        """The row metadata names the pinned version."""
        case = self.case
        told = case.rows.table["_dimension_versions"].combine_chunks().dictionary_encode()
        told = told if isinstance(told, pa.DictionaryArray) else told.combine_chunks()
        known = [_version_in(text, case.inputs.dimension) for text in told.dictionary.to_pylist()]
        versions = np.array([*known, -2], dtype=np.int64)[pc.fill_null(told.indices, -1)]
        wrong = versions[self.row_of] != self._versions()[self.at]
        self.wrong = wrong
        if wrong.any():
            first = self.row_of[np.flatnonzero(wrong)[0]]
            where = pair(case.rows.coordinates[first])
            pinned = self._versions()[self.at][np.flatnonzero(wrong)[0]]
            case.verdict.note(
                "wrong_version",
                int(wrong.sum()),
                f"{where} says {versions[first]}, pinned {pinned}",
            )

    def check_values(self) -> None:
        """Each column is what the record and the binlog say."""
        case = self.case
        low, high = (change[self.at] for change in self.span)
        exact = low == high
        case.verdict.unproven = int((~exact).sum())
        different = np.zeros(len(self.at), dtype=np.bool_)
        strange = np.zeros(len(self.at), dtype=np.bool_)
        for name, (side, source) in self.join.columns.items():
            found = case.rows.table[name].combine_chunks().take(pa.array(self.row_of))
            if side == "probe":
                expected = pa.array(case.fields[source], found.type).take(pa.array(self.at))
                strange |= _differ(found, expected)
            else:
                column = case.history.column(source, found.type)
                expected = column.take(pa.array(high, mask=high < 0))
                different |= _differ(found, expected)
        self._judge(different & ~strange & ~self.wrong, low, high)
        if strange.any():
            first = pair(case.rows.coordinates[self.row_of[np.flatnonzero(strange)[0]]])
            case.verdict.note("wrong_value", int(strange.sum()), f"{first} has other fields")

    def _judge(self, different: Mask, low: Numbers, high: Numbers) -> None:
        """Rows that differ from the pinned state: another state of the key, or none at all."""
        exact = low == high
        doubted = [*np.flatnonzero(different & ~exact), *np.flatnonzero(different & exact)]
        for number, row in enumerate(doubted):
            if exact[row] and number >= _LOOKED_AT:
                told = "further rows that differ, not looked at singly"
                self.case.verdict.note("wrong_version", len(doubted) - number, told)
                break
            place = self._met(row)
            if place is not None and low[row] <= place <= high[row] and not exact[row]:
                continue
            fault = "wrong_value" if place is None else "wrong_version"
            where = pair(self.case.rows.coordinates[self.row_of[row]])
            batch = int(self.case.rows.batch[self.row_of[row]])
            self.case.verdict.note(
                fault,
                1,
                f"{where} of batch {batch} met {place}, expected {low[row]} to {high[row]}",
            )

    def _met(self, row: int) -> int | None:
        """The change of the row's key whose state the row shows, -1 for none, None for no state."""
        case, history = self.case, self.case.history
        table = case.rows.table.slice(int(self.row_of[row]), 1).to_pylist()[0]
        shown = {
            source: table[n] for n, (side, source) in self.join.columns.items() if side == "table"
        }
        code = int(self.keys[self.at[row]])
        places = history.span(code) if code >= 0 else range(0)
        for place in reversed(places):
            if all(history.columns[name][place] == value for name, value in shown.items()):
                return place
        return -1 if all(value is None for value in shown.values()) else None


def _version_in(text: str | None, dimension: str) -> int:
    parts = dict(item.split("=", 1) for item in (text or "").split(",") if "=" in item)
    return int(parts.get(dimension, -2))


def _differ(found: pa.Array, expected: pa.Array) -> Mask:
    same = pc.fill_null(pc.equal(found, expected), False)
    nulls = pc.and_(pc.is_null(found), pc.is_null(expected))
    return ~np.asarray(pc.or_(same, nulls).to_numpy(zero_copy_only=False), dtype=np.bool_)
