"""The doctor: well jobs have nothing, and each damage is found and has a hint."""

import json
import socket
import sys
import time
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from joins.adapters.delta.log import DeltaLog
from joins.durable.checkpoint import write_json_atomically
from joins.durable.letter_replays import ChosenLetter, LetterReplay
from joins.plan.errors import SourceError
from joins.plan.plan import DeltaSink
from service.config import Settings
from service.jobs.doctor import check
from service.jobs.doctor import doctor as doctor_module
from service.jobs.doctor.check import Patient
from service.jobs.doctor.doctor import check_disk, check_machine, check_runner, examine
from service.jobs.doctor.tables import check_checkpoint, check_tables
from service.jobs.store.layout import JobLayout
from tests.support.letters import LetterJob
from tests.support.probe import PLAN


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return LetterJob(tmp_path_factory.mktemp("made")).make()


@pytest.fixture
def patient(made, tmp_path):
    root = tmp_path / "job"
    job = made.copied_to(root)
    write_json_atomically(root / "checkpoint" / "progress.json", {"batch": 8})
    job.checkpoint.write_phase({"phase": "JOIN", "versions": {"users": 1}})
    settings = Settings.load(data_dir=tmp_path / "data", warehouse_dir=root)
    return Patient(
        JobLayout(root),
        settings,
        replace(PLAN, sink=DeltaSink("output")),
        job.checkpoint,
        replace(job.checkpoint.read_meta(), incarnation="life"),
        running=False,
    )


def inside(patient):
    """All checks that look at files, by name."""
    checks = [*check_checkpoint(patient), *check_tables(patient), *check_runner(patient)]
    found = {c.name: c for c in checks}
    assert len(found) == len(checks)
    assert all((c.hint is not None) == (c.ok is False) for c in checks)
    return found


def ill(patient):
    return {name for name, found in inside(patient).items() if found.ok is False}


def test_a_well_job_has_nothing(patient):
    found = inside(patient)
    assert ill(patient) == set()
    assert found["checkpoint pins"].detail == "3 pins, 7 to 9, in one incarnation, without holes"
    assert found["transactions"].detail == "newest batches are progress 8, output 8"
    assert found["versions users"].ok is found["leases users"].ok is True
    assert found["runner"].ok is None


def pin_file(patient, batch):
    return patient.checkpoint.pins_directory / f"{batch:010d}.json"


def edited_pin(patient, batch=8, **changed):
    path = pin_file(patient, batch)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


def data_files(root):
    return sorted(root.glob("*.parquet"))


def asked(patient):
    write_json_atomically(patient.layout.requests / "a.json", {"at_ms": 0})


def interrupted(patient):
    letters = (ChosenLetter(7, 0, 101),)
    LetterJob(patient.layout.job_dir).replays.create(LetterReplay(1, "r", "me", letters))


DAMAGES = {
    "no_phase": (
        lambda p: (p.checkpoint.directory / "phase.json").unlink(),
        {"checkpoint phase"},
    ),
    "missing_pin": (lambda p: pin_file(p, 8).unlink(), {"checkpoint pins"}),
    "torn_pin": (lambda p: pin_file(p, 8).write_text('{"bat'), {"checkpoint pins"}),
    "pin_of_the_future": (lambda p: edited_pin(p, epoch=99), {"checkpoint pins"}),
    "versions_back": (lambda p: edited_pin(p, versions={"users": 0}), {"checkpoint pins"}),
    "offsets_do_not_follow": (
        lambda p: edited_pin(p, start_offsets={"0": 103}),
        {"checkpoint pins"},
    ),
    "output_file_gone": (lambda p: data_files(p.outputs[0].path)[0].unlink(), {"table output"}),
    "dead_letters_file_gone": (
        lambda p: data_files(p.layout.dead_letters)[0].unlink(),
        {"table dead_letters"},
    ),
    "output_log_gone": (
        lambda p: [f.unlink() for f in (p.outputs[0].path / "_delta_log").iterdir()],
        {"table output", "transactions", "fence"},
    ),
    "progress_ahead": (
        lambda p: write_json_atomically(p.checkpoint.directory / "progress.json", {"batch": 9}),
        {"transactions"},
    ),
    "changelog_file_gone": (
        lambda p: data_files(p.changelog("users"))[0].unlink(),
        {"table users/changelog", "versions users"},
    ),
    "newer_epoch_elsewhere": (
        lambda p: DeltaLog(p.outputs[0].path, f"sluice:{p.layout.job_dir.name}:life").commit_epoch(
            9
        ),
        {"fence"},
    ),
    "interrupted_replay": (interrupted, {"dead-letter replays"}),
}


