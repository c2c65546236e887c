"""The durable files: old or new content, never half of one; and the lock on all of them."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.durable.checkpoint import (
    Checkpoint,
    CheckpointLock,
    JobMeta,
    create_json_once,
    read_json,
    write_json_atomically,
)
from joins.plan.errors import CheckpointError, CheckpointInUseError
from tests.support.beside import at_once
from tests.support.laws import examples

DAMAGED = {
    "empty": b"",
    "cut_in_the_middle": b'{"format_version":1,"epo',
    "not_an_object": b"[1]",
    "no_version": b"{}",
    "newer_version": b'{"format_version":2}',
    "zeros": b"\x00\x00",
    "not_utf_8": b'{"format_version":1,"name":"\xff"}',
}
META = JobMeta(
    incarnation="5d6c",
    epoch=3,
    probe_topic="clicks",
    probe_topic_id="AAAA",
    probe_start_offsets={0: 7, 11: 0},
    changelog_topics={"users": "sluice.job.users"},
)
HOLDER = """
import subprocess, sys
from pathlib import Path
from joins.durable.checkpoint import CheckpointLock

lock = CheckpointLock(Path(sys.argv[1]))
lock.acquire()
inherited = (lock.descriptor,) if sys.argv[2] == "inherits" else ()
child = subprocess.Popen([sys.executable, "-c", "input()"], pass_fds=inherited)
print(child.pid, flush=True)
sys.stdin.readline()
"""
RACER = """
import sys
from pathlib import Path
from joins.durable.checkpoint import create_json_once

print("ready", flush=True)
sys.stdin.readline()
made = [create_json_once(Path(sys.argv[1]) / f"{n}.json", {"by": sys.argv[2]}) for n in range(60)]
print(sum(made), flush=True)
"""


@settings(max_examples=examples(25))
@given(
    value=st.dictionaries(
        st.text().filter(lambda name: name != "format_version"),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()),
    )
)
def test_what_was_written_is_read(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("files") / "new" / "file.json"
    write_json_atomically(path, value)
    assert read_json(path) == {"format_version": 1, **value}
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


WRITES = {"replaced": write_json_atomically, "created": create_json_once}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_file_is_synced_before_its_name_and_its_directory_behind_it(tmp_path, monkeypatch, write):
    steps = []

    def noted(descriptor, sync=os.fsync):
        place = Path(f"/proc/self/fd/{descriptor}").resolve()
        steps.append((place == tmp_path, (tmp_path / "phase.json").exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write(tmp_path / "phase.json", {"phase": "JOIN"})
    assert steps == [(False, False), (True, True)]


def test_a_missing_file_is_none(tmp_path):
    assert read_json(tmp_path / "none.json") is None


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused_with_its_name(tmp_path, content):
    path = tmp_path / "meta.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"meta\.json"):
        read_json(path)


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path):
    path = tmp_path / "file.json"
    write_json_atomically(path, {"n": 1})
    with pytest.raises(TypeError):
        write_json_atomically(path, {"n": object()})
    assert read_json(path) == {"format_version": 1, "n": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_cannot_take_its_place_leaves_nothing_behind(tmp_path):
    (tmp_path / "file.json").mkdir()
    with pytest.raises(OSError, match=r"file\.json"):
        write_json_atomically(tmp_path / "file.json", {"n": 1})
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


def test_creating_once_keeps_the_first_value(tmp_path):
    path = tmp_path / "pins" / "7.json"
    assert create_json_once(path, {"n": 1})
    assert not create_json_once(path, {"n": 2})
    assert read_json(path) == {"format_version": 1, "n": 1}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("processes")
def test_of_several_processes_one_creates_each_file(tmp_path):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    try:
        for racer in racers:
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            racer.stdin.write("go\n")
            racer.stdin.flush()
        made = [int(racer.communicate(timeout=300)[0]) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    assert sum(made) == 60
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{n}.json" for n in range(60)
    )
    by = [read_json(tmp_path / f"{n}.json")["by"] for n in range(60)]
    assert [by.count("0"), by.count("1")] == made


def test_meta_is_kept_with_numbers_as_partitions(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.read_meta() is None
    checkpoint.write_meta(META)
    assert checkpoint.read_meta() == META
    assert json.loads((tmp_path / "meta.json").read_text())["probe_start_offsets"]["11"] == 0


def test_the_phase_is_absent_before_the_opening(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.read_phase() is None
    checkpoint.write_phase({"phase": "JOIN"})
    assert checkpoint.read_phase() == {"format_version": 1, "phase": "JOIN"}


# The lock


def holder(path: Path, how: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def acquired(path: Path) -> bool:
    lock = CheckpointLock(path)
    try:
        lock.acquire()
    except CheckpointInUseError:
        return False
    lock.release()
    return True


def test_a_second_owner_in_the_same_process_is_refused(tmp_path):
    first = CheckpointLock(tmp_path / "lock")
    first.acquire()
    with pytest.raises(CheckpointInUseError):
        CheckpointLock(tmp_path / "lock").acquire()
    first.release()
    first.release()
    assert acquired(tmp_path / "lock")


def test_a_lock_that_is_not_held_has_no_descriptor(tmp_path):
    with pytest.raises(CheckpointError):
        _ = CheckpointLock(tmp_path / "lock").descriptor


OUTLIVES = {"a_child_with_the_descriptor": ("inherits", False), "any_other_child": ("not", True)}


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(("how", "free_after_kill"), OUTLIVES.values(), ids=OUTLIVES)
def test_a_killed_owner_leaves_the_lock_to_children_with_the_descriptor(
    tmp_path, how, free_after_kill
):
    path = tmp_path / "checkpoint" / "lock"
    owner = holder(path, how)
    try:
        assert owner.stdout.readline().strip().isdigit()
        assert not acquired(path)
        owner.kill()
        owner.wait()
        assert acquired(path) is free_after_kill
    finally:
        owner.kill()
        owner.stdin.close()  # the child's input too: it ends
        owner.stdout.read()
        owner.stdout.close()
        owner.wait()
    assert acquired(path)


def test_every_runner_has_an_epoch_of_its_own(tmp_path):
    claimed = at_once(lambda _: Checkpoint(tmp_path).claim_epoch(4), range(8))
    assert len(set(claimed)) == 8
    assert min(claimed) == 5
    assert Checkpoint(tmp_path).claim_epoch(4) == max(claimed) + 1


def test_a_runner_knows_that_another_one_has_begun_after_it(tmp_path):
    first, second = Checkpoint(tmp_path), Checkpoint(tmp_path)
    first.claim_epoch(0)
    assert not first.has_newer_runner()
    assert not second.has_newer_runner(), "it has not begun"
    second.claim_epoch(0)
    assert first.has_newer_runner()
    assert not second.has_newer_runner()


def test_the_first_of_two_beginnings_holds(tmp_path):
    first = Checkpoint(tmp_path).create_meta(META)
    second = Checkpoint(tmp_path).create_meta(replace(META, incarnation="another"))
    assert first == second == META
