"""`sluice top`: its frames, its order, and the live view on a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from service.cli.output import brief, span
from service.cli.top import Look, Order, Sorting, frame
from service.schemas.jobs import ListedJob
from tests.support.control_plane import ROOT, script
from tests.support.documents import Documents
from tests.support.program import run_program


def job(name, **values):
    usual = {"id": f"id-{name}", "state": "JOINING", "desired_state": "RUNNING", "phase": "JOIN"}
    usual |= {"created_at_ms": 0, "sinks": ()}
    numbers = ("records_per_s", "held_records", "lag_records", "as_of_ms", "batch_ms")
    usual |= dict.fromkeys((*numbers, "dead_letters", "open_dead_letters"))
    told = {"word": "Running", "tone": "good", "sentence": "records are joined", "since_ms": 0}
    status = SimpleNamespace(**{**told, **values.pop("status", {})})
    return ListedJob.model_construct(name=name, status=status, **{**usual, **values})


ENRICHED = SimpleNamespace(table="enriched", connector="delta")
SETTLED = {"dead_letters": 9, "open_dead_letters": 0}
COPYING = {"word": "Copying (41 %)", "tone": "busy", "sentence": "waiting for \x1b[2J"}
JOBS = [
    job("fast", records_per_s=45_200.0, lag_records=12, batch_ms=180, as_of_ms=0, dead_letters=0),
    job("slow", records_per_s=0.4, lag_records=3_400_000, sinks=(ENRICHED, ENRICHED), **SETTLED),
    job("copies", status=COPYING, held_records=7),
]
LOOK = Look("http://127.0.0.1:8326", JOBS, 1_700_000_000_000)


def drawn(*, width, height=None, order=Order.RATE, look=LOOK):
    return [line.plain for line in frame(look, Sorting(order), width, height)]


ORDERS = {
    "by_trouble": (Order.TROUBLE, False, "copies fast slow"),
    "by_rate_with_unknown_ones_last": (Order.RATE, False, "fast slow copies"),
    "the_other_way_round": (Order.RATE, True, "slow fast copies"),
    "by_what_waits": (Order.WAITING, False, "slow fast copies"),
    "by_the_oldest_table": (Order.FRESHNESS, False, "fast slow copies"),
    "by_open_dead_letters": (Order.DEAD, False, "fast slow copies"),
    "by_name": (Order.NAME, False, "copies fast slow"),
}


@pytest.mark.parametrize(("order", "reverse", "names"), ORDERS.values(), ids=ORDERS)
def test_jobs_are_sorted(order, reverse, names):
    assert [each.name for each in Sorting(order, reverse=reverse).of(JOBS)] == names.split()


def test_a_key_sorts_and_the_same_key_again_turns_it_round():
    once = Sorting(Order.RATE).pressed("w")
    again = Sorting(Order.WAITING, reverse=True)
    assert (once, once.pressed("w")) == (Sorting(Order.WAITING), again)
    assert once.pressed("w").pressed("x").pressed("w") == once


def test_a_wide_terminal_has_a_line_a_job():
    heading, _, heads, *lines = drawn(width=160)
    assert heading.startswith("http://127.0.0.1:8326  22:13:20 UTC  3 jobs: 1 Copying, 2 Running")
    heads_of_all = "NAME STATE SINCE REC/S WAITING AS OF DEAD BATCH OUTPUT REASON"
    assert " ".join(heads.split()) == heads_of_all
    assert [line.split()[:2] for line in lines] == [
        ["fast", "Running"],
        ["slow", "Running"],
        ["copies", "Copying"],
    ]
    assert "enriched (delta) +1" in lines[1]
    assert [word for word in lines[0].split() if word[0].isdigit()][2:3] == ["12"]
    assert " 45.2k " in lines[0]
    assert lines[0].split("ago")[1].split()[:3] == ["0", "180", "ms"]


def test_a_narrow_terminal_has_sink_and_reason_below():
    lines = drawn(width=80)
    assert len(lines) == 3 + 2 * len(JOBS)
    assert max(map(len, lines)) <= 80
    assert lines[6].strip() == "enriched (delta) +1  records are joined"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_none_has_commands_to_it(width):
    long = [
        *JOBS,
        job("n" * 90, status={"word": "Waiting for table " + "t" * 90, "sentence": "r" * 900}),
    ]
    lines = drawn(width=width, look=Look("http://127.0.0.1:8326", long, 0))
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)


def test_jobs_without_room_are_counted_and_the_keys_are_in_the_last_line():
    lines = drawn(width=80, height=11)
    assert len(lines) == 11
    assert lines[7].startswith("and 1 more")
    assert lines[-1].startswith("q quit")


def test_a_control_plane_that_is_away_is_said_beside_the_last_numbers():
    lines = drawn(width=100, look=Look("http://x", JOBS, 0, trouble="connection refused"))
    assert "no answer since: connection refused" in lines[0]
    assert "fast" in lines[3]


def test_no_jobs_are_an_invitation():
    assert "sluice submit" in drawn(width=80, look=Look("http://x", [], 0))[-1]


SHORT = {
    "nothing_known": (brief, None, "-"),
    "none": (brief, 0, "0"),
    "less_than_one": (brief, 0.4, "0.4"),
    "a_few": (brief, 7, "7"),
    "some": (brief, 999, "999"),
    "thousands": (brief, 45_249, "45.2k"),
    "many_thousands": (brief, 450_000, "450k"),
    "millions": (brief, 1_300_000.0, "1.3M"),
    "no_time": (span, None, "-"),
    "a_moment": (span, 80, "80 ms"),
    "seconds": (span, 3_400, "3.4 s"),
    "minutes": (span, 720_000, "12 min"),
    "hours": (span, 7 * 3_600_000, "7 h"),
    "days": (span, 12 * 86_400_000, "12 d"),
}


@pytest.mark.parametrize(("form", "value", "shown"), SHORT.values(), ids=SHORT)
def test_numbers_are_short(form, value, shown):
    assert form(value) == shown


# Over a control plane
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_jobs(plane):
    with Documents(plane.url) as client:
        ids = [client.submit(script(), name)["id"] for name in ("calm", "late")]
        client.when(ids[0], state="JOINING")
        yield plane
        for job_id in ids:
            client.remove(job_id)


def test_a_pipe_gets_one_frame_or_a_document(two_jobs):
    done = run_program("top", "--sort", "name", SLUICE_SERVER=two_jobs.url)
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert [line.split()[0] for line in lines[3:]] == ["calm", "late"]
    assert "enriched (blackhole)" in lines[3]
    found = json.loads(run_program("top", "-o", "json", SLUICE_SERVER=two_jobs.url).stdout)
    assert {each["name"] for each in found} == {"calm", "late"}
    assert found[0]["sinks"][0]["table"] == "enriched"


ENDS = {"q": (b"q", 0), "ctrl_c": (signal.SIGINT, 130)}


@pytest.mark.parametrize(("end", "code"), ENDS.values(), ids=ENDS)
def test_a_terminal_is_redrawn_until_it_is_left(two_jobs, end, code):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "SLUICE_SERVER": two_jobs.url, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-m", "service.cli", "top", "--interval", "0.2"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**environment, "LINES": "24"},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # as in a terminal
    ) as running:
        os.close(theirs)
        shown = b""
        while shown.count(b"REC/S") < 3:
            shown += os.read(ours, 65_536)
        os.write(ours, end) if isinstance(end, bytes) else running.send_signal(end)
        while True:
            try:
                block = os.read(ours, 65_536)
            except OSError:
                break
            shown += block
            if not block:
                break
        assert running.wait(timeout=300) == code
    os.close(ours)
    assert b"calm" in shown
    assert b"Traceback" not in shown
    assert shown.rindex(b"\x1b[?1049l") > shown.rindex(b"\x1b[?1049h")  # the screen is given back
