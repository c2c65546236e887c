"""Batches of `join.late-rows.wait`: each record leaves once, with a match or at its bound."""

from dataclasses import dataclass, field, fields, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.index.index import remove_versions
from joins.kernels.probe.arrival_files import WaitingFile
from joins.kernels.probe.probe import kernel_spec, waited_columns
from joins.lookback.event_replay import state_differences
from joins.plan.plan import Field, JoinType, KeyPair
from joins.plan.types import Call, Column, Constant, SqlType, TypeName
from joins.worker.late_rows import _KeyHashes, _NewRows
from joins.worker.probe_task import ProbeTask
from tests.support.late_batches import WAIT_MS, WAITING_PLAN, LateJob
from tests.support.laws import examples

T = 1_000_000
BOOLEAN, BIGINT = SqlType(TypeName.BOOLEAN), SqlType(TypeName.BIGINT)


def click(user):
    return {"user_id": user}


def inner(plan=WAITING_PLAN):
    return replace(plan, joins=(replace(plan.joins[0], join_type=JoinType.INNER),))


@pytest.fixture
def job(tmp_path):
    return LateJob(tmp_path)


def test_a_record_waits_and_is_joined_when_its_row_is_there(job):
    first = job.run({0: [click(1), click(2)]}, T)
    assert (first.rows, first.counts["waited"], first.state.waiting) == ([], 2, 2)
    job.change({1: "ann"})
    second = job.run({}, T + 10)
    assert second.rows == [(0, 0, "ann")]
    assert (second.counts["matched"], second.counts["unmatched"]) == (1, 0)
    assert second.state.waiting == 1
    sums = {"late_matched": 1, "late_expired": 0, "late_corrected": 0}
    assert second.state.late_rows == {**sums, "tried": {"users": 2}}


@pytest.mark.parametrize(("early_ms", "leaves"), [(1, False), (0, True)], ids=["before", "at"])
def test_the_bound_is_exact_on_the_pinned_clock(job, early_ms, leaves):
    job.run({0: [click(1)]}, T)
    done = job.run({}, T + WAIT_MS - early_ms)
    assert done.rows == ([(0, 0, None)] if leaves else [])
    assert done.state.waiting == (0 if leaves else 1)
    assert done.counts.get("unmatched", 0) == int(leaves)


def test_a_row_that_comes_with_the_bound_still_matches(job):
    job.run({0: [click(1)]}, T)
    job.change({1: "ann"})
    done = job.run({}, T + 10 * WAIT_MS)
    assert done.rows == [(0, 0, "ann")]
    assert done.state.late_rows["late_expired"] == 0


def test_inner_join_gives_a_record_at_its_bound_to_the_late_records(tmp_path):
    job = LateJob(tmp_path, inner())
    assert job.run({0: [click(1)], 1: [click(2)]}, T).late == []
    job.change({2: "bob"})
    done = job.run({}, T + WAIT_MS)
    assert (done.rows, done.late) == ([(1, 0, "bob")], [(0, 0)])
    assert (done.state.late, done.state.late_rows["late_expired"]) == (1, 1)


def test_null_as_key_matches_nothing_and_does_not_wait(job):
    assert job.run({0: [click(None), click(5)]}, T).rows == [(0, 0, None)]


def test_a_record_that_cannot_be_read_is_dead_at_once(job):
    done = job.run({0: [b"{", click(5)]}, T)
    assert (done.dead, done.counts["waited"]) == ([(0, 0)], 1)


def test_waiting_records_of_a_key_come_before_newer_ones_in_offset_order(job):
    job.run({0: [click(1), click(2)]}, T)
    job.run({0: [click(1)]}, T + 1)
    job.change({1: "ann"})
    done = job.run({0: [click(1), click(2), click(1)]}, T + 2)
    assert done.rows == [(0, 0, "ann"), (0, 2, "ann"), (0, 3, "ann"), (0, 5, "ann")]


def test_a_condition_of_on_belongs_to_the_match(tmp_path):
    condition = Call("<>", (Column("u", "name", SqlType(TypeName.STRING)),) * 2, BOOLEAN)
    join = replace(WAITING_PLAN.joins[0], condition=condition)
    job = LateJob(tmp_path, replace(WAITING_PLAN, joins=(join,)))
    job.change({1: "ann"})
    assert job.run({0: [click(1)]}, T).rows == []
    assert job.run({}, T + WAIT_MS).rows == [(0, 0, None)]


