"""`sluice inspect-topic`: what somebody's topic looks like, and a table to declare for it.

Names and values come from the topic, so each text passes `one_line` or `clean`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.options import Form
from service.cli.output import OutputFormat, clean, facts_table, one_line, show, show_json, table

if TYPE_CHECKING:
    from joins.kernels.debezium.inspect import TopicReport
    from joins.plan.plan import KafkaOptions
    from joins.plan.registry import RegistryOptions

_CLIENT = frozenset({"security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"})
_REGISTRY = "schema.registry."
_USER, _CA = f"{_REGISTRY}basic.auth.user.info", f"{_REGISTRY}ssl.ca.location"
_KNOWN = _CLIENT | {_USER, _CA}


def inspect_topic(  # noqa: PLR0913 (typer makes each parameter an option)
    topic: Annotated[str, typer.Argument(help="Name of the topic.")],
    bootstrap_servers: Annotated[
        str, typer.Option(help="Brokers of its cluster, such as localhost:9092.")
    ] = "localhost:9092",
    registry: Annotated[
        str | None, typer.Option(help="Schema registry of a topic in Avro: its address.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="File of NAME=VALUE lines: security.protocol, sasl.mechanism, sasl.username, "
            "sasl.password, schema.registry.basic.auth.user.info, "
            "schema.registry.ssl.ca.location.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    records: Annotated[
        int, typer.Option(help="Most records to look at in each partition.", min=1, max=100_000)
    ] = 1_000,
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
    for line in [] if config is None else config.read_text(encoding="utf-8").splitlines():
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

    properties = tuple(sorted((name, value) for name, value in known.items() if name in _CLIENT))
    return KafkaOptions(servers, topic, properties)


def _registry_of(url: str | None, known: dict[str, str]) -> "RegistryOptions | None":
    from joins.plan.registry import RegistryOptions

    if url is None:
        return None
    user, sign, password = known.get(_USER, "").partition(":")
    return RegistryOptions(
        url, user if sign else None, password if sign else None, ca_file=known.get(_CA)
    )


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
