"""Commands about jobs: lists, waiting, exit codes, what goes to pipes and what to terminals."""

import getpass
import io
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from rich.console import Console

from service.cli import main as cli
from service.cli import options as cli_options
from service.cli.options import complete_job, complete_sink, complete_table
from service.cli.output import ExitCode, exit_code, show
from service.cli.views import (
    Bar,
    _fresh,
    bars,
    by_trouble,
    job_parts,
    jobs_table,
    short_ids,
    state,
)
from service.cli.wait import JobPoll
from service.client import RefusedError, Sluice
from service.client.transport import refusal
from service.errors import ControlPlaneError, JobNotFoundError, UnreachableError, WaitTimeoutError
from service.schemas.jobs import DimensionView, ListedJob, ProbeView
from service.schemas.verification import FreshnessView
from tests.support.control_plane import ROOT, control_plane, script
from tests.support.documents import Documents
from tests.support.wait import wait_until

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def plane(plane):
    with Documents(plane.url) as client:
        for name in ("calm", "lost"):
            client.submit(script(), name)
        states = {"JOINING", "STALLED"}
        wait_until(lambda: {j["state"] for j in client.jobs()} == states, deadline_s=240)
    return plane


@pytest.fixture
def client(plane):
    with Documents(plane.url) as found:
        yield found


@pytest.fixture
def sluice(plane, monkeypatch, capsys):
    """Runs the program in this process; gives exit code, standard output and standard error."""
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments, server=plane.url):
        monkeypatch.setenv("SLUICE_SERVER", server)
        monkeypatch.setattr(sys, "argv", ["sluice", *arguments])
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])  # it leaves packages out
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return (int(ended.value.code), *capsys.readouterr())

    yield run
    signal.signal(signal.SIGTERM, before)


# Lists
# --------------------------------------------------------------------------------------------------


def test_jobs_are_listed_with_whole_ids_in_a_pipe(sluice, client):
    code, out, _ = sluice("jobs", "ls")
    assert code == 0
    header, *lines = out.splitlines()
    heads = "ID NAME STATE SINCE REC/S WAITING AS_OF DEAD OUTPUT REASON"
    assert "_".join(header.replace("AS OF", "AS_OF").split()) == heads.replace(" ", "_")
    assert all("enriched (blackhole)" in line for line in lines), out
    assert [line.split()[1:3] for line in lines] == [["lost", "Stalled"], ["calm", "Running"]]
    assert {line.split()[0] for line in lines} == {job["id"] for job in client.jobs()}


LISTS = {
    "of_one_state": (["--state", "stalled", "-q"], ["lost"]),
    "of_two_states": (["--state", "joining", "--state", "STALLED", "-q"], None),
    "of_none": (["--state", "failed", "-q"], []),
    "by_its_word": (["--state", "Running", "-q"], ["calm"]),
}


@pytest.mark.parametrize(("arguments", "names"), LISTS.values(), ids=LISTS)
def test_a_list_can_be_of_some_states_and_of_ids_only(sluice, client, arguments, names):
    code, out, _ = sluice("jobs", "ls", *arguments)
    wanted = [job["id"] for job in client.jobs() if names is None or job["name"] in names]
    assert (code, out.split()) == (0, wanted)


def test_a_list_without_jobs_says_so(sluice):
    assert sluice("jobs", "ls", "--state", "failed")[2] == "no job is in this state\n"


def test_a_list_of_json_is_what_the_api_says(sluice, client):
    found = json.loads(sluice("jobs", "ls", "-o", "json")[1])
    assert [job["id"] for job in found] == [job["id"] for job in client.jobs()]


CLOCKS = {18: "18 ms ahead, ±19 ms", 0: "0 ms behind, ±19 ms", -3: "3 ms behind, ±19 ms"}


@pytest.mark.parametrize(("offset_ms", "shown"), CLOCKS.items())
def test_the_age_of_a_table_says_which_way_its_clock_differs(offset_ms, shown):
    view = FreshnessView(as_of_ms=1, kind="position", offset_ms=offset_ms, within_ms=19)
    assert _fresh("users", view).endswith(f"(its clock is {shown})")


def test_a_terminal_gets_ids_that_are_just_long_enough():
    assert short_ids(["abcdefgh-1", "12345678-1"]) == ["abcdefgh", "12345678"]
    assert short_ids(["abcdefgh-10", "abcdefgh-11"]) == ["abcdefgh-10", "abcdefgh-11"]
    assert short_ids([]) == []