def test_a_batch_looks_up_waiting_rows_only_in_a_new_version(job):
    job.run({0: [click(1)]}, T)
    before = job.log.newest_files()
    assert job.run({0: [click(2)]}, T + 1).counts["waited"] == 1
    assert before[0] in job.log.newest_files()
    job.change({7: "eve"})
    job.run({}, T + 2)
    assert before[0] in job.log.newest_files(), "no row of the file has left"


def test_many_small_files_are_merged(job):
    for number in range(20):
        job.run({0: [click(number)]}, T + number)
    files = job.log.newest_files()
    assert (len(files), sum(each.rows for each in files)) == (4, 20)
    job.change({number: f"n{number}" for number in range(20)})
    assert [row[1] for row in job.run({}, T + 50).rows] == list(range(20))
    assert job.log.newest_files() == ()


def test_a_record_waits_until_all_tables_have_a_match(tmp_path):
    (first,) = WAITING_PLAN.joins
    friend = Call("+", (Column("c", "user_id", BIGINT), Constant("10", BIGINT)), BIGINT)
    second = replace(first, alias="v", keys=(KeyPair(friend, "id"),))
    job = LateJob(tmp_path, replace(WAITING_PLAN, joins=(first, second)))
    job.run({0: [click(1)]}, T)
    job.change({1: "ann"})
    assert job.run({}, T + 1).rows == []
    job.change({11: "bob"})
    assert job.run({}, T + 2).rows == [], "the row of the first table is gone again"
    job.change({1: "ann", 11: "bob"})
    assert job.run({}, T + 3).rows == [(0, 0, "ann")]


def test_a_bounded_stream_ends_behind_its_last_late_row(job):
    job.run({0: [click(1)]}, T)
    assert job.log.next_due(job.state.release_ms) == T
    job.run({}, T + WAIT_MS)
    assert (job.log.next_due(job.state.release_ms), job.state.has_ended) == (None, True)


