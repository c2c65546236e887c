"""The command line `sluice`: the program, its error handling, and `serve`, `version`, `demo`.

Data goes to standard output, messages to standard error. An error is an error line and a hint, with
the excerpt of a wrong script between them; `ExitCode` has the exit codes.
"""

import os
import re
import signal
import sys
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from service.cli import dlq as cli_dlq
from service.cli import export as cli_export
from service.cli import inspect as cli_inspect
from service.cli import jobs as cli_jobs
from service.cli import scripts as cli_scripts
from service.cli import secrets as cli_secrets
from service.cli import tables as cli_tables
from service.cli import tokens as cli_tokens
from service.cli import top as cli_top
from service.cli import up as cli_up
from service.cli import wait as cli_wait
from service.cli.inspect_topic import inspect_topic
from service.cli.options import DataCommand, Form, Server, open_client
from service.cli.output import (
    ExitCode,
    OutputFormat,
    exit_code,
    say,
    say_error,
    say_findings,
    show_json,
)
from service.cli.topics import app as topic_app
from service.footprint import kept_for_good, leave_out
from service.version import program_version
from watermark.errors import SluiceError

_NO_SUCH_COMMAND = re.compile(r"No such command '([^']*)'")
_SUGGESTION = re.compile(r" (Did you mean|\(Possible options:).*")  # the hint has the whole command
_MEANT = {
    "status": "get",
    "show": "get",
    "describe": "get",
    "start": "resume",
    "list": "ls",
    "ps": "ls",
    "remove": "rm",
    "delete": "rm",
    "cancel": "stop",
}
app = typer.Typer(
    name="sluice",
    help="Join a stream with a table that is still being copied: never early, never twice.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong command line, 3 no control plane, "
    "4 access denied, 5 timeout, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def serve(
    host: Annotated[
        str | None,
        typer.Option(help="Listen address; others than loopback need tokens, and TLS or a proxy."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 picks a free one.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Job store, jobs and warehouse.")] = None,
) -> None:
    """Run the control plane until interrupted. Jobs continue without it."""
    leave_out("pandas")
    with kept_for_good():
        from service.api.server import ControlPlane  # slow to load, only this command needs it
        from service.config import Settings, unknown_variables
        from service.logs import configure_logs

        settings = Settings.load(host=host, port=port, data_dir=data_dir)
        configure_logs(settings.log_level)
        for name in unknown_variables():
            say(f"warning: {name} is set, but no such setting exists")
        control_plane = ControlPlane(settings)
        control_plane.open()
        control_plane.warm_up()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again at its end
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    try:
        say(f"control plane at {control_plane.url}, data in {settings.data_dir}")
        control_plane.run()
    finally:
        control_plane.close()


@app.command()
def version(
    of_server: Annotated[
        bool, typer.Option("--of-server", help="Version and role of the control plane.")
    ] = False,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Print the version."""
    if of_server:
        with open_client(server) as client:
            of_program = client.version()
        words = [of_program.version, of_program.role]
        if of_program.role == "standby" and of_program.leader_url:
            words.append(f"leader: {of_program.leader_url}")
        content = of_program.model_dump(mode="json")
    else:
        words, content = [program_version()], {"name": "sluice", "version": program_version()}
    show_json(content) if output is OutputFormat.JSON else typer.echo("\t".join(words))


class Shell(StrEnum):
    """A shell with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the completion script, for example for `source <(sluice completion bash)`."""
    # typer's own option supports only the shell that it runs in
    from typer._completion_shared import get_completion_script

    names = {"prog_name": "sluice", "complete_var": "_SLUICE_COMPLETE"}
    typer.echo(get_completion_script(shell=shell.value, **names))


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="Rows of the table.", min=1)] = 200_000,
    records: Annotated[
        int | None, typer.Option(help="Stop after this many joined records.", min=1)
    ] = None,
    stop_by_itself: Annotated[
        bool, typer.Option("--exit", help="Stop after --records, by default 10000.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="No live screen; the last line is one JSON object.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of the control plane; 0 picks a free one.")] = 0,
) -> None:
    """Run a demo: start all servers and watch a stream wait for a table."""
    from service.demo.run import DemoOptions, run  # slow to load, only this command needs it
    from service.logs import configure_logs

    configure_logs("WARNING")
    most_records = records if records is not None or not stop_by_itself else 10_000
    run(DemoOptions(rows=rows, records=most_records, plain=as_json, port=port))


for _command in (
    cli_up.up,
    cli_scripts.submit,
    cli_scripts.validate,
    cli_scripts.migrate,
    cli_scripts.explain,
    cli_scripts.sql,
    cli_wait.wait,
    cli_top.top,
    cli_inspect.watermarks,
    cli_inspect.acknowledge,
    cli_inspect.replay,
    cli_inspect.explain_row,
    cli_inspect.doctor,
    cli_tables.preview,
    cli_tables.verify,
    inspect_topic,
):
    app.command()(_command)
app.add_typer(cli_jobs.app, name="jobs")
app.add_typer(cli_tables.catalog, name="tables")
app.add_typer(cli_tables.app, name="dim")
app.add_typer(topic_app, name="topic")
app.add_typer(cli_dlq.app, name="dlq")
app.add_typer(cli_secrets.app, name="secrets")
app.add_typer(cli_tokens.app, name="tokens")
app.add_typer(cli_export.app, name="export")
for _group in app.registered_groups:
    assert _group.typer_instance is not None
    _group.typer_instance.rich_markup_mode = None  # help is plain text everywhere
    for _verb in _group.typer_instance.registered_commands:
        _verb.cls = DataCommand
for _verb in app.registered_commands:
    _verb.cls = DataCommand


_WHOLE = {(): ["--help"], ("help",): ["--help"], ("--version",): ["version"]}


def main() -> None:
    """Entry point; prints each SluiceError with its hint and exits with its code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))
    leave_out("trio")
    try:
        arguments = _WHOLE.get(tuple(sys.argv[1:]), sys.argv[1:])
        code = app(arguments, standalone_mode=False, prog_name="sluice")
        sys.exit(code if isinstance(code, int) else ExitCode.DONE)
    except SluiceError as exc:
        say_findings(exc)
        sys.exit(exit_code(exc))
    except TyperException as exc:
        _fail_usage(exc, ExitCode(exc.exit_code))
    except (KeyboardInterrupt, Abort):
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader is gone; avoid the flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)


