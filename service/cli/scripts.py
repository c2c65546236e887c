"""Commands about scripts: `submit`, `validate`, `explain`, and `inspect-topic`, which proposes one.

Names and values of a topic come from somebody else, so each text passes `one_line` or `clean`.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from joins.plan.errors import SinkError
from joins.plan.kafka_client import (
    CLIENT_ID,
    CLIENT_SECRET,
    FILES,
    KEY_PASSWORD,
    SCOPE,
    TOKEN_URL,
    VERIFIED_NAME,
)
from service.cli.options import Form, Script, Server, Timeout, load_settings, open_client
from service.cli.output import (
    OutputFormat,
    clean,
    facts_table,
    one_line,
    say,
    show,
    show_json,
    table,
    takes_commands,
)
from service.cli.terminal.progress import working
from service.cli.wait import WaitFor, follow
from service.errors import NotAllowedError, SubmissionError

if TYPE_CHECKING:
    from joins.kernels.debezium.inspect import TopicReport
    from joins.plan.plan import JoinPlan, KafkaOptions  # slow to load, and few commands plan
    from joins.plan.registry import RegistryOptions
    from service.schemas.progress import Validation

_SHOWN_WARNING = 2000
_CLIENT = frozenset(
    {
        *("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"),
        *(TOKEN_URL, CLIENT_ID, CLIENT_SECRET, SCOPE),
        *(*FILES, KEY_PASSWORD, VERIFIED_NAME),
    }
)
_REGISTRY = "schema.registry."
_USER, _CA = f"{_REGISTRY}basic.auth.user.info", f"{_REGISTRY}ssl.ca.location"
_KNOWN = _CLIENT | {_USER, _CA}

TopicName = Annotated[str, typer.Argument(help="Name of the topic.")]
Servers = Annotated[str, typer.Option(help="Brokers of its cluster, such as localhost:9092.")]
RegistryUrl = Annotated[
    str | None, typer.Option(help="Schema registry of a topic in Avro: its address.")
]
ClientConfig = Annotated[
    Path | None,
    typer.Option(
        help=f"File of NAME=VALUE lines: {', '.join(sorted(_KNOWN))}.", exists=True, dir_okay=False
    ),
]
SampleSize = Annotated[
    int, typer.Option(help="Most records to look at in each partition.", min=1, max=100_000)
]


def submit(  # noqa: PLR0913 (typer makes each parameter an option)
    script: Script,
    name: Annotated[str | None, typer.Option(help="Name of the job.")] = None,
    wait: WaitFor = None,
    timeout: Timeout = 3600.0,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key is the same job.")
    ] = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Submit a script and start its job; prints the job's id."""
    sql = read_script(script)
    with open_client(server) as client:
        with working("checking what the script names"):
            job = client.submit(sql, name, idempotency_key=key)
        document = job.status()
        warn(warning.message for warning in document.warnings)
        if wait is not None:
            document = follow(job, wait, timeout)
    if output is OutputFormat.JSON:
        show_json(document)
        return
    typer.echo(job.id)
    if wait is None and takes_commands(sys.stderr):
        say(f"sluice jobs watch {job.id} shows how far it is")


def validate(
    script: Script,
    outside: Annotated[
        bool,
        typer.Option("--outside", help="Have the control plane check what the script names, too."),
    ] = False,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Check a script. Needs no control plane, unless it is to look outside, too."""
    sql = read_script(script)
    result = _valid_outside(sql, server) if outside else _valid(sql)
    if output is OutputFormat.JSON:
        show_json(result)
        return
    warn(warning.message for warning in result.warnings)
    where = "; everything that it names is there" if outside else ""
    typer.echo(f"valid: job {one_line(result.name)}{where}")


def _valid_outside(sql: str, server: str | None) -> "Validation":
    with open_client(server) as client, working("checking what the script names"):
        return client.validate(sql)


def _valid(sql: str) -> "Validation":
    from service.api.views import submission_warning  # slow to load, and few commands plan
    from service.jobs.submit.submission import check_script
    from service.schemas.progress import Validation
    from service.sql.planner.planner import plan_script

    check_script(sql)
    planned = plan_script(sql)
    warnings = [submission_warning(text) for text in planned.warnings]
    return Validation(valid=True, name=planned.plan.name, outside=False, warnings=warnings)


def explain(script: Script, output: Form = OutputFormat.TABLE) -> None:
    """Print the plan of a script. Needs no control plane."""
    from service.jobs.store import plan_codec
    from service.jobs.submit.submission import check_script
    from service.sql.answers.explain import explain as plan_lines
    from service.sql.planner.planner import plan_script

    sql = read_script(script)
    check_script(sql)
    planned = plan_script(sql)
    warn(planned.warnings)
    if output is OutputFormat.JSON:
        typer.echo(plan_codec.dump(planned.plan).decode())
        return
    for line in plan_lines(planned.plan):
        typer.echo(line)
    _explain_writer(planned.plan)


def _explain_writer(plan: "JoinPlan") -> None:
    from service.jobs.submit.preflight import output_writer

    try:
        choice = output_writer(plan, load_settings())
    except (SinkError, NotAllowedError) as exc:
        warn([f"{exc.message}. {exc.hint}"])
        return
    if choice is not None:
        why = f": {choice.reason}" if choice.reason else ""
        typer.echo(f"WRITER {choice.writer.value}{why}")


def warn(warnings: Iterable[str]) -> None:
    """Tell each warning of a submission."""
    for warning in warnings:
        say(f"warning: {one_line(warning, _SHOWN_WARNING)}")


def read_script(script: Path) -> str:
    """The text of a file, or of standard input if it is `-`.

    Raises:
        SubmissionError: it cannot be read, or is no text.
    """
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


def inspect_topic(  # noqa: PLR0913 (typer makes each parameter an option)
    topic: TopicName,
    bootstrap_servers: Servers = "localhost:9092",
    registry: RegistryUrl = None,
    config: ClientConfig = None,
    records: SampleSize = 1_000,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show encodings, keys and marks of snapshots in a topic, and propose a CREATE TABLE."""
    from service.wiring.topic_sample import inspected  # slow to load, only this command needs it

    known = _read(config)
    reached = _registry_of(registry, known)
    report = inspected(_kafka_of(topic, bootstrap_servers, known), reached, records)
    settings = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap_servers,
        "format": "debezium-json" if registry is None else "debezium-avro-confluent",
    }
    if registry is not None:
        settings[f"{settings['format']}.url"] = registry
    if report.layout is not None and report.layout.value != "envelope":
        settings[f"{settings['format']}.layout"] = report.layout.value
    name = topic.rpartition(".")[2] or topic
    statement = report.create_table(name, settings)
    if output is OutputFormat.JSON:
        show_json(_document(report, statement))
    else:
        _show(report, statement)


