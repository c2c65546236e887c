"""`sluice jobs ls | get | watch | logs | pause | resume | stop | rm`."""

import json
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from service.cli.exits import ExitCode
from service.cli.options import Form, Job, Server, Timeout, open_client
from service.cli.output import (
    OutputFormat,
    clean,
    console,
    escaped,
    instant,
    one_line,
    say,
    show,
    show_json,
)
from service.cli.progress import working
from service.cli.views import bars, bars_grid, job_parts, jobs_table
from service.cli.wait import ENDED, GOALS, POLL_S, JobPoll, follow
from service.client import Client, RefusedError
from service.errors import WaitTimeoutError
from service.jobs.store.job import JobState

_MISSING = 404
app = typer.Typer(help="List jobs, look at them and drive them.", no_args_is_help=True)
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is so.")]


@app.command("ls")
def list_jobs(
    state: Annotated[
        list[JobState] | None,
        typer.Option(help="Only jobs in this state; may be repeated.", case_sensitive=False),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Ids only, one a line.")] = False,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """List jobs, the newest first."""
    with open_client(server) as client:
        jobs = [job for job in client.jobs() if not state or job["state"] in state]
    if output is OutputFormat.JSON:
        show_json(jobs)
    elif quiet:
        for job in jobs:
            typer.echo(job["id"])
    else:
        show(jobs_table(jobs, whole=not console().is_terminal))


@app.command("get")
def get_job(job: Job, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """Show where a job stands and what it waits for."""
    with open_client(server) as client:
        document = client.job(client.find(job))
        why = client.explain_wait(document["id"]) if output is OutputFormat.TABLE else None
    if output is OutputFormat.JSON:
        show_json(document)
    else:
        show(*job_parts(document, why))


@app.command("watch")
def watch_job(job: Job, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """Watch a job until it ends. In a pipe, prints a line a change."""
    with open_client(server) as client:
        job_id = client.find(job)
        if output is OutputFormat.JSON:
            document = _watch(client, job_id, _json_lines())
        elif console().is_terminal:
            document = _watch_screen(client, job_id)
        else:
            document = _watch(client, job_id, _event_lines(client, job_id))
    if document["state"] == JobState.FAILED:
        raise typer.Exit(ExitCode.FAILED)


def _watch_screen(client: Client, job_id: str) -> dict[str, Any]:
    def draw(job: dict[str, Any]) -> None:
        drawn = bars_grid(bars(job))
        live.update(Group(*job_parts(job), *((Text(""), drawn) if drawn.row_count else ())))

    with Live(console=console(), refresh_per_second=4) as live:
        return _watch(client, job_id, draw)


def _watch(
    client: Client, job_id: str, show_each: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Show the job until it has ended and nobody wants it to go on."""
    look = JobPoll(client, job_id)
    while True:
        job = look.job()
        show_each(job)
        if job["state"] in ENDED.states and job["desired_state"] != "RUNNING":
            return job
        if job["state"] == JobState.FINISHED:
            return job
        time.sleep(POLL_S)


def _event_lines(client: Client, job_id: str) -> Callable[[dict[str, Any]], None]:
    """Prints each transition, also those between two looks, and each reason after it."""
    last, cause = 0, ""

    def lines(job: dict[str, Any]) -> None:
        nonlocal last, cause
        for event in client.events(job_id, after=last):
            last, cause = event["sequence"], event["cause"]
            typer.echo(f"{instant(event['at_ms'])}  {event['to']}: {one_line(cause)}")
        if job["reason"] != cause:
            cause = job["reason"]
            typer.echo(f"{instant(_now_ms())}  {job['state']}: {one_line(cause)}")

    return lines


def _json_lines() -> Callable[[dict[str, Any]], None]:
    """Prints the job as one line of JSON whenever anything but ages has changed."""
    printed: dict[str, Any] = {}

    def line(job: dict[str, Any]) -> None:
        nonlocal printed
        runner = {**job["runner"], "status_age_ms": None}
        if (seen := {**job, "runner": runner}) != printed:
            printed = seen
            typer.echo(escaped(json.dumps(job, ensure_ascii=False)))

    return line


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@app.command("logs")
def show_logs(
    job: Job,
    forever: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until interrupted.")
    ] = False,
    server: Server = None,
) -> None:
    """Print the log of a job's runner."""
    with open_client(server) as client:
        job_id = client.find(job)
        text, offset = client.log(job_id)
        while text or forever:
            typer.echo(clean(text), nl=False)
            if not text:
                time.sleep(POLL_S)
            text, offset = client.log(job_id, offset)


@app.command("pause")
def pause_job(job: Job, wait: Wait = True, timeout: Timeout = 120.0, server: Server = None) -> None:
    """Pause a job after its batch. Its runner ends, its place is kept."""
    with open_client(server) as client:
        job_id = client.find(job)
        client.pause(job_id)
        if wait:
            follow(client, job_id, GOALS["paused"], timeout)
    say(f"job {job_id} {'is paused' if wait else 'will pause'}; sluice jobs resume goes on")


@app.command("resume")
def resume_job(
    job: Job, wait: Wait = False, timeout: Timeout = 3600.0, server: Server = None
) -> None:
    """Go on with a paused, stopped or failed job where it left off."""
    with open_client(server) as client:
        job_id = client.find(job)
        client.start(job_id)
        if wait:
            follow(client, job_id, GOALS["join"], timeout)
    say(f"job {job_id} {'is joining' if wait else 'goes on'}")


@app.command("stop")
def stop_job(job: Job, wait: Wait = True, timeout: Timeout = 120.0, server: Server = None) -> None:
    """Stop a job after its batch. It keeps its place."""
    with open_client(server) as client:
        job_id = client.find(job)
        client.stop(job_id)
        if wait:
            follow(client, job_id, ENDED, timeout)
    say(f"job {job_id} {'stopped' if wait else 'is stopping'}")


@app.command("rm")
def remove_job(
    job: Job,
    with_output: Annotated[
        bool, typer.Option("--with-output", help="Also delete what the job has written.")
    ] = False,
    timeout: Timeout = 120.0,
    server: Server = None,
) -> None:
    """Stop a job and delete what it made. Its output stays unless told otherwise."""
    with open_client(server) as client:
        job_id = client.find(job)
        with working(f"removing job {job_id}"):
            left = _remove(client, job_id, with_output=with_output, timeout_s=timeout)
    say(f"job {job_id} removed{' with its output' if with_output and not left else ''}")
    for each in left:
        say(f"warning: {each}")


def _remove(client: Client, job_id: str, *, with_output: bool, timeout_s: float) -> list[str]:
    """Wait until the job is gone; what of its output is left, and why."""
    deadline = time.monotonic() + timeout_s
    document = client.remove(job_id, output=with_output)
    while document is not None and "left" not in document:
        if document["error"] and document["reason"].startswith("removal failed"):
            raise RefusedError(
                document["reason"],
                hint=f"{document['error']['hint']} The removal is tried again by itself.",
                problem=document["error"],
            )
        if time.monotonic() >= deadline:
            raise WaitTimeoutError(
                f'job "{job_id}" is not removed after {timeout_s:g} s: {document["reason"]}',
                hint=f"It goes on; look again with sluice jobs get {job_id}.",
            )
        time.sleep(POLL_S)
        document = _job_or_none(client, job_id) or _removal(client, job_id)
    return [] if document is None else list(document["left"])


def _removal(client: Client, job_id: str) -> dict[str, Any] | None:
    """What is told of a job that is gone, if anything."""
    try:
        return client.remove(job_id)
    except RefusedError as exc:
        if exc.problem.get("status") == _MISSING:
            return None
        raise


def _job_or_none(client: Client, job_id: str) -> dict[str, Any] | None:
    try:
        return client.job(job_id)
    except RefusedError as exc:
        if exc.problem.get("status") == _MISSING:
            return None
        raise
