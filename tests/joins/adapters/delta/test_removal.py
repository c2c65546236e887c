"""A table that a job has made goes with it; what others have made stays, to the byte."""

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.removal import remove_table
from joins.plan.errors import SinkError
from tests.support.changelog import SCHEMA, batch_of, record, stage
from tests.support.laws import examples

JOB, OTHER = "sluice:job:1", "sluice:job:12"
ROWS = batch_of([record("u", 1, 99, 99)])


def commit(path, app_id, batch):
    log = DeltaLog(path, app_id)
    log.commit(batch, 1, [stage(path, ROWS, number=batch, writer=log.shared.writer)], {})


def files(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def table(tmp_path):
    """A table that the job has created and filled, with a replay, a retraction and an orphan."""
    path = tmp_path / "lake" / "out"
    create_table(path, SCHEMA, creator=JOB)
    DeltaLog(path, JOB).commit_epoch(1)
    for batch in range(3):
        commit(path, JOB, batch)
    commit(path, f"{JOB}:insert-2", 0)
    commit(path, f"{JOB}:replay", 0)
    log = DeltaLog(path, JOB)
    log.retract(1, 1)
    log.upkeep.make_checkpoint(log.version())
    stage(path, ROWS, number=9, writer=log.shared.writer)
    return path


def remove(path):
    return remove_table(path, JOB, [JOB, f"{JOB}:insert-2"])


def test_a_table_of_the_jobs_own_goes_without_a_rest(table):
    assert remove(table) is None
    assert (table.exists(), table.parent.exists()) == (False, True)
    assert remove(table) is None


def add_row(path):
    write_deltalake(path, pa.Table.from_batches([ROWS]), mode="append")


THEIRS = {
    "rows_of_another_job": (lambda path: commit(path, OTHER, 0), "somebody else"),
    "rows_of_a_user": (add_row, "somebody else"),
    "files_that_a_user_has_rewritten": (lambda path: DeltaTable(path).optimize.compact(), "else"),
    "log_without_its_beginning": (
        lambda path: (path / "_delta_log" / f"{0:020d}.json").unlink(),
        "who has created it",
    ),
}


@pytest.mark.parametrize(("change", "why"), THEIRS.values(), ids=THEIRS)
def test_a_table_that_others_have_changed_stays_whole(table, change, why):
    change(table)
    before = files(table)
    assert why in remove(table)
    assert files(table) == before


def test_a_table_that_was_there_before_the_job_stays_whole(tmp_path):
    write_deltalake(tmp_path, pa.Table.from_batches([ROWS]))
    create_table(tmp_path, SCHEMA, creator=JOB)
    commit(tmp_path, JOB, 0)
    before = files(tmp_path)
    assert "has not created it" in remove(tmp_path)
    assert files(tmp_path) == before


@pytest.mark.parametrize("place", ["notes.txt", "_delta_log/notes.txt", "inner/part.parquet"])
def test_a_strangers_file_in_the_table_stays_alone_and_is_named(table, place):
    (table / place).parent.mkdir(exist_ok=True)
    (table / place).write_text("mine")
    assert f'has not made "{table / place}"' in remove(table)
    assert files(table) == {table / place: b"mine"}
    assert remove(table) is not None


def test_what_a_link_in_the_table_leads_to_stays(table, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("mine")
    (table / "link").symlink_to(tmp_path / "outside")
    assert remove(table) is not None
    assert files(tmp_path / "outside") == {tmp_path / "outside" / "file": b"mine"}


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_removal_that_was_cut_off_goes_on(table, kept):
    """As it is left when the newest entries and the data are gone."""
    for path in table.glob("*.parquet"):
        path.unlink()
    for path in (table / "_delta_log").glob("*.json"):
        if int(path.stem) > kept:
            path.unlink()
    assert remove(table) is None
    assert not table.exists()


def test_a_log_that_cannot_be_read_is_an_error_and_nothing_goes(table):
    (table / "_delta_log" / f"{3:020d}.json").write_text("{")
    before = files(table)
    with pytest.raises(SinkError, match="cannot be read"):
        remove(table)
    assert files(table) == before


def test_a_table_that_cannot_be_removed_is_somebody_elses_to_remove(table):
    (table / "_delta_log" / f"{1:020d}.crc" / "inner").mkdir(parents=True)
    with pytest.raises(SinkError, match="cannot be removed") as refused:
        remove(table)
    assert refused.value.hint.endswith("or remove the table yourself.")
    shutil.rmtree(table)
    assert remove(table) is None


STEPS = ("create", "commit", "stage", "other", "user", "file", "file_in_log", "inner", "optimize")


@settings(max_examples=examples(60))
@given(steps=st.lists(st.sampled_from(STEPS), max_size=7))
def test_of_all_that_may_be_in_a_directory_only_what_the_job_made_goes(steps):
    with tempfile.TemporaryDirectory() as root:
        path, mine = Path(root) / "out", set()
        path.mkdir()
        for number, step in enumerate(steps):
            before = set(files(path))
            take(step, path, number)
            if step in ("create", "commit", "stage"):
                mine |= set(files(path)) - before
        before = files(path)
        told = remove(path)
        after = files(path) if path.exists() else {}
        assert before.keys() - after.keys() <= mine
        assert after.items() <= before.items()
        assert (told is None) == (not after)
        if {"other", "user", "optimize"} & set(steps) and list(path.glob("_delta_log/0*.json")):
            DeltaTable(path).to_pyarrow_table()


def take(step, path, number):
    is_table = DeltaTable.is_deltatable(str(path))
    if step == "create":
        create_table(path, SCHEMA, creator=JOB)
    elif step == "commit" and is_table:
        commit(path, JOB, number)
    elif step == "stage" and is_table:
        stage(path, ROWS, number=number, writer=DeltaLog(path, JOB).shared.writer)
    elif step == "other":
        create_table(path, SCHEMA, creator=OTHER)
        commit(path, OTHER, number)
    elif step == "user":
        add_row(path)
    elif step == "optimize" and is_table:
        DeltaTable(path).optimize.compact()
    else:
        take_file(step, path, number)


def take_file(step, path, number):
    place = {"file": path, "file_in_log": path / "_delta_log", "inner": path / "a=1" / "b"}
    if step in place:
        place[step].mkdir(parents=True, exist_ok=True)
        (place[step] / f"part-{number}.parquet").write_text("theirs")