BATCHES = st.lists(
    st.tuples(
        st.lists(st.sampled_from([None, 1, 2, 3, 4]), max_size=4),
        st.lists(st.sampled_from([None, 1, 2, 3, 4]), max_size=3),
        st.dictionaries(st.integers(1, 4), st.sampled_from(["a", "b"]), max_size=3) | st.none(),
        st.sampled_from([0, 1, 300, WAIT_MS - 1, WAIT_MS]),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=9,
)


def assert_none_overtakes(rows, key_of, left):
    """Records of one key of one partition leave in their order; `left` has the newest of each."""
    for partition, offset, _ in rows:
        key = partition, key_of[partition, offset]
        assert left.get(key, -1) < offset
        left[key] = offset


@settings(deadline=None, max_examples=examples(100))
@given(st.booleans(), BATCHES)
def test_each_record_leaves_once_with_its_match_or_at_its_bound(tmp_path_factory, is_inner, made):
    job = LateJob(tmp_path_factory.mktemp("late"), inner() if is_inner else WAITING_PLAN)
    now, users, waiting, placed = T, {}, {}, {0: 0, 1: 0}
    key_of, left = {}, {}
    for zero, one, change, passed, crashes in made:
        now += passed
        if change is not None:
            users = change
            job.change(change, whole=passed == 1)
        arrived = {}
        for partition, keys in enumerate((zero, one)):
            for key in keys:
                arrived[partition, placed[partition]] = (key, now)
                key_of[partition, placed[partition]] = key
                placed[partition] += 1
        rows, late, still = set(), set(), {}
        for place, (key, since) in {**waiting, **arrived}.items():
            if key in users:
                rows.add((*place, users[key]))
            elif key is not None and now < since + WAIT_MS:
                still[place] = (key, since)
            elif not is_inner:
                rows.add((*place, None))
            elif key is not None:
                late.add(place)
        records = {0: [click(key) for key in zero], 1: [click(key) for key in one]}
        done = job.run(records, now, crashes=crashes)
        assert sorted(done.rows, key=str) == sorted(rows, key=str)
        assert sorted(done.late) == sorted(late)
        assert done.state.waiting == len(still) == sum(f.rows for f in job.log.newest_files())
        for partition in placed:
            offsets = [row[1] for row in done.rows if row[0] == partition]
            assert offsets == sorted(offsets), "rows of one partition are in the order of records"
        assert_none_overtakes(done.rows, key_of, left)
        waiting = still
    for at, (_, _, outcome) in enumerate(job.done):
        again = job.again(at)
        names = [name for each in again.answers for name in each.rows.column("name").to_pylist()]
        assert sorted(names, key=str) == sorted((row[2] for row in outcome.rows), key=str)
        assert state_differences(outcome.state, again.after) is None


# Corrections
# --------------------------------------------------------------------------------------------------

CORRECT_MS = 3 * WAIT_MS


def correcting(plan=WAITING_PLAN):
    tables = (replace(each, late_correct_ms=CORRECT_MS) for each in plan.dimensions)
    return replace(plan, dimensions=tuple(tables))


def test_a_row_after_the_bound_corrects_the_record_once(tmp_path):
    job = LateJob(tmp_path, correcting())
    job.run({0: [click(1), click(2)]}, T)
    assert job.run({}, T + WAIT_MS).rows == [(0, 0, None), (0, 1, None)]
    job.change({1: "ann"})
    corrected = job.run({}, T + WAIT_MS + 1)
    assert (corrected.rows, corrected.state.late_rows["late_corrected"]) == ([(0, 0, "ann")], 1)
    assert (corrected.state.waiting, corrected.counts["unmatched"]) == (0, 0)
    job.change({1: "eve"})
    assert job.run({}, T + WAIT_MS + 2).rows == []


@pytest.mark.parametrize(("early_ms", "names"), [(1, ["bob"]), (0, [])], ids=["before", "at"])
def test_the_bound_of_corrections_is_exact_on_the_pinned_clock(tmp_path, early_ms, names):
    job = LateJob(tmp_path, correcting())
    job.run({0: [click(1)]}, T)
    job.run({}, T + WAIT_MS)
    job.change({1: "bob"})
    done = job.run({}, T + WAIT_MS + CORRECT_MS - early_ms)
    assert [row[2] for row in done.rows] == names
    job.run({}, T + WAIT_MS + CORRECT_MS)
    job.change({7: "eve"})
    job.run({}, T + WAIT_MS + CORRECT_MS + 1)
    assert job.log.newest_files() == ()


def test_a_record_whose_bounds_pass_while_the_job_stands_still_goes_out_once(tmp_path):
    job = LateJob(tmp_path, correcting())
    job.run({0: [click(1)]}, T)
    job.change({1: "ann"})
    assert job.run({}, T + 9 * CORRECT_MS).rows == [(0, 0, "ann")]
    job.run({0: [click(2)]}, T + 9 * CORRECT_MS)
    assert job.run({}, T + 99 * CORRECT_MS).rows == [(0, 1, None)]
    assert job.log.newest_files() == ()


def test_a_bounded_stream_does_not_wait_for_corrections(tmp_path):
    job = LateJob(tmp_path, correcting())
    job.run({0: [click(1)]}, T)
    job.run({}, T + WAIT_MS)
    assert (len(job.log.newest_files()), job.log.next_due(job.state.release_ms)) == (1, None)


def test_a_record_that_dies_at_its_bound_is_not_corrected(tmp_path):
    """The output's column is NOT NULL, so the row with NULL is a dead letter."""
    (first, name) = WAITING_PLAN.output
    plan = correcting(replace(WAITING_PLAN, output=(first, replace(name, nullable=False))))
    job = LateJob(tmp_path, plan)
    job.run({0: [click(1)]}, T)
    done = job.run({}, T + WAIT_MS)
    assert (done.dead, done.rows) == ([(0, 0)], [])
    job.change({1: "ann"})
    assert job.run({}, T + WAIT_MS + 1).rows == []


SINCE = st.tuples(
    st.lists(st.sampled_from([None, 1, 2, 3, 4]), max_size=4),
    st.lists(st.sampled_from([None, 1, 2, 3, 4]), max_size=2),
    st.dictionaries(st.integers(1, 4), st.sampled_from(["a", "b"]), max_size=3) | st.none(),
    st.sampled_from([0, 1, 300, WAIT_MS - 1, WAIT_MS, CORRECT_MS, WAIT_MS + CORRECT_MS]),
    st.integers(0, 1),
)


@dataclass
class Corrected:
    """A model of records: of each its key, since when it waits, and if it is out with NULL."""

    users: dict = field(default_factory=dict)
    kept: dict = field(default_factory=dict)
    placed: dict = field(default_factory=lambda: {0: 0, 1: 0})
    corrected: int = 0

    def batch(self, now, arrived):
        for partition, keys in enumerate(arrived):
            for key in keys:
                self.kept[partition, self.placed[partition]] = (key, now, False)
                self.placed[partition] += 1
        rows, still = set(), {}
        for place, (key, since, is_out) in self.kept.items():
            is_gone = now >= since + WAIT_MS + CORRECT_MS
            if is_out and is_gone:
                continue
            if key in self.users:
                rows.add((*place, self.users[key]))
                self.corrected += is_out
                continue
            goes_out = key is None or (not is_out and now >= since + WAIT_MS)
            if goes_out:
                rows.add((*place, None))
            if key is not None and not is_gone:
                still[place] = (key, since, is_out or goes_out)
        self.kept = still
        return rows


@settings(deadline=None, max_examples=examples(100))
@given(st.booleans(), st.lists(SINCE, min_size=1, max_size=9))
def test_each_record_is_corrected_at_most_once_and_in_time(tmp_path_factory, by_changes, made):
    """Against a model of records; each batch is made again from its pin."""
    plan = correcting()
    if not by_changes:  # a condition that holds: all rows are looked up
        condition = Call("=", (Column("u", "id", BIGINT),) * 2, BOOLEAN)
        plan = replace(plan, joins=(replace(plan.joins[0], condition=condition),))
    job = LateJob(tmp_path_factory.mktemp("late"), plan)
    assert bool(waited_columns(job.task.kernel)) == by_changes
    now, model = T, Corrected()
    for zero, one, change, passed, crashes in made:
        now += passed
        if change is not None:
            model.users = change
            job.change(change, whole=passed == 1)
        rows = model.batch(now, (zero, one))
        records = {0: [click(key) for key in zero], 1: [click(key) for key in one]}
        done = job.run(records, now, crashes=crashes)
        assert sorted(done.rows, key=str) == sorted(rows, key=str)
        assert done.state.waiting == sum(not is_out for _, _, is_out in model.kept.values())
        assert done.state.late_rows["late_corrected"] == model.corrected
        for partition in model.placed:
            offsets = [row[1] for row in done.rows if row[0] == partition]
            assert offsets == sorted(offsets)
    for at, (_, _, outcome) in enumerate(job.done):
        again = job.again(at)
        names = [name for each in again.answers for name in each.rows.column("name").to_pylist()]
        assert sorted(names, key=str) == sorted((row[2] for row in outcome.rows), key=str)
        assert state_differences(outcome.state, again.after) is None


# Only changed keys are looked up
# --------------------------------------------------------------------------------------------------


class LooksAllUp(ProbeTask):
    """A task that does not know what has changed."""

    def changed_since(self, versions, indexes):
        return None


class LooksUpChanges(ProbeTask):
    """A task on whose node the tried versions are."""

    def changed_since(self, versions, indexes):
        changed = super().changed_since(versions, indexes)
        assert changed is not None
        return changed


def as_kind(job, kind):
    values = {each.name: getattr(job.probe, each.name) for each in fields(job.probe)}
    job.task = replace(job.task, probe=kind(**values))
    return job


def other_key(alias, *, null_safe=False):
    return replace(
        WAITING_PLAN.joins[0],
        alias=alias,
        keys=(KeyPair(Column("c", "friend", BIGINT), "id", null_safe=null_safe),),
    )


WITH_FRIEND = replace(
    WAITING_PLAN,
    probe=replace(WAITING_PLAN.probe, fields=(*WAITING_PLAN.probe.fields, Field("friend", BIGINT))),
)
FIRST = WAITING_PLAN.joins[0]
SHAPES = {
    "left": WAITING_PLAN,
    "inner": inner(),
    "two tables": replace(WITH_FRIEND, joins=(FIRST, other_key("v"))),
    "two tables, inner": replace(
        WITH_FRIEND,
        joins=(FIRST, replace(other_key("v"), join_type=JoinType.INNER)),
    ),
    "two tables, corrected": correcting(
        replace(WITH_FRIEND, joins=(FIRST, other_key("v"))),
    ),
    "null-safe": replace(
        WITH_FRIEND, joins=(other_key("u", null_safe=True),), output=WAITING_PLAN.output
    ),
}
KEYS = st.sampled_from([None, 1, 2, 3, 4])
FRIENDS = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, KEYS), max_size=5),
        st.dictionaries(st.integers(1, 4), st.sampled_from(["a", "b"]), max_size=4) | st.none(),
        st.booleans(),
        st.sampled_from([1, 300, WAIT_MS, CORRECT_MS]),
    ),
    min_size=2,
    max_size=9,
)


