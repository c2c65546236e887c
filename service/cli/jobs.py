"""`sluice jobs ls | get | watch | logs | update | rollback | pause | resume | stop | rm`."""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from service.cli.inspect import operator
from service.cli.options import Form, Job, Script, Server, Timeout, open_client
from service.cli.output import (
    ExitCode,
    OutputFormat,
    clean,
    console,
    escaped,
    instant,
    one_line,
    plain,
    say,
    show,
    show_json,
    tell,
    working,
)
from service.cli.scripts import read_script
from service.cli.views import (
    bars,
    bars_grid,
    checked_states,
    is_in,
    job_parts,
    jobs_table,
    reason,
    state,
)
from service.cli.wait import ENDED, GOALS, POLL_S, JobPoll, follow
from service.errors import SubmissionError
from service.jobs.store.job import JobState

if TYPE_CHECKING:
    from service.client import RemoteJob, Sluice
    from service.schemas.jobs import JobDetail
    from service.schemas.progress import RowsPreview, UpdateView

app = typer.Typer(help="List, show and control jobs.", no_args_is_help=True)
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until the change has taken effect.")
]


@app.command("ls")
def list_jobs(
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="Only jobs in this state, such as running or stalled; repeatable.",
            callback=checked_states,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Ids only, one per line.")] = False,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """List jobs, those in trouble first; `-q` and JSON newest first."""
    with open_client(server) as client:
        jobs = [job for job in client.jobs() if not state or is_in(job, state)]
    if output is OutputFormat.JSON:
        show_json(jobs)
    elif quiet:
        for job in jobs:
            typer.echo(job.id)
    else:
        if not jobs:
            say("no job" + (" is in this state" if state else ": sluice submit SCRIPT starts one"))
        screen = console()
        show(jobs_table(jobs, width=screen.width if screen.is_terminal else None))


@app.command("get")
def get_job(job: Job, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """Show the state of a job and what it waits for."""
    with open_client(server) as client:
        remote = client.job(job)
        document = remote.status()
        why = remote.inspect.explain_wait() if output is OutputFormat.TABLE else None
    tell(document, output, lambda shown: show(*job_parts(shown, why)))


@app.command("watch")
def watch_job(job: Job, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """Watch a job until it ends. In a pipe, prints one line per change."""
    with open_client(server) as client:
        remote = client.job(job)
        if output is OutputFormat.JSON:
            document = _watch(remote, _json_lines())
        elif console().is_terminal:
            document = _watch_screen(remote)
        else:
            document = _watch(remote, _event_lines(client, remote.id))
    if document.state == JobState.FAILED:
        raise typer.Exit(ExitCode.FAILED)


def _watch_screen(watched: "RemoteJob") -> "JobDetail":
    def draw(job: "JobDetail") -> None:
        drawn = bars_grid(bars(job))
        live.update(Group(*job_parts(job), *((Text(""), drawn) if drawn.row_count else ())))

    with Live(console=console(), refresh_per_second=4) as live:
        return _watch(watched, draw)


def _watch(watched: "RemoteJob", show_each: Callable[["JobDetail"], None]) -> "JobDetail":
    look = JobPoll(watched)
    while True:
        job = look.job()
        show_each(job)
        if job.state in ENDED.states and job.desired_state != "RUNNING":
            return job
        if job.state == JobState.FINISHED:
            return job
        time.sleep(POLL_S)


def _event_lines(client: "Sluice", job_id: str) -> Callable[["JobDetail"], None]:
    """Prints each transition, including those between two polls, and each later reason."""
    last, cause = 0, ""

    def lines(job: "JobDetail") -> None:
        nonlocal last, cause
        while events := client.transitions(job_id=job_id, after=last):
            for event in events:
                last, cause = event.sequence, event.cause
                typer.echo(
                    f"{instant(event.at_ms)}  {event.word or event.target}: {one_line(cause)}"
                )
        if reason(job) != cause:
            cause = reason(job)
            typer.echo(f"{instant(time.time_ns() // 1_000_000)}  {state(job)}: {one_line(cause)}")

    return lines


def _json_lines() -> Callable[["JobDetail"], None]:
    """Prints the job as a line of JSON when values other than ages have changed."""
    printed: dict[str, Any] = {}

    def line(job: "JobDetail") -> None:
        nonlocal printed
        document = plain(job)
        runner = {**document["runner"], "status_age_ms": None}
        if (seen := {**document, "runner": runner}) != printed:
            printed = seen
            typer.echo(escaped(json.dumps(document, ensure_ascii=False)))

    return line


@app.command("logs")
def show_logs(
    job: Job,
    forever: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue until interrupted.")
    ] = False,
    server: Server = None,
) -> None:
    """Print the log of a job's runner."""
    with open_client(server) as client:
        remote = client.job(job)
        text, offset = remote.inspect.log()
        while text or forever:
            typer.echo(clean(text), nl=False)
            if not text:
                time.sleep(POLL_S)
            text, offset = remote.inspect.log(offset)


Preview = Annotated[bool, typer.Option("--preview", help="Show what changes, and change nothing.")]
Batches = Annotated[
    int,
    typer.Option(
        help="How many of the newest batches are joined again, to show which rows change.",
        min=0,
        max=1000,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed in a pipe.")]


@app.command("update")
def update_job(
    job: Job,
    script: Script,
    preview: Preview = False,
    batches: Batches = 100,
    yes: Yes = False,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Change a job to another script at the border of a batch.

    Before it asks, it shows which rows of past batches the new plan changes. The copies of its
    tables, its offsets and its output stay. Exits with 1 if a change is refused.
    """
    sql = read_script(script)
    with open_client(server) as client:
        ask = partial(client.job(job).update, sql)
        _change(ask, output, batches=batches, preview=preview, yes=yes)


@app.command("rollback")
def roll_back_job(
    job: Job,
    to: Annotated[
        int | None, typer.Option(help="Number of the plan; default: the one before the newest.")
    ] = None,
    preview: Preview = False,
    batches: Batches = 100,
    yes: Yes = False,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Change a job back to an older plan of it, which gets a new number."""
    with open_client(server) as client:
        ask = partial(client.job(job).roll_back, to)
        _change(ask, output, batches=batches, preview=preview, yes=yes)


def _change(
    ask: Callable[..., "UpdateView"],
    output: OutputFormat,
    *,
    batches: int,
    preview: bool,
    yes: bool,
) -> None:
    """Show the changes and, unless for a preview, apply them after consent."""
    with working("comparing the plans"):
        # Rows are compared for who decides; --yes has decided.
        shown = ask(preview=True, batches=batches if preview or not yes else 0)
    if output is OutputFormat.TABLE:
        _show_changes(shown)
    if not shown.accepted:
        if output is OutputFormat.JSON:
            show_json(shown)
        raise typer.Exit(ExitCode.FAILED)
    applies = not preview and bool(shown.changes)
    if applies and not yes and not _has_consent():
        raise typer.Exit(ExitCode.FAILED)
    done = ask(of_plan=shown.plan) if applies else shown
    if output is OutputFormat.JSON:
        show_json(done)
    elif applies:
        say(f"job {done.job_id} has plan {done.plan}; its runner takes it after its batch")


def _has_consent() -> bool:
    try:
        return typer.confirm("Change the job?", default=False, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        say("")
        raise SubmissionError(
            "standard input ends without an answer; nothing was changed",
            hint="Run the command again with --yes, which does not ask.",
        ) from None


def _show_changes(shown: "UpdateView") -> None:
    for warning in shown.warnings:
        say(f"warning: {one_line(warning)}")
    for change in shown.changes:
        typer.echo(f"{'accepted' if change.accepted else 'refused '}  {one_line(change.of)}")
        if not change.accepted:
            typer.echo(f"          {one_line(change.reason or '')}")
            typer.echo(f"          {one_line(change.hint or '')}")
    if not shown.changes:
        typer.echo(f"nothing changes: the job has plan {shown.plan}")
    for rows in shown.rows:
        _show_rows(rows)


def _show_rows(rows: "RowsPreview") -> None:
    """What changes in rows of past batches, with examples."""
    if rows.batches:
        more_dead = rows.dead_letters_after - rows.dead_letters_before
        typer.echo(
            f"\n{rows.sink_table}: the newest {rows.batches} batches joined again, "
            f"{rows.records} records: {rows.rows_changed} of {rows.rows_before} rows change, "
            f"{rows.rows_added} come, {rows.rows_removed} go, {more_dead:+d} dead letters"
        )
    if rows.reason:
        typer.echo(f"{rows.sink_table}: {one_line(rows.reason)}")
    for example in rows.examples:
        typer.echo(f"  {one_line(example.place)}")
        for mark, row in (("-", example.before), ("+", example.after)):
            if row is not None:
                typer.echo(f"    {mark} {one_line(json.dumps(row, ensure_ascii=False))}")


@app.command("pause")
def pause_job(job: Job, wait: Wait = True, timeout: Timeout = 120.0, server: Server = None) -> None:
    """Pause a job after its batch, until it is resumed. It has not ended."""
    with open_client(server) as client:
        remote = client.job(job)
        remote.pause(operator())
        if wait:
            follow(remote, GOALS["paused"], timeout)
    say(f"job {remote.id} {'paused' if wait else 'is pausing'}; continue with sluice jobs resume")


@app.command("resume")
def resume_job(
    job: Job, wait: Wait = False, timeout: Timeout = 3600.0, server: Server = None
) -> None:
    """Continue a paused, stopped or failed job at its position."""
    with open_client(server) as client:
        remote = client.job(job)
        remote.start()
        if wait:
            follow(remote, GOALS["join"], timeout)
    say(f"job {remote.id} {'is joining' if wait else 'resumed'}")


@app.command("stop")
def stop_job(job: Job, wait: Wait = True, timeout: Timeout = 120.0, server: Server = None) -> None:
    """Stop a job after its batch. It has ended; a resume continues at its position."""
    with open_client(server) as client:
        remote = client.job(job)
        remote.stop(operator())
        if wait:
            follow(remote, ENDED, timeout)
    say(f"job {remote.id} {'stopped' if wait else 'is stopping'}")


@app.command("rm")
def remove_job(
    job: Job,
    with_output: Annotated[
        bool, typer.Option("--with-output", help="Also delete the job's output.")
    ] = False,
    leave_topics: Annotated[
        bool, typer.Option("--leave-topics", help="Ask no Kafka: the cluster is gone for good.")
    ] = False,
    timeout: Timeout = 120.0,
    server: Server = None,
) -> None:
    """Stop a job and delete its topics, tables and files. Its output stays by default."""
    with open_client(server) as client:
        remote = client.job(job)
        with working(f"removing job {remote.id}"):
            left = remote.delete(output=with_output, topics=not leave_topics, timeout_s=timeout)
    say(f"job {remote.id} removed{' with its output' if with_output and not left else ''}")
    for each in left:
        say(f"warning: {each}")