def _fail(message: str, hint: str, code: ExitCode) -> None:
    say_error(message, hint)
    sys.exit(code)


def _fail_usage(exc: TyperException, code: ExitCode) -> None:
    """Print a usage error; a command group without a command, such as `sluice jobs`, its help."""
    message = exc.format_message()
    if message.startswith("Usage: "):
        say(message)
        sys.exit(code)
    hint = _usage_hint(exc, message)
    _fail(_SUGGESTION.sub("", message.replace("Value error, ", "", 1)), hint, code)


def _usage_hint(exc: TyperException, message: str) -> str:
    """Name the missing parameter, or the command or option that is meant."""
    about = getattr(exc, "param", None)  # missing, or of a wrong value
    if about is not None and about.help:
        name = next((opt for opt in about.opts if opt.startswith("--")), about.metavar)
        return f"Give {name or about.name.upper()}: {about.help}"
    context: typer.Context | None = getattr(exc, "ctx", None)
    named = _NO_SUCH_COMMAND.match(message)
    if context is not None and context.parent is None and named and named[1] == "down":
        return "Press Ctrl-C where sluice up or sluice serve runs."
    typed = getattr(exc, "option_name", None)
    if context is not None and named is not None:
        if command := _meant_command(context, named[1]):
            return f"Run {command}."
    elif context is not None and typed is not None:
        options = [name for each in context.command.params for name in each.opts]
        bare = {name.lstrip("-"): name for name in options}  # the dashes are alike in all
        if near := get_close_matches(typed.lstrip("-"), bare, n=1):
            return f"Use {bare[near[0]]}."
    return f"Run {'sluice' if context is None else context.command_path} --help."


def _meant_command(context: typer.Context, typed: str) -> str | None:
    """The command of the group that `typed` names or nearly names; of all groups for the program's.

    A group that was registered before another one wins, so that a bare verb is one of jobs.
    """
    path, group = context.command_path, getattr(context.command, "commands", {})
    known = {name: f"{path} {name}" for name in group}
    if context.parent is None:
        for name, inner in group.items():
            for verb in getattr(inner, "commands", ()):
                known.setdefault(verb, f"{path} {name} {verb}")
    meant = _MEANT.get(typed, typed)
    near = [meant] if meant in known else get_close_matches(typed, known, n=1)
    return known[near[0]] if near else None
