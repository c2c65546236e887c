"""Durable files in a store: whoever takes a job over goes on where the last one was, and alone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from joins.adapters.network import within
from joins.adapters.topic.appended_file import AppendedFile
from joins.durable.checkpoint import (
    Checkpoint,
    JobMeta,
    read_json,
    remove_durably,
    write_json_atomically,
)
from joins.durable.leases import Lease, oldest_attached
from joins.durable.pins import Pin, PinStore
from joins.durable.requests import append_missing
from joins.durable.stored import StoredFiles, keep_stored, stop_storing, stored_files
from joins.durable.stored_directory import restore, take_over
from joins.plan.errors import CheckpointError, FencedError, StoreUnavailableError
from tests.support.object_store import ObjectStore, object_store

META = JobMeta(
    incarnation="5d6c",
    epoch=0,
    probe_topic="clicks",
    probe_topic_id="AAAA",
    probe_start_offsets={0: 7},
    changelog_topics={},
)
JOB = "lake/_sluice/jobs/7"


class Runner:
    """What a runner of the job does on one machine, whose directory of it this is."""

    def __init__(self, directory: Path, store: ObjectStore) -> None:
        self.directory = directory
        self.store = store
        self.checkpoint = Checkpoint(directory / "checkpoint")
        self.pins = PinStore(self.checkpoint.pins_directory)
        self.files = StoredFiles(directory, store.path(f"{JOB}/files"))

    def start(self) -> "Runner":
        self.files = StoredFiles(self.directory, self.files.place)
        take_over(self.files, 0)
        keep_stored(self.files)
        assert self.checkpoint.claim_epoch(0) == self.files.epoch
        return self

    def pin(self, batch: int) -> Pin:
        return self.pins.create(
            Pin(batch, "clicks", {0: batch}, {0: batch + 1}, {}, 1_000, self.files.epoch or 0)
        )


@pytest.fixture
def store(processes: None) -> Iterator[ObjectStore]:
    """One for each test: all have the same job."""
    with object_store() as server:
        yield server


@pytest.fixture
def machine(tmp_path: Path, store: ObjectStore) -> Iterator[Callable[[str], Runner]]:
    """A runner on the machine of that name."""
    runners: list[Runner] = []

    def of(name: str) -> Runner:
        directory = tmp_path / name / "7"
        directory.mkdir(parents=True, exist_ok=True)
        runners.append(Runner(directory, store))
        return runners[-1]

    yield of
    for runner in runners:
        stop_storing(runner.directory)


def test_another_machine_goes_on_where_the_last_one_was(machine):
    first = machine("a").start()
    first.checkpoint.create_meta(META)
    first.checkpoint.write_phase({"phase": "JOIN", "versions": {"items": 3}})
    write_json_atomically(first.checkpoint.source_file("items"), {"generation": 2})
    write_json_atomically(first.checkpoint.progress_file, {"joined": 5}, lazily=True)
    append_missing(first.checkpoint.directory / "acknowledgements.jsonl", [{"id": "one"}])
    pins = [first.pin(batch) for batch in range(3)]
    second = machine("b").start()
    assert second.files.epoch == 2
    assert second.checkpoint.read_meta() == META
    assert second.checkpoint.read_phase() == first.checkpoint.read_phase()
    assert read_json(second.checkpoint.source_file("items")) == {
        "format_version": 1,
        "generation": 2,
    }
    assert second.checkpoint.read_progress() == first.checkpoint.read_progress()
    listed = (second.checkpoint.directory / "acknowledgements.jsonl").read_text()
    assert listed == '{"id":"one"}\n'
    assert [second.pins.read(batch) for batch in range(3)] == pins
    assert second.pins.newest() == pins[-1]


def test_a_runner_that_was_taken_for_dead_is_fenced_and_writes_where_nobody_reads(machine):
    old = machine("a").start()
    old.checkpoint.write_phase({"phase": "LOAD"})
    old.files.check_epoch()
    new = machine("b").start()
    with pytest.raises(FencedError, match=r"belongs to epoch 2 of process \d+ on"):
        old.files.check_epoch()
    new.checkpoint.write_phase({"phase": "JOIN"})
    assert new.pin(0).epoch == 2
    old.checkpoint.write_phase({"phase": "LOAD", "late": True})
    assert old.pin(0).epoch == 2, "the pin that holds is the other one's"
    third = machine("c").start()
    assert third.checkpoint.read_phase() == {"format_version": 1, "phase": "JOIN"}
    assert third.pins.read(0) == new.pins.read(0)


def test_the_pin_of_an_older_runner_binds_its_successor(machine):
    old = machine("a").start()
    new = machine("b").start()
    late = old.pin(0)
    assert new.pin(0) == late
    assert new.pins.newest() == late


def test_a_restart_in_the_same_directory_keeps_what_was_not_put_yet(machine):
    runner = machine("a").start()
    for joined in (1, 2):
        write_json_atomically(runner.checkpoint.progress_file, {"joined": joined}, lazily=True)
    runner.pin(0)
    (runner.checkpoint.pins_directory / "0000000000.json").unlink()  # killed before it was written
    again = machine("a").start()
    assert again.checkpoint.read_progress() == {"format_version": 1, "joined": 2}
    assert again.pins.newest() == machine("b").start().pins.newest() is not None


def test_what_is_behind_is_put_at_the_end(machine):
    runner = machine("a").start()
    for joined in (1, 2):
        write_json_atomically(runner.checkpoint.progress_file, {"joined": joined}, lazily=True)
    stop_storing(runner.directory)
    assert machine("b").start().checkpoint.read_progress() == {"format_version": 1, "joined": 2}


def test_a_directory_of_before_is_made_like_the_store(machine):
    """Also what is not there any more: an abandoned pin would be the newest one again."""
    old = machine("a").start()
    old.checkpoint.write_phase({"phase": "LOAD"})
    old.pin(0)
    old.pin(1)
    (old.checkpoint.directory / "failpoints").mkdir()
    (old.checkpoint.directory / "failpoints" / "C1=kill.json").touch()
    new = machine("b").start()
    new.pins.abandon(1)
    new.checkpoint.write_phase({"phase": "JOIN"})
    remove_durably(new.checkpoint.pins_directory / "0000000000.json")
    again = machine("a")
    assert restore(again.files)
    assert again.pins.newest() is None
    assert (again.checkpoint.pins_directory / "abandoned" / "0000000001.json").exists()
    assert again.checkpoint.read_phase() == {"format_version": 1, "phase": "JOIN"}
    assert (again.checkpoint.directory / "failpoints" / "C1=kill.json").exists()
    assert again.start().files.epoch == 3
    assert not restore(again.files), "now it is the newest runner's"


def test_a_runner_that_dies_while_it_takes_over_has_changed_nothing(machine, store):
    machine("a").start().checkpoint.write_phase({"phase": "JOIN"})
    halfway = machine("b")
    store.fault = lambda request: _refused() if "complete" in request.path else None
    with pytest.raises(OSError):  # noqa: PT011 (whatever the store says)
        take_over(halfway.files, 0)
    (halfway.checkpoint.directory / "phase.json").write_text("half")
    store.fault = lambda _: None
    again = machine("b").start()
    assert again.files.epoch == 3
    assert again.checkpoint.read_phase() == {"format_version": 1, "phase": "JOIN"}


def _refused():
    from werkzeug.wrappers import Response

    return Response(status=403)


def test_a_file_that_the_store_did_not_take_is_as_before(machine, store):
    runner = machine("a").start()
    runner.checkpoint.write_phase({"phase": "LOAD"})
    write_json_atomically(runner.checkpoint.progress_file, {"joined": 1}, lazily=True)
    store.fault = lambda _: _away()
    with within(0.6):
        with pytest.raises(StoreUnavailableError):
            runner.checkpoint.write_phase({"phase": "JOIN"})
        write_json_atomically(runner.checkpoint.progress_file, {"joined": 2}, lazily=True)
        runner.files.flush()
    assert runner.checkpoint.read_phase() == {"format_version": 1, "phase": "LOAD"}
    assert runner.checkpoint.read_progress() == {"format_version": 1, "joined": 2}
    store.fault = lambda _: None
    runner.files.flush()
    assert machine("b").start().checkpoint.read_progress() == {"format_version": 1, "joined": 2}


def _away():
    from werkzeug.wrappers import Response

    return Response(status=503)


def test_a_job_of_before_this_version_is_put_there_at_its_next_start(machine):
    runner = machine("a")
    runner.checkpoint.write_meta(META)
    assert runner.checkpoint.claim_epoch(3) == 4
    for batch in range(2):
        runner.pin(batch)
    file = runner.checkpoint.source_file("items").with_suffix(".rows-1")
    file.parent.mkdir()
    file.write_bytes(b"12345678")
    assert runner.start().files.epoch == 5
    other = machine("b").start()
    assert other.checkpoint.read_meta() == META
    assert other.pins.newest() == runner.pins.newest() is not None
    assert other.checkpoint.source_file("items").with_suffix(".rows-1").read_bytes() == b"12345678"


def test_a_file_that_grows_is_put_in_parts(machine):
    first = machine("a").start()
    file = first.checkpoint.source_file("items").with_suffix(".rows-1")
    file.parent.mkdir()
    grown = AppendedFile(file, 4, 0)
    for entry in (b"aaaa", b"bbbb", b"cccc"):
        grown.append(entry)
        grown.save()
    second = machine("b").start()
    copy = second.checkpoint.source_file("items").with_suffix(".rows-1")
    assert copy.read_bytes() == b"aaaabbbbcccc"
    resumed = AppendedFile(copy, 4, 1)  # of the others nobody knew
    resumed.append(b"dddd")
    assert resumed.save() == 2
    for entry in (b"eeee",) * 70:
        grown.append(entry)  # of a runner that does not know yet that it is none
        grown.save()
    third = machine("c").start()
    kept = third.checkpoint.source_file("items").with_suffix(".rows-1")
    assert AppendedFile(kept, 4, 2).load() == b"aaaadddd"
    assert len(list((third.files.parts / third.files.name(kept)).iterdir())) == 1
    AppendedFile(kept, 4, 2).remove()
    assert not list(third.files.parts.below())


def test_leases_of_a_shared_table_outlive_the_machine(machine, tmp_path, store):
    table = machine("a").start()
    reader = StoredFiles(table.directory, table.files.place)  # as the reader's runner has it
    reader.put(table.checkpoint.directory / "leases" / "8.json", b"")
    leases = table.checkpoint.directory / "leases"
    Lease(leases / "8.json").begin()
    Lease(leases / "8.json").hold(7)
    elsewhere = machine("b").start()
    assert oldest_attached(elsewhere.checkpoint.directory / "leases") == 7
    remove_durably(leases / "8.json")
    assert oldest_attached(machine("c").start().checkpoint.directory / "leases") is None


def test_an_object_that_is_none_of_a_job_is_an_error(machine, store):
    runner = machine("a").start()
    for count, name in enumerate(("epoch-x/checkpoint/meta.json", "shared/bashrc", "x/y"), 3):
        key = f"{JOB}/files/{name}"
        store.client.put_object(Bucket=store.bucket, Key=key, Body=b"")
        with pytest.raises(CheckpointError, match="is none of a job"):
            machine("b").start()
        store.client.delete_object(Bucket=store.bucket, Key=key)
        assert machine("b").start().files.epoch == 2 * (count - 2) + 1
    assert stored_files(runner.checkpoint.progress_file) is runner.files


def test_the_claim_names_its_holder(machine, store):
    machine("a").start()
    content = store.path(f"{JOB}/files/shared/checkpoint/epochs/1.json").read_bytes()
    claim = json.loads(content)
    assert claim.keys() >= {"pid", "host", "control_plane_pid", "at_ms"}