def listed(name="clicks", tone="busy", word="Catching up", **values):
    """A job as the list has it."""
    usual = {"id": f"01a204d1-{name}", "state": "CATCHING_UP", "dead_letters": 0, "sinks": ()}
    usual["open_dead_letters"] = None
    usual |= {"records_per_s": 12.0, "lag_records": 34_000, "held_records": 0, "as_of_ms": None}
    status = SimpleNamespace(word=word, tone=tone, since_ms=0, sentence="it waits " * 90)
    return ListedJob.model_construct(**{"name": name, "status": status, **usual, **values})


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_terminal_shortens_the_reason_and_neither_id_nor_state(width):
    screen = io.StringIO()
    made = jobs_table([listed()], width=width)
    Console(file=screen, width=width).print(made)
    header, row = screen.getvalue().splitlines()
    assert ("WAITING" in header, "OUTPUT" in header) == (width >= 80, width >= 108)
    assert header.split()[:4] == ["ID", "NAME", "STATE", "SINCE"]
    assert row.split()[:4] == ["01a204d1", "clicks", "Catching", "up"]
    assert (row[-1], len(row)) == ("…", width)


def test_in_a_pipe_each_job_is_one_line_that_is_never_cut(capsys):
    name = "a name " * 9
    show(jobs_table([listed(name, sinks=(SimpleNamespace(table="t", connector="c"),))], width=None))
    _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 1
    assert rows[0].endswith("it waits " * 89 + "it waits")
    assert name in rows[0]


def test_jobs_are_sorted_by_trouble():
    jobs = [
        listed("rests", "rest"),
        listed("well", "good"),
        listed("letters", "good", dead_letters=1, open_dead_letters=1),
        listed("settled", "good", dead_letters=1, open_dead_letters=0),
        listed("copies", "busy"),
        listed("failed", "bad"),
        listed("waits", "warn"),
    ]
    names = [job.name for job in by_trouble(jobs)]
    assert names == ["failed", "waits", "letters", "copies", "well", "settled", "rests"]


COUNTS = {
    "lag": ({"lag_records": 3, "held_records": 3}, 3),
    "no_lag": ({"lag_records": 0, "held_records": None}, 0),
    "only_held": ({"lag_records": None, "held_records": 4}, 4),
    "unknown": ({"lag_records": None, "held_records": None}, None),
}


@pytest.mark.parametrize(("values", "count"), COUNTS.values(), ids=COUNTS)
def test_what_waits_is_one_number(values, count):
    assert listed(**values).waiting_records == count


def test_a_state_of_an_older_control_plane_is_shown_by_its_name():
    assert str(state(listed(status=None))) == "CATCHING_UP"


def test_watermarks_are_a_line_a_channel(sluice):
    code, out, _ = sluice("watermarks", "calm")
    assert code == 0
    assert out.splitlines()[-1].split() == [
        "users",
        "users/0",
        "ACTIVE",
        "MIN",
        "+",
        "processing",
        "time",
    ]
    assert "combined  MIN + processing time" in out
    report = json.loads(sluice("watermarks", "calm", "-o", "json")[1])
    assert report["combined"]["use_processing_time"] is True
    assert report["event_time"] is None


@pytest.fixture
def timed(client):
    """The id of a job in event time."""
    job_id = client.submit(script(), "timed")["id"]
    client.when(job_id, state="JOINING")
    yield job_id
    client.remove(job_id)


def test_a_job_of_windows_has_no_watermark_of_tables(plane, timed):
    with Sluice(plane.url) as client:
        job = client.job(timed).status()
    assert "watermark  " in shown(job)
    assert "watermark  " not in shown(job.model_copy(update={"dimensions": []}))


def shown(job):
    screen = io.StringIO()
    Console(file=screen, width=200).print(*job_parts(job), sep="\n")
    return screen.getvalue()


def test_watermarks_of_event_time_are_a_line_a_generator_with_what_waits(sluice, timed):
    code, out, _ = sluice("watermarks", timed)
    assert code == 0
    told = {" ".join(line.split()) for line in out.splitlines()}
    assert {
        "event time 2023-11-14 22:13:20 UTC",
        "input 2023-11-14 22:14:00 UTC of the stream, ACTIVE",
        "waiting 12,000 records, the oldest of 2023-11-14 22:13:20.001 UTC",
        "late 7 records",
        'waits for 12,000 records wait for the watermark of table "rates", partition 0, '
        "which is 40 s behind",
        "the stream 0 ACTIVE 2023-11-14 22:14:00 UTC, processing time from offset 70 on "
        "2023-11-14 22:14:10 UTC",
        "the stream 1 IDLE not known yet 2023-11-14 22:12:20 UTC",
        'table "rates" 0 ACTIVE 2023-11-14 22:13:20 UTC 2023-11-14 22:14:10 UTC',
    } <= told
    report = json.loads(sluice("watermarks", timed, "-o", "json")[1])
    assert report["event_time"]["channels"][1]["idle_timeout_ms"] == 5_000
    explained = sluice("jobs", "get", timed)[1]
    assert '12,000 records wait for later records of table "rates"' in explained
    told = "watermark 2023-11-14 22:13:20 UTC, 12,000 records waiting, 7 late"
    assert told in explained