@pytest.mark.parametrize(("damage", "found"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_found_where_it_is(patient, damage, found):
    damage(patient)
    assert ill(patient) == found


def test_a_job_that_an_update_gave_other_tables_is_well(patient):
    edited_pin(patient, batch=7, versions={"users": 1, "until_then": 5})
    assert ill(patient) == set()
    edited_pin(patient, batch=7, versions={"until_then": 5})
    assert ill(patient) == set()
    assert "[2]" in inside(patient)["versions users"].detail


def test_requests_of_a_living_runner_must_not_wait_long(patient):
    asked(patient)
    assert inside(patient)["requests"].ok is None
    assert "requests" in {c.name for c in check_runner(replace(patient, running=True)) if c.hint}


@pytest.mark.parametrize(
    ("state", "age_s", "ok"),
    [
        ("STARTING", 40, None),
        ("STARTING", 400, False),
        ("JOINING", 40, False),
        ("JOINING", 1, True),
    ],
)
def test_a_runner_that_starts_may_be_silent_for_as_long_as_the_supervisor_lets_it(
    patient, state, age_s, ok
):
    at_ms = time.time_ns() // 1_000_000 - age_s * 1000
    told = {"pid": 7, "state": state, "updated_at_ms": at_ms}
    write_json_atomically(patient.layout.status, told)
    found = {check.name: check.ok for check in check_runner(replace(patient, running=True))}
    assert found["runner"] is ok


def test_a_job_that_was_never_started_has_no_checkpoint(patient):
    assert [c.ok for c in check_checkpoint(replace(patient, meta=None))] == [None]
    assert check_tables(replace(patient, meta=None)) == []


def test_a_directory_without_a_plan_is_said_to_be_none(tmp_path):
    found = examine(tmp_path)
    assert found["ok"] is False
    assert [c["name"] for c in found["checks"]] == ["job"]


def test_what_changes_while_it_is_read_is_looked_at_again():
    looks = [[check.bad("a", "b", "c")], [check.good("a", "b")], [check.bad("a", "b", "c")]]
    seen = iter(looks)
    assert check.steady(lambda: next(seen), changing=True)[0].ok is True
    seen = iter(looks)
    assert check.steady(lambda: next(seen), changing=False)[0].ok is False


def test_a_check_that_cannot_be_made_has_failed_with_a_hint():
    def refused():
        raise SourceError("no grant", hint="Grant it.")

    def torn():
        raise KeyError("x")

    assert check.made("a", refused) == [check.bad("a", "no grant", "Grant it.")]
    assert check.made("b", torn)[0].ok is False


# The machine


def machine(tmp_path, **given):
    settings = Settings.load(data_dir=tmp_path, cache_dir=tmp_path / "cache", port=0, **given)
    return {found.name: found for found in check_machine(settings)}


def test_a_machine_that_has_everything_is_well(tmp_path):
    found = machine(tmp_path)
    assert {name for name, c in found.items() if c.ok is False} == set()
    assert sys.executable in found["python"].detail
    assert found["jars"].ok is None, "an empty cache is filled by the first job"


def test_a_taken_port_is_named(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        other.settimeout(0.1)
        settings = Settings.load(data_dir=tmp_path, port=other.getsockname()[1])
        assert doctor_module._port(settings).ok is False


def test_unknown_settings_and_too_much_heap_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_SPARK_MEMORY", "1g")
    found = machine(tmp_path, spark_driver_memory="900000g")
    assert "SLUICE_SPARK_MEMORY" in found["settings"].detail
    assert found["memory"].ok is found["settings"].ok is False


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    assert [c.ok for c in check_disk({"data": tmp_path / "not" / "there"})] == [True]
    monkeypatch.setattr(doctor_module, "_LEAST_FREE_BYTES", 1 << 60)
    assert [c.ok for c in check_disk({"data": tmp_path})] == [False]


def test_the_doctor_says_who_appends_to_the_output_and_why(patient):
    def writer():
        return next(check for check in check_tables(patient) if check.name == "writer")

    assert (writer().ok, writer().detail) == (True, "columnar")
    column = DeltaTable(str(patient.outputs[0].path)).schema().fields[0].name
    DeltaTable(str(patient.outputs[0].path)).alter.add_constraint(
        {"known": f"{column} IS NOT NULL"}
    )
    assert writer().ok
    assert writer().detail == "spark: the table uses delta.constraints.known"
