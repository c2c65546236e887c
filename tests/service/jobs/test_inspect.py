"""The inspection process: one JSON object for each command and for errors, nothing changed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from joins.durable.checkpoint import Checkpoint, write_json_atomically
from joins.durable.dead_rows import SUFFIX, DeadRows
from service.jobs.inspect import __main__ as program
from tests.support.changelog import record
from tests.support.past_job import open_gate, past_job

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def job(tmp_path_factory, kafka):
    made = past_job(tmp_path_factory.mktemp("data"), kafka.bootstrap_servers)
    open_gate(made)
    made.change("users", record("r", 1, 5, 0), record("r", 2, 5, 1))
    made.batch({"user_id": 1}, {"user_id": 2}, b"{", b"\xff")
    return made


@pytest.fixture
def inspect(job, monkeypatch, capsys):
    """The program in this process; it changes nothing of it but standard error and logs."""
    monkeypatch.setattr(program, "redact_standard_error", lambda: None)
    monkeypatch.setattr(program, "configure_logs", lambda _: None)

    def run(*arguments, directory=job.directory, code=0):
        command = ["sluice-inspect", "--job-dir", str(directory), *arguments]
        monkeypatch.setattr(sys, "argv", command)
        assert program.main() == code
        return answer(capsys.readouterr().out, code)

    return run


def create_parent(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def answer(output, code):
    (line,) = output.splitlines()
    told = json.loads(line)
    assert told["ok"] is (code == 0)
    return told["result"] if code == 0 else told["error"]


def test_the_program_shows_a_batch_with_pin_and_commits(job):
    command = [sys.executable, "-m", "service.jobs.inspect", "--job-dir", str(job.directory)]
    done = subprocess.run(
        [*command, "batch", "--number", "0"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = answer(done.stdout, 0)
    assert (found["batch"], found["records"], found["committed"]) == (0, 4, True)
    assert found["pin"]["versions"] == {"users": 1}
    counted = {"joined": 2, "matched": 2, "unmatched": 0, "dead_letters": 2}
    assert found["counts"] == {**counted, "records": 4, "bytes": 28}
    assert found["freshness_ms"] == {"users": None}
    assert (found["output_version"], found["dead_letters_version"]) == (1, 1)
    assert found["life"]["first_batch"] == 0


def test_batches_are_listed_with_what_each_has_committed(inspect):
    found = inspect("batches", "--limit", "5")
    assert found == {"items": [inspect("batch", "--number", "0")], "next_cursor": None}
    assert inspect("batches", "--below", "0")["items"] == []


def test_a_replay_reads_only(job, inspect):
    def files():
        return {p: p.stat().st_mtime_ns for p in job.data_dir.rglob("*") if p.is_file()}

    before = files()
    assert inspect("replay", "--batch", "0", "--diff")["identical"] is True
    assert files() == before


def test_a_row_is_explained(job, inspect):
    place = ("--topic", job.topic, "--partition", "0", "--offset", "1")
    found = inspect("explain-row", *place)
    assert (found["state"], found["dimensions"][0]["rows"][0]["id"]) == ("joined", 2)


def test_dead_letters_are_listed_by_page_and_shown(inspect):
    first = inspect("dead-letters", "list", "--limit", "1")
    assert [(d["offset"], d["value"]) for d in first["items"]] == [(2, "{")]
    second = inspect("dead-letters", "list", "--cursor", first["next_cursor"])
    assert [d["offset"] for d in second["items"]] == [3]
    assert second["next_cursor"] is None
    shown = inspect("dead-letters", "show", "--partition", "0", "--offset", "3")
    assert (shown["value"], shown["value_base64"], shown["value_bytes"]) == (None, "/w==", 1)


def test_rows_that_dimensions_lack_are_listed_on_the_first_page(job, inspect):
    checkpoint = Checkpoint(job.directory / "checkpoint")
    source = checkpoint.source_file("users")
    write_json_atomically(create_parent(source), {"generation": 2})
    for generation, key in ((1, "old"), (2, "new")):
        file = source.with_suffix(f".{key}")
        DeadRows(file, generation, 100).update([(f'{{"id":"{key}"}}', 300)])
    try:
        source.with_suffix(".old").rename(source.with_suffix(SUFFIX))
        source.with_suffix(".new").rename(checkpoint.cdc_file("users").with_suffix(SUFFIX))
        first = inspect("dead-letters", "list", "--limit", "1")
        reason = "300 bytes, a message has 100 at the most"
        row = {"table": "users", "key": '{"id":"new"}', "bytes": 300, "reason": reason}
        assert first["rows"] == [row], "not those of an earlier copy"
        assert inspect("dead-letters", "list", "--cursor", first["next_cursor"])["rows"] == []
    finally:
        source.unlink()


REFUSED = {
    "unknown_batch": (("replay", "--batch", "7"), "unknown-batch"),
    "unknown_topic": (
        ("explain-row", "--topic", "x", "--partition", "0", "--offset", "0"),
        "unknown-topic",
    ),
    "unknown_letter": (
        ("dead-letters", "show", "--partition", "0", "--offset", "0"),
        "unknown-letter",
    ),
}


@pytest.mark.parametrize(("arguments", "kind"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_names_its_kind_and_what_to_do(inspect, arguments, kind):
    error = inspect(*arguments, code=1)
    assert error["type"] == kind
    assert error["message"]
    assert error["hint"].endswith(".")


def test_a_directory_without_a_job_is_refused(inspect, tmp_path):
    error = inspect("replay", "--batch", "0", directory=tmp_path, code=1)
    assert error["type"] == "checkpoint"


def test_a_command_without_a_job_is_a_usage_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sluice-inspect", "batch", "--number", "0"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert "--job-dir" in said.err