def test_a_job_is_shown_with_what_it_waits_for(sluice):
    out = sluice("jobs", "get", "lost")[1]
    assert "Stalled" in out
    waits = out[out.index("WAITS FOR") :]
    assert "is stalled: 5 records are gone" in waits
    assert "unknown" not in waits
    assert "users  10 of 10 rows" in sluice("jobs", "get", "calm")[1]


# Waiting
# --------------------------------------------------------------------------------------------------


def test_waiting_ends_in_the_phase(sluice, client):
    code, out, said = sluice("wait", "calm", "JOIN", "--timeout", "30")
    assert (code, out) == (0, "")
    assert "is Running" in said
    job = json.loads(sluice("wait", "calm", "load", "-o", "json")[1])
    assert job["state"] == "JOINING"


def test_waiting_for_too_long_says_what_the_job_waits_for(sluice):
    code, out, said = sluice("wait", "lost", "join", "--timeout", "0.3")
    assert (code, out) == (ExitCode.TIMED_OUT, "")
    error, hint = said.splitlines()[-2:]
    assert "is Stalled after 0.3 s" in error
    assert "sluice jobs get" in hint


VAIN = {
    "another_rest": ("stopped", "join", "jobs resume"),
    "the_end": ("done", "paused", "submit its script again"),
}


@pytest.mark.parametrize(("name", "phase", "hint"), VAIN.values(), ids=VAIN)
def test_waiting_in_vain_is_an_error_at_once(plane, sluice, name, phase, hint):
    with Documents(plane.url) as client:
        job_id = client.submit(script(), name)["id"]
    if name == "done":
        (plane.services.settings.jobs_dir / job_id / "go").touch()
        assert sluice("wait", job_id, "finished", "--timeout", "60")[0] == 0
    else:
        assert sluice("jobs", "stop", job_id)[0] == 0
    code, _, said = sluice("wait", job_id, phase, "--timeout", "600")
    assert code == 1
    assert " stays " in said
    assert hint in said.splitlines()[-1]
    assert sluice("jobs", "rm", job_id)[0] == 0


def test_what_a_removal_leaves_is_said(plane, client, sluice):
    shared = plane.services.settings.data_dir / "shared"
    shared.write_text('delta table "out" is kept: the job has not created it')
    job_id = client.submit(script(), "leaves")["id"]
    code, _, said = sluice("jobs", "rm", job_id, "--with-output")
    shared.unlink()
    assert code == 0
    told = f'job {job_id} removed\nwarning: delta table "out" is kept: the job has not created it\n'
    assert said.endswith(told)


def test_a_control_plane_that_comes_back_is_waited_for(tmp_path, secret):
    with control_plane(tmp_path) as first:
        client = Sluice(first.url, attempts=1)
        job = client.submit(script(), "patient")
        look = JobPoll(job)
        look.job()
    with ThreadPoolExecutor() as pool:
        found = pool.submit(look.job)
        with control_plane(tmp_path, port=int(first.url.rpartition(":")[2])):
            assert found.result(timeout=60).id == job.id
    with pytest.raises(UnreachableError):
        JobPoll(job).job()
    client.close()


def test_a_job_is_paused_and_resumed(sluice, client):
    assert sluice("jobs", "pause", "calm")[0] == 0
    assert state_of(client, "calm") == "PAUSED"
    assert f"paused by request of {getpass.getuser()}" in sluice("jobs", "get", "calm")[1]
    in_vain = sluice("wait", "calm", "join")
    assert in_vain[0] == 1
    assert "sluice jobs resume" in in_vain[2]
    assert sluice("jobs", "resume", "calm", "--wait")[0] == 0
    assert state_of(client, "calm") == "JOINING"


def state_of(client, name):
    return next(job["state"] for job in client.jobs() if job["name"] == name)


