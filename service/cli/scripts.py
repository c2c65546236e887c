"""Commands about scripts: `submit`, `validate`, `explain`, `sql`."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from joins.plan.errors import SinkError
from service.cli.conversation import Conversation, RowStream, show_result
from service.cli.options import (
    Append,
    Form,
    Name,
    Script,
    Server,
    Timeout,
    load_settings,
    open_client,
)
from service.cli.output import (
    ExitCode,
    OutputFormat,
    clean,
    one_line,
    say,
    say_error,
    show_json,
    takes_commands,
    warn,
    working,
)
from service.cli.wait import WaitFor, follow
from service.errors import NotAllowedError, SubmissionError

if TYPE_CHECKING:
    from service.schemas.progress import Validation


def submit(
    script: Script,
    name: Name = None,
    append: Append = False,
    wait: WaitFor = None,
    timeout: Timeout = 3600.0,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key is the same job.")
    ] = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Submit a script, start its job and print the job's id."""
    sql = read_script(script)
    with open_client(server) as client:
        with working("checking the script"):
            job = client.submit(sql, name, idempotency_key=key, append=append)
        document = job.status()
        warn(warning.message for warning in document.warnings)
        if wait is not None:
            document = follow(job, wait, timeout)
    if output is OutputFormat.JSON:
        show_json(document)
        return
    typer.echo(job.id)
    if wait is None and takes_commands(sys.stderr):
        say(f"run sluice jobs watch {job.id} to follow it")


def validate(
    script: Script,
    outside: Annotated[
        bool,
        typer.Option("--outside", help="Also check the systems that the script names."),
    ] = False,
    name: Name = None,
    append: Append = False,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Check a script. Only --outside needs a control plane."""
    sql = read_script(script)
    if outside:
        with open_client(server) as client, working("checking the script"):
            result = client.validate(sql, name, append=append)
    else:
        result = _valid(sql, name)
    if output is OutputFormat.JSON:
        show_json(result)
        return
    warn(warning.message for warning in result.warnings)
    where = "; all systems that it names were checked" if outside else ""
    typer.echo(f"valid: job {one_line(result.name)}{where}")


def _valid(sql: str, name: str | None) -> "Validation":
    from service.api.views import submission_warning  # slow to load, and few commands plan
    from service.jobs.submit.submission import check_script
    from service.schemas.progress import Validation
    from service.sql.answers.findings import findings
    from service.sql.planner.planner import plan_script
    from service.sql.text.script import SqlError

    check_script(sql)
    try:
        planned = plan_script(sql, name=name)
    except SqlError as error:
        error.findings = [asdict(finding) for finding in findings(sql)]
        raise
    warnings = [submission_warning(text) for text in planned.warnings]
    return Validation(valid=True, name=planned.plan.name, outside=False, warnings=warnings)


def migrate(
    script: Script,
    target: Annotated[
        Path | None,
        typer.Option("--into", help="File for the changed script; default: standard output."),
    ] = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Write a Flink script as it would be accepted, a comment for each change.

    Exits with 1 if something is left that cannot be changed. Needs no control plane.
    """
    from service.jobs.submit.submission import check_script
    from service.sql.answers.findings import migrate as migrated

    sql = read_script(script)
    check_script(sql)
    migration = migrated(sql)
    if target is not None:
        _write(target, migration.sql)
    if output is OutputFormat.JSON:
        show_json({"accepted": migration.is_accepted, **asdict(migration)})
    elif target is None:
        typer.echo(clean(migration.sql), nl=False)
    warn(migration.warnings)
    for finding in migration.left:
        say_error(f"line {finding.line}, column {finding.column}: {finding.message}", finding.hint)
    changes, left = len(migration.changes), len(migration.left)
    changed = f"{changes} change{'' if changes == 1 else 's'}"
    if migration.is_accepted:
        say(f"accepted after {changed}" if migration.changes else "accepted as it is")
        return
    say(f"{changed}; {left} fault{' is' if left == 1 else 's are'} left")
    raise typer.Exit(ExitCode.FAILED)


def _write(target: Path, sql: str) -> None:
    try:
        target.write_text(sql, encoding="utf-8")
    except OSError as exc:
        raise SubmissionError(
            f'script "{target}" cannot be written: {exc.strerror}',
            hint="Give the path of a file in a directory that you may write to.",
        ) from exc


def explain(script: Script, output: Form = OutputFormat.TABLE) -> None:
    """Print the plan of a script, without a control plane."""
    from service.jobs.store import plan_codec
    from service.jobs.submit.submission import check_script
    from service.sql.answers.explain import tree
    from service.sql.planner.planner import plan_script

    sql = read_script(script)
    check_script(sql)
    planned = plan_script(sql)
    warn(planned.warnings)
    if output is OutputFormat.JSON:
        typer.echo(plan_codec.dump(planned.plan).decode())
        return
    for line in tree(planned.plan):
        typer.echo(line)
    from service.connectors.sinks import output_writer

    try:
        choice = output_writer(planned.plan, load_settings())
    except (SinkError, NotAllowedError) as exc:
        warn([f"{exc.message}. {exc.hint}"])
        return
    if choice is not None:
        why = f": {choice.reason}" if choice.reason else ""
        typer.echo(f"WRITER {choice.writer.value}{why}")


def sql(
    script: Annotated[
        Path | None,
        typer.Argument(help="Script of statements, - for standard input; default: a prompt."),
    ] = None,
    execute: Annotated[
        str | None, typer.Option("--execute", "-e", help="Statements, instead of a script.")
    ] = None,
    append: Append = False,
    timeout: Timeout = 3600.0,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Execute statements: answer questions, submit INSERTs, show the rows of a SELECT.

    A script that only declares tables and views stores them in the catalog.
    """
    if script is not None and execute is not None:
        raise typer.BadParameter("give a script or --execute, not both")
    is_json = output is OutputFormat.JSON
    printer, live = (show_json, None) if is_json else (show_result, RowStream)
    with open_client(server) as client:
        talk = Conversation(client, printer, timeout, live, append=append)
        if execute is not None:
            talk.carry_out(execute)
        elif script is None and sys.stdin.isatty():
            from service.cli.prompt import Prompt  # slow to load: it reads SQL

            talk.in_parts = True
            Prompt(talk).run()
        else:
            talk.carry_out(read_script(script or Path("-")))


def read_script(script: Path) -> str:
    """The text of a file, or of standard input for `-`; raises SubmissionError."""
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
            hint="Give the path of a file, or - for standard input."
            + (" Statements themselves go to sluice sql -e." if " " in str(script) else ""),
        ) from exc
