"""Commands that look into a job, as their users run them: values of strangers stay values."""

import json
import os
import pty
import select
import subprocess
import sys

import pytest

from tests.support.control_plane import ROOT, script
from tests.support.documents import Documents
from tests.support.inspect_program import HOSTILE
from tests.support.program import run_program
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def plane(plane):
    with Documents(plane.url) as client:
        for name in ("good", "sick", "expired", "near"):
            client.submit(script(), name)
        wait_until(lambda: all(job["state"] == "JOINING" for job in client.jobs()), deadline_s=60)
        yield plane


@pytest.fixture
def sluice(plane):
    def run(*arguments, stdin=b""):
        done = run_program(*arguments, given=stdin, SLUICE_SERVER=plane.url)
        done.text = done.stdout.decode()
        done.said = done.stderr.decode()
        return done

    return run


COMMANDS = {
    "batch_that_differs": (["replay", "good", "--batch", "13", "--diff"], 1, "NO"),
    "table_that_differs": (["replay", "good", "--batch", "13", "--diff"], 1, "output"),
    "batch_without_anything": (["replay", "good", "--batch", "14"], 1, "nothing to compare"),
    "batch_that_is_the_same": (["replay", "good", "--batch", "4"], 0, "yes"),
    "newest_batch": (["replay", "good"], 0, "batch"),
    "row": (["explain-row", "good", "clicks/0/7"], 0, "equal to version 2 of current"),
    "row_that_waited": (["explain-row", "good", "clicks/0/8"], 0, "2, watermark not known yet"),
    "row_in_windows": (["explain-row", "good", "clicks/0/8"], 0, "fired in batch 5"),
    "letters": (["dlq", "ls", "good"], 0, "0/6"),
    "letter": (["dlq", "show", "good", "0/7"], 0, "reason"),
    "letter_of_one_of_several_topics": (["dlq", "show", "good", "visits/0/7"], 0, "visits"),
    "table_rows": (["dim", "get", "good", "users"], 0, "owned"),
    "table_changes": (["dim", "diff", "good", "users", "--from", "1"], 0, "owned"),
    "output": (["preview", "good"], 0, "owned"),
    "machine": (["doctor"], 0, "unknown"),
    "healthy_job": (["doctor", "good"], 0, "9 GiB"),
    "sick_job": (["doctor", "sick"], 1, "FAILED"),
    "equal_table": (["verify", "good", "--sample", "5%"], 0, "binlog.000001"),
    "differing_table": (["verify", "sick", "--table", "users"], 1, "changed"),
    "table_that_is_not_compared": (["verify", "near"], 1, "not-compared"),
    "job_with_warning": (["jobs", "get", "near"], 0, "Raise retention.ms."),
}


def _has_commands(text):
    return [char for char in text if not char.isprintable() and char != "\n"]


@pytest.mark.parametrize(("arguments", "code", "shown"), COMMANDS.values(), ids=COMMANDS)
def test_text_has_the_facts_and_no_command_to_the_terminal(sluice, arguments, code, shown):
    done = sluice(*arguments)
    assert done.returncode == code, done.said
    assert shown in done.text
    assert _has_commands(done.text + done.said) == []
    if arguments[0] == "explain-row":
        assert "\nsecond line" not in done.text  # a value cannot make a line of its own


@pytest.mark.parametrize(("arguments", "code", "shown"), COMMANDS.values(), ids=COMMANDS)
def test_json_is_json_and_commands_nothing_either(sluice, arguments, code, shown):
    done = sluice(*arguments, "-o", "json")
    assert done.returncode == code
    json.loads(done.text)
    assert _has_commands(done.text) == []


def test_json_has_the_values_as_they_are(sluice):
    letter = json.loads(sluice("dlq", "show", "good", "0/7", "-o", "json").text)
    assert letter["value"] == letter["reason"] == HOSTILE


def test_the_bytes_of_a_letter_go_to_a_file_and_never_to_a_terminal(plane, sluice):
    assert sluice("dlq", "show", "good", "0/7", "--raw").stdout == HOSTILE.encode()
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "service.cli", "dlq", "show", "good", "0/7", "--raw"]
    environment = {**os.environ, "SLUICE_SERVER": plane.url}
    process = subprocess.Popen(
        command, stdout=theirs, stderr=theirs, stdin=theirs, cwd=ROOT, env=environment
    )
    assert process.wait(timeout=60) == 1
    written = select.poll()
    written.register(ours, select.POLLIN)
    assert written.poll(5_000)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert "not printed to a terminal" in shown
    assert "\x1b" not in shown