def test_a_script_is_checked_with_all_that_it_names(sluice, tmp_path):
    file = tmp_path / "job.sql"
    file.write_text(script(password="wrong"))
    assert sluice("validate", str(file))[:2] == (0, "valid: job enriched\n")
    code, _, said = sluice("validate", str(file), "--outside")
    assert (code, said.splitlines()[0]) == (1, 'error: access denied for user "cdc"')
    file.write_text(script())
    found = json.loads(sluice("validate", str(file), "--outside", "-o", "json")[1])
    here = json.loads(sluice("validate", str(file), "-o", "json")[1])
    assert found == {**here, "outside": True}


PROBLEM = {"detail": "x", "hint": "y"}
CODES = {
    "refused": (refusal({**PROBLEM, "status": 409}, None), 1),
    "failed_runner": (RefusedError("x", hint="y", problem={"type": "source"}), 1),
    "cannot_start": (ControlPlaneError("x", hint="y"), 1),
    "no_such_job": (JobNotFoundError("x", hint="y"), 1),
    "unreachable": (UnreachableError("x", hint="y"), 3),
    "no_token": (refusal({**PROBLEM, "status": 401}, None), 4),
    "too_little_scope": (refusal({**PROBLEM, "status": 403}, None), 4),
    "too_late": (WaitTimeoutError("x", hint="y"), 5),
}


@pytest.mark.parametrize(("error", "code"), CODES.values(), ids=CODES)
def test_an_exit_code_tells_the_kind_of_error(error, code):
    assert exit_code(error) == code


def test_an_interrupt_ends_with_130_and_sigterm_with_143(plane):
    command = [sys.executable, "-m", "service.cli", "wait", "lost", "join"]
    environment = {**os.environ, "SLUICE_SERVER": plane.url}
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # as in a terminal
        ) as waiting:
            assert waiting.stderr.readline().startswith("Stalled: ")
            waiting.send_signal(number)
            assert waiting.wait(timeout=60) == code
            assert "Traceback" not in waiting.stderr.read()


# Watching
# --------------------------------------------------------------------------------------------------


def test_watching_in_a_pipe_tells_each_transition(plane, sluice, client):
    job_id = client.submit(script(), "done too")["id"]
    (plane.services.settings.jobs_dir / job_id / "go").touch()
    code, out, _ = sluice("jobs", "watch", job_id)
    assert code == 0
    states = [line.split("  ")[1].split(":")[0] for line in out.splitlines()]
    assert list(dict.fromkeys(states))[-1] == "Finished"
    assert [e["word"] for e in client.events(job_id)] == list(dict.fromkeys(states))
    documents = sluice("jobs", "watch", job_id, "-o", "json")[1].splitlines()
    assert [json.loads(line)["state"] for line in documents] == ["FINISHED"]


def test_watching_a_job_that_fails_ends_with_1(sluice, client):
    job_id = client.submit(script(), "fail")["id"]
    code, out, _ = sluice("jobs", "watch", job_id)
    assert code == 1
    assert "Failed: table is gone" in out


def job(**values):
    snapshot = {"rows_done": 4, "rows_total": 10, "rows_total_is_estimate": True}
    snapshot |= {"chunks_done": 1, "chunks_total": 2, **values.pop("snapshot", {})}
    users = DimensionView(name="users", generation=1, snapshot=snapshot)
    return SimpleNamespace(**{"phase": "LOAD", "dimensions": [users], "probe": None, **values})


PROBE = {
    "topic": "clicks",
    "start_offsets": {"0": 10, "1": 0},
    "next_offsets": {"0": 15, "1": 99},
    "bounded_offsets": {"0": 20, "1": 30},
}
HISTORY = {"place": "history:clicks/0", "rows": 12, "rows_read": 3, "seconds_left": 9}
BARS = {
    "of_a_copy": (job(), [Bar("users", 4, 10, "4 of about 10 rows")]),
    "of_a_copy_of_known_size": (
        job(snapshot={"rows_total_is_estimate": False}),
        [Bar("users", 4, 10, "4 of 10 rows")],
    ),
    "of_a_copy_of_unknown_size": (
        job(snapshot={"rows_total": None}),
        [Bar("users", 4, None, "4 rows")],
    ),
    "of_a_bounded_stream": (
        job(phase="JOIN", probe=ProbeView(**PROBE)),
        [Bar("clicks", 35, 40, "35 of 40 records")],
    ),
    "of_files_before_a_stream": (
        job(phase="JOIN", probe=ProbeView(topic="clicks", history=HISTORY)),
        [Bar("history:clicks/0", 3, 12, "3 of 12 rows of files, about 9 s left")],
    ),
    "of_a_stream_behind_its_files": (
        job(phase="JOIN", probe=ProbeView(topic="clicks", history={**HISTORY, "rows_read": 12})),
        [],
    ),
    "of_an_endless_stream": (job(phase="JOIN", probe=ProbeView(topic="clicks")), []),
}


