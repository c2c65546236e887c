"""The command line, `sluice`: driving jobs; `cli_inspect`, `cli_dlq` and `cli_tokens` have others.

Exit codes: 0 done; 1 it could not be done (two lines on standard error: what happened, what to do);
2 the command line is wrong. 130 interrupted. Data goes to standard output, talk to standard error.
"""

import signal
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.exceptions import Abort, TyperException

from joins.errors import SinkError
from service import cli_dlq, cli_inspect, cli_tokens
from service.cli_options import Form, Job, Server, Timeout, open_client
from service.cli_output import Output, clean, say, show_job, show_jobs, show_json
from service.client import Client, RefusedError
from service.config import Settings, unknown_variables
from service.errors import ControlPlaneError, JobNotFoundError, SubmissionError
from service.footprint import leave_out_pandas
from service.logs import configure_logs
from service.version import program_version
from watermark.errors import SluiceError

_POLL_S = 0.2
_ENDED = ("STOPPED", "FAILED", "FINISHED")
_SUBMIT_HELP = "Submit a script and start its job; prints the job's id."
app = typer.Typer(
    name="sluice",
    help="Join a stream with a table that is still being copied: never early, never twice.",
    epilog="Exit codes: 0 done, 1 could not be done, 2 wrong command line.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


class Wait(StrEnum):
    """How far `submit` waits."""

    NO = "no"
    JOINING = "joining"
    FINISHED = "finished"


Script = Annotated[Path, typer.Argument(help="The SQL script, - for standard input.")]


@app.command()
def serve(
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on; not loopback: tokens, and TLS or a proxy."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port, 0 takes a free one.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Job store, jobs and warehouse.")] = None,
) -> None:
    """Run the control plane until it is interrupted; jobs go on without it."""
    leave_out_pandas()
    from service.api.server import ControlPlane  # slow to load, and only this command needs it

    settings = Settings.load(host=host, port=port, data_dir=data_dir)
    configure_logs(settings.log_level)
    for name in unknown_variables():
        say(f"warning: {name} is set, but there is no such setting")
    control_plane = ControlPlane(settings)
    control_plane.open()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again at its end
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    try:
        say(f"control plane at {control_plane.url}, data in {settings.data_dir}")
        control_plane.run()
    finally:
        control_plane.close()


@app.command(help=_SUBMIT_HELP)
def submit(  # noqa: PLR0913 (typer makes each parameter an option)
    script: Script,
    name: Annotated[str | None, typer.Option(help="Name of the job.")] = None,
    wait: Annotated[Wait, typer.Option(help="Return when the job is in this state.")] = Wait.NO,
    timeout: Timeout = 3600.0,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key is the same job.")
    ] = None,
    server: Server = None,
    output: Form = Output.TEXT,
) -> None:
    """Read the script, submit it, and wait if asked to."""
    sql = _read(script)
    with open_client(server) as client:
        job = client.submit(sql, name, idempotency_key=key)
        for warning in job["warnings"]:
            say(f"warning: {warning['message']}")
        if wait is not Wait.NO:
            states = {wait.value.upper(), "FINISHED"}  # a short job is JOINING for a moment only
            job = _wait(client, job["id"], timeout, lambda found: found["state"] in states)
    if output is Output.JSON:
        show_json(job)
    else:
        typer.echo(job["id"])


@app.command()
def status(
    job: Annotated[str | None, typer.Argument(help="Id, beginning of an id, or name.")] = None,
    server: Server = None,
    output: Form = Output.TEXT,
) -> None:
    """Show one job with its tables and its probe, or all jobs."""
    with open_client(server) as client:
        if job is None:
            jobs = client.jobs()
            show_json(jobs) if output is Output.JSON else show_jobs(jobs)
            return
        found = client.job(client.find(job))
        show_json(found) if output is Output.JSON else show_job(found)


@app.command()
def stop(
    job: Job,
    wait: Annotated[bool, typer.Option(help="Wait until it has stopped.")] = True,
    timeout: Timeout = 120.0,
    server: Server = None,
) -> None:
    """Stop a job after its batch; it keeps its place."""
    with open_client(server) as client:
        job_id = client.find(job)
        client.stop(job_id)
        if wait:
            _wait(client, job_id, timeout, lambda found: found["state"] in _ENDED)
    say(f"job {job_id} {'stopped' if wait else 'is stopping'}")


@app.command()
def start(job: Job, server: Server = None) -> None:
    """Start a stopped or failed job where it left off."""
    with open_client(server) as client:
        job_id = client.find(job)
        client.start(job_id)
    say(f"job {job_id} is starting")


@app.command("rm")
def remove(
    job: Job,
    with_output: Annotated[
        bool, typer.Option("--output", help="Also delete what the job has written.")
    ] = False,
    timeout: Timeout = 120.0,
    server: Server = None,
) -> None:
    """Stop a job and delete its topics, tables, index and checkpoint."""
    with open_client(server) as client:
        job_id = client.find(job)
        found = client.remove(job_id, output=with_output)
        deadline = time.monotonic() + timeout
        while found is not None:
            if found["error"] and found["reason"].startswith("removal failed"):
                raise RefusedError(
                    found["reason"],
                    hint=f"{found['error']['hint']} The removal is tried again by itself.",
                    problem=found["error"],
                )
            _check_deadline(deadline, f"job {job_id} is not yet removed")
            time.sleep(_POLL_S)
            found = _job_or_none(client, job_id)
    say(f"job {job_id} removed{' with its output' if with_output else ''}")