@pytest.mark.parametrize("shape", SHAPES)
@settings(deadline=None, max_examples=examples(60))
@given(made=FRIENDS)
def test_looking_up_changed_keys_makes_the_batches_of_looking_up_all(tmp_path_factory, shape, made):
    plan = SHAPES[shape]
    assert waited_columns(kernel_spec(plan)), "changed keys decide"
    jobs = [
        as_kind(LateJob(tmp_path_factory.mktemp("late"), plan), kind)
        for kind in (LooksUpChanges, LooksAllUp)
    ]
    now = T
    for keys, users, whole, passed in made:
        now += passed
        records = [{"user_id": key, "friend": friend} for key, friend in keys]
        if users is not None:
            for job in jobs:
                job.change(users, whole=whole)
        assert jobs[0].run({0: records}, now) == jobs[1].run({0: records}, now)


def test_waiting_rows_of_other_keys_are_not_read(job):
    """Nor is a file read at all whose keys have not changed: here it is damaged."""
    job.run({0: [click(1)], 1: [click(2)]}, T)
    (file,) = (each for each in job.log.newest_files() if each.bucket == 1)
    path = job.root / "waiting" / file.path
    table = pq.read_table(path, partitioning=None)
    value = table.schema.get_field_index("_value")
    without = table.remove_column(value)
    pq.write_table(without.add_column(value, "_value", pa.nulls(1, pa.int8())), path)
    job.change({1: "ann"})
    assert job.run({}, T + 1).rows == [(0, 0, "ann")]