@pytest.mark.parametrize(("found", "expected"), BARS.values(), ids=BARS)
def test_bars_show_what_takes_long(found, expected):
    assert bars(found) == expected


# Pipes and terminals
# --------------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    def isatty(self):
        return True


COLOURS = {
    "terminal": (Screen, {"TERM": "xterm-256color"}, True),
    "terminal_without_colours": (Screen, {"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
    "dumb_terminal": (Screen, {"TERM": "dumb"}, False),
    "pipe": (io.StringIO, {"TERM": "xterm-256color"}, False),
    "pipe_with_forced_colours": (
        io.StringIO,
        {"TERM": "xterm", "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "GITHUB_ACTIONS": "true"},
        False,
    ),
}


@pytest.mark.parametrize(("stream", "environment", "colours"), COLOURS.values(), ids=COLOURS)
def test_only_a_terminal_gets_colours(sluice, monkeypatch, stream, environment, colours):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out, err = stream(), stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    sluice("jobs", "ls")
    sluice("wait", "lost", "join", "--timeout", "0.3")
    sluice("jobs", "--help")
    assert ("\x1b[32m" in out.getvalue()) == colours
    assert colours or "\x1b" not in out.getvalue()
    moves = stream is Screen and environment["TERM"] != "dumb"
    assert ("\x1b" in err.getvalue()) == moves
    assert ("\x1b[33mStalled" in err.getvalue()) == colours


def test_waiting_on_a_real_terminal_gives_the_cursor_back(plane):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "service.cli", "wait", "lost", "join"]
    environment = {**os.environ, "SLUICE_SERVER": plane.url, "TERM": "xterm"}
    with subprocess.Popen(
        [*command, "--timeout", "1"], stdout=theirs, stderr=theirs, cwd=ROOT, env=environment
    ) as waiting:
        assert waiting.wait(timeout=60) == 5
    os.close(theirs)
    shown = b""
    while b"hint: " not in shown:
        shown += os.read(ours, 65536)
    os.close(ours)
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h") == 1
    assert b"users" in shown


@pytest.mark.usefixtures("processes")
def test_the_program_starts_without_what_few_commands_need():
    slow = ("pyarrow", "pyspark", "sqlglot", "fastapi", "uvicorn", "sqlalchemy")
    code = f"import sys, service.cli.main; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr


# Completion
# --------------------------------------------------------------------------------------------------


def complete(words, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "service.cli"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={
            **os.environ,
            "_SLUICE_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
            **environment,
        },
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_jobs_of_the_control_plane_are_offered(plane, client, monkeypatch):
    monkeypatch.setattr(cli_options, "_COMPLETION_PATIENCE_S", 60)
    monkeypatch.setenv("SLUICE_SERVER", NOWHERE)
    context = SimpleNamespace(params={"server": plane.url})
    jobs = client.jobs()
    assert complete_job(context, "") == [
        (j["id"], f"{j['name']} {j['status']['word']}") for j in jobs
    ]
    assert [offered for offered, _ in complete_job(context, "cal")] == ["calm"]
    assert complete_job(context, "done t") == []  # a shell would take it for two words


def test_tables_of_the_job_of_the_line_are_offered(plane):
    context = SimpleNamespace(params={"server": plane.url, "job": "calm"})
    assert complete_table(context, "us") == ["users"]
    assert complete_table(context, "x") == []
    assert complete_sink(context, "") == ["enriched"]
    for job in ("no such job", None):
        context.params["job"] = job
        assert (complete_table(context, ""), complete_sink(context, "")) == ([], [])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(sluice, shell):
    code, out, said = sluice("completion", shell)
    assert (code, said) == (0, "")
    assert f"complete_{shell}" in out


def test_another_shell_is_refused(sluice):
    assert sluice("completion", "tcsh")[0] == 2


@pytest.mark.usefixtures("processes")
def test_a_shell_completes_commands_and_phases():
    assert complete("sluice jobs re") == ["resume"]
    assert complete("sluice wait calm j") == ["join"]


@pytest.mark.usefixtures("processes")
def test_completion_without_a_control_plane_is_silent():
    assert complete("sluice jobs get ", SLUICE_SERVER=NOWHERE) == []


def test_completion_does_not_wait_for_a_control_plane_that_hangs(plane):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"

        assert complete_job(SimpleNamespace(params={"server": address}), "") == []