@app.command()
def logs(
    job: Job,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until interrupted.")
    ] = False,
    server: Server = None,
) -> None:
    """Print the log of a job's runner."""
    with open_client(server) as client:
        job_id = client.find(job)
        text, offset = client.log(job_id)
        while text or follow:
            typer.echo(clean(text), nl=False)
            if not text:
                time.sleep(_POLL_S)
            text, offset = client.log(job_id, offset)


@app.command()
def validate(script: Script, output: Form = Output.TEXT) -> None:
    """Plan a script without a control plane and print the plan."""
    from service.jobs import plan_codec
    from service.jobs.preflight import output_writer
    from service.jobs.submission import check_script
    from service.sql.explain import explain
    from service.sql.planner import plan_script

    sql = _read(script)
    check_script(sql)
    planned = plan_script(sql)
    for warning in planned.warnings:
        say(f"warning: {warning}")
    if output is Output.JSON:
        typer.echo(plan_codec.dump(planned.plan).decode())
        return
    for line in explain(planned.plan):
        typer.echo(line)
    try:
        choice = output_writer(planned.plan, Settings.load())
    except SinkError as exc:
        say(f"warning: {exc.message}. {exc.hint}")
        return
    if choice is not None:
        why = f": {choice.reason}" if choice.reason else ""
        typer.echo(f"WRITER {choice.writer.value}{why}")


@app.command()
def version(output: Form = Output.TEXT) -> None:
    """Print the version."""
    found = program_version()
    show_json({"name": "sluice", "version": found}) if output is Output.JSON else typer.echo(found)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="Users in the table.", min=1)] = 200_000,
    records: Annotated[
        int | None, typer.Option(help="Stop after so many joined records.", min=1)
    ] = None,
    stop_by_itself: Annotated[
        bool, typer.Option("--exit", help="Stop by itself, after 10000 records if not said.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="No live screen; the last line is one JSON object.")
    ] = False,
    port: Annotated[int, typer.Option(help="Of the control plane, 0 for a free one.")] = 0,
) -> None:
    """Start everything and watch a stream wait for a table."""
    from service.demo.run import DemoOptions, run

    configure_logs("WARNING")
    wanted = records if records is not None or not stop_by_itself else 10_000
    run(DemoOptions(rows=rows, records=wanted, plain=as_json, port=port))


cli_inspect.register(app)
app.add_typer(cli_dlq.app, name="dlq")
app.add_typer(cli_tokens.app, name="tokens")


def main() -> None:
    """Entry of the program; turns every error of ours into two lines and an exit code."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False, prog_name="sluice")
        sys.exit(code if isinstance(code, int) else 0)
    except SluiceError as exc:
        _fail(exc.message, exc.hint)
    except TyperException as exc:
        _fail(exc.format_message(), "Run the command with --help.", code=exc.exit_code)
    except (KeyboardInterrupt, Abort):
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)


def _fail(message: str, hint: str, *, code: int = 1) -> None:
    for label, text in (("error", message), ("hint", hint)):
        say(f"{label}: {' '.join(text.split())}")
    sys.exit(code)


def _read(script: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(script) == "-" else script.read_bytes()
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise SubmissionError(
            f'script "{script}" is not UTF-8 at byte {exc.start}', hint="Save it as UTF-8."
        ) from exc
    except OSError as exc:
        raise SubmissionError(
            f'script "{script}" cannot be read: {exc.strerror}',
            hint="Give the path of a file, or - for standard input.",
        ) from exc


def _wait(
    client: Client, job_id: str, timeout_s: float, reached: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Follow a job until `reached`, telling each change; a job that failed is an error."""
    deadline = time.monotonic() + timeout_s
    told = ""
    while True:
        job = client.job(job_id)
        if reached(job):
            return job
        if job["state"] != told:
            told = job["state"]
            say(f"{told}: {job['reason']}")
        if job["state"] == "FAILED":
            error = job["error"] or {"message": job["reason"], "hint": "Run sluice logs."}
            raise RefusedError(error["message"], hint=error["hint"], problem=error)
        _check_deadline(deadline, f"job {job_id} is still {told}: {job['reason']}")
        time.sleep(_POLL_S)


def _check_deadline(deadline: float, message: str) -> None:
    if time.monotonic() > deadline:
        raise ControlPlaneError(message, hint="It goes on; look again with sluice status.")


def _job_or_none(client: Client, job_id: str) -> dict[str, Any] | None:
    try:
        return client.job(job_id)
    except RefusedError as exc:
        if exc.problem["status"] == 404:
            return None
        raise
    except JobNotFoundError:
        return None


if __name__ == "__main__":
    main()