def test_a_file_is_read_once_for_its_keys(job, monkeypatch):
    job.run({0: [click(1)]}, T)
    opened = []
    read = WaitingFile.carried
    monkeypatch.setattr(WaitingFile, "carried", lambda *a: opened.append(a[0].path) or read(*a))
    for user in (7, 8, 9):
        job.change({user: "eve"})
        job.run({}, T + user)
    assert len(opened) == 1
    job.change({1: "ann"})
    assert job.run({}, T + 10).rows == [(0, 0, "ann")]


def test_keys_of_many_files_take_a_limited_size(job):
    for number in range(3):
        job.run({0: [click(number), click(99)]}, T + number)
    job.change({7: "eve"})
    changed = job.probe.changed_since({"users": 1}, job.probe.attach({"users": 2}))
    kept = _KeyHashes(limit_bytes=40)
    files = [job.root / "waiting" / each.path for each in job.log.newest_files()]
    for path in (*files, *files):
        file = WaitingFile(path, job.task.kernel.arrivals)
        assert kept.of(file, job.task.kernel, changed)["u"].nbytes == 16
    assert (len(files), kept.count) == (3, 2)


def test_rows_that_a_process_has_written_are_not_read_again_until_others_take_their_place(job):
    for number in range(3):
        job.run({0: [click(number), click(99)]}, T + number)
    kernel = job.task.kernel
    files = [job.root / "waiting" / each.path for each in job.log.newest_files()]
    stored = {path: list(WaitingFile(path, kernel.arrivals).between(0, 2 * T)) for path in files}
    size = max(sum(each.nbytes for each in rows) for rows in stored.values())
    kept = _NewRows(limit_bytes=2 * size)
    for path, rows in stored.items():
        kept.put(path, kernel, rows)
    assert [list(kept.of(path, kernel)) for path in files] == [[], *list(stored.values())[1:]]
    known = WaitingFile(files[2], kernel.arrivals, kept.of(files[2], kernel))
    read = WaitingFile(files[2], kernel.arrivals)
    for names in ((), ("user_id",)):
        times, keys = read.carried(names)
        assert known.carried(names)[0].tolist() == times.tolist()
        assert known.carried(names)[1] == keys
    for span in ((0, 2 * T), (0, T), (T + 2, 2 * T)):
        both = (
            [row for rows in file.between(*span) for row in rows.to_pylist()]
            for file in (known, read)
        )
        assert next(both) == next(both)


def test_a_version_that_is_gone_from_the_node_costs_a_look_at_all_rows(job):
    job.run({0: [click(1), click(2)]}, T)
    job.change({1: "ann"})
    for place in job.probe.indexes.values():
        remove_versions(place.directory, {job.version})
    assert job.probe.changed_since({"users": 1}, {"u": None}) is None
    assert job.run({}, T + 1).rows == [(0, 0, "ann")]


@pytest.mark.parametrize(
    "key",
    [
        Call("+", (Column("c", "user_id", BIGINT), Constant("0", BIGINT)), BIGINT),
        Column("u", "id", BIGINT),
    ],
    ids=["computed", "of another table"],
)
def test_keys_that_are_no_columns_of_the_stream_are_looked_up_for_all_rows(key):
    second = replace(FIRST, alias="v", keys=(KeyPair(key, "id"),))
    assert waited_columns(kernel_spec(WAITING_PLAN)) == ("user_id",)
    assert waited_columns(kernel_spec(replace(WAITING_PLAN, joins=(FIRST, second)))) == ()