def test_letters_are_listed_page_by_page(sluice):
    first = sluice("dlq", "ls", "good", "--limit", "4")
    assert first.said.strip() == "more rows: --cursor 4.0.3"
    second = sluice("dlq", "ls", "good", "--limit", "4", "--cursor", "4.0.3")
    assert second.said == ""
    assert "0/6" in second.text
    assert "in INSERT 1, 3" not in first.text
    assert "in INSERT 1, 3" in second.text, "to send the record again would add rows there"
    assert "in INSERT 1, 3" in sluice("dlq", "show", "good", "0/6").text


def test_letters_are_replayed_as_they_are_or_corrected(sluice, tmp_path):
    plain = sluice("dlq", "replay", "good", "0/7", "0/8", "-o", "json")
    assert json.loads(plain.text)["rows"] == 2
    file = tmp_path / "value.json"
    file.write_text("{}")
    assert sluice("dlq", "replay", "good", "0/7", "--value-file", str(file)).returncode == 0
    piped = sluice("dlq", "replay", "good", "0/7", "--value-file", "-", stdin=b"\xff")
    assert piped.returncode == 0
    assert sluice("dlq", "replay", "good", "--all").returncode == 0
    assert sluice("dlq", "replay", "good", "--matching", "null").returncode == 0
    assert "0/6" not in sluice("dlq", "ls", "good", "--matching", "no such reason").text


def test_letters_that_are_still_bad_are_shown(sluice):
    arguments = ["dlq", "replay", "good", "0/9", "--value-file", "-"]
    done = sluice(*arguments, stdin=b"still bad")
    assert done.returncode == 1
    assert "0/9" in done.text
    assert _has_commands(done.text) == []


def test_a_stall_is_shown_with_the_command_that_ends_it(plane, sluice):
    with Documents(plane.url) as client:
        job_id = client.submit(script(), "lost")["id"]
        client.when(job_id, state="STALLED")
    shown = sluice("jobs", "get", "lost").text
    assert f"sluice acknowledge {job_id} records-lost --choice continue" in shown
    done = sluice("acknowledge", "lost", "records-lost", "--reason", "old clicks")
    assert done.returncode == 0, done.said
    assert "partition 0: 5 to 9" in done.text
    assert _has_commands(done.text) == []
    again = sluice("acknowledge", "lost", "records-lost", "--reason", "old clicks")
    assert again.returncode == 1
    assert again.said.startswith("error: no such stall")
    shown = sluice("jobs", "get", "lost").text
    assert "records-lost (continue)" in shown
    assert "old clicks; not joined: partition 0: 5 to 9" in shown


def test_the_same_key_is_the_same_decision(plane, sluice):
    with Documents(plane.url) as client:
        job_id = client.submit(script(), "lost again")["id"]
        client.when(job_id, state="STALLED")
    arguments = ["acknowledge", job_id, "records-lost", "--reason", "x", "--key", "k", "-o", "json"]
    first, second = sluice(*arguments), sluice(*arguments)
    assert first.returncode == second.returncode == 0, second.said
    assert json.loads(first.text) == json.loads(second.text)


WRONG = {
    "no_coordinates": (["explain-row", "good", "clicks"], "is not a record"),
    "path_as_topic": (["explain-row", "good", "../../x/0/0"], "is not a record"),
    "no_place": (["dlq", "show", "good", "7"], "is not a record"),
    "no_letters": (["dlq", "replay", "good"], "no record given"),
    "all_and_one": (
        ["dlq", "replay", "good", "0/1", "--all"],
        "--all cannot be combined with records",
    ),
    "filter_and_one": (
        ["dlq", "discard", "good", "0/1", "--matching", "x", "--reason", "r"],
        "--matching cannot be combined with records",
    ),
    "batch_of_all": (
        ["dlq", "discard", "good", "--all", "--batch", "1", "--reason", "r"],
        "--batch requires records",
    ),
    "value_for_two": (
        ["dlq", "replay", "good", "0/1", "0/2", "--value-file", "x"],
        "exactly one record",
    ),
    "no_value_file": (["dlq", "replay", "good", "0/1", "--value-file", "/nowhere"], "be read"),
    "bad_cause": (["acknowledge", "good", "rain", "--reason", "x"], "cannot be acknowledged"),
    "nothing_to_acknowledge": (
        ["acknowledge", "good", "topic-missing", "--reason", "x"],
        "no such stall",
    ),
    "expired": (["replay", "expired", "--batch", "1"], "version 3"),
    "unknown_job": (["doctor", "nobody"], "does not exist"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_done_is_two_lines_without_commands(sluice, arguments, message):
    done = sluice(*arguments)
    assert done.returncode == 1
    assert done.text == ""
    error, hint = done.said.splitlines()
    assert message in error
    assert hint.startswith("hint: ")
    assert _has_commands(done.said) == []