def _read(config: Path | None) -> dict[str, str]:
    known: dict[str, str] = {}
    for line in [] if config is None else config.read_text(encoding="utf-8").split("\n"):
        name, sign, value = (part.strip() for part in line.partition("="))
        if not name or name.startswith("#"):
            continue
        if not sign or name not in _KNOWN:
            raise typer.BadParameter(
                f'"{one_line(name)}" is none of {", ".join(sorted(_KNOWN))}', param_hint="--config"
            )
        known[name] = value
    return known


def _kafka_of(topic: str, servers: str, known: dict[str, str]) -> "KafkaOptions":
    from joins.plan.plan import KafkaOptions

    properties = {name: value for name, value in known.items() if name in _CLIENT}
    for file, text in FILES.items():
        if file in properties:
            properties[text] = _pem(properties.pop(file)) or ""
    return KafkaOptions(servers, topic, tuple(sorted(properties.items())))


def _registry_of(url: str | None, known: dict[str, str]) -> "RegistryOptions | None":
    from joins.plan.registry import RegistryOptions

    if url is None:
        return None
    return RegistryOptions(url, known.get(_USER), ca=_pem(known.get(_CA)))


def _pem(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as exc:
        raise typer.BadParameter(
            f'"{one_line(path)}" cannot be read as PEM: {type(exc).__name__}', param_hint="--config"
        ) from exc


def _show(report: "TopicReport", statement: str) -> None:
    layout = "none that is known" if report.layout is None else report.layout.value
    tables = (".".join(part for part in name if part) for name in report.tables)
    marks = (
        f"partition {at}: {', '.join(f'{word} {count}' for word, count in words.items())}"
        for at, words in sorted(report.marks.items())
    )
    show(
        facts_table(
            [
                ("records", str(report.records)),
                ("layout", layout),
                ("with schema", str(report.with_schema)),
                ("kinds", one_line(", ".join(f"{k} {n}" for k, n in report.kinds.items()))),
                ("tables", one_line(", ".join(tables))),
                ("key", one_line(", ".join(report.key))),
                *(("snapshot marks", one_line(each)) for each in marks),
            ]
        )
    )
    rows = table("COLUMN", "ENCODINGS", "TYPE", "NOTE")
    for column in report.columns:
        encodings = one_line(", ".join(column.encodings))
        rows.add_row(one_line(column.name), encodings, column.sql or "-", one_line(column.note))
    show(rows)
    if report.columns:
        typer.echo(clean(statement))


def _document(report: "TopicReport", statement: str) -> dict[str, Any]:
    return {
        "records": report.records,
        "layout": None if report.layout is None else report.layout.value,
        "with_schema": report.with_schema,
        "kinds": dict(report.kinds),
        "tables": [
            {"database": database, "schema": schema, "table": name, "records": count}
            for (database, schema, name), count in report.tables.items()
        ],
        "key": list(report.key),
        "snapshot_marks": {str(at): dict(words) for at, words in report.marks.items()},
        "columns": [
            {
                "name": column.name,
                "encodings": list(column.encodings),
                "type": column.sql,
                "note": column.note,
            }
            for column in report.columns
        ],
        "create_table": statement if report.columns else None,
    }
