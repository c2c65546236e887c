"""`sluice inspect-topic`: what the records of a topic look like, and a table for them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.options import Form, Server
from service.cli.output import (
    OutputFormat,
    clean,
    facts_table,
    one_line,
    show,
    show_json,
    table,
)
from service.cli.topics import (
    ClientConfig,
    Servers,
    TopicName,
    brokers,
    kafka_of,
    read_config,
    registry_of,
)

if TYPE_CHECKING:
    from joins.kernels.debezium.inspect import TopicReport


RegistryUrl = Annotated[str | None, typer.Option(help="Address of the schema registry, for Avro.")]
SampleSize = Annotated[
    int, typer.Option(help="Maximum records to read per partition.", min=1, max=100_000)
]


def inspect_topic(
    topic: TopicName,
    bootstrap_servers: Servers = None,
    registry: RegistryUrl = None,
    config: ClientConfig = None,
    records: SampleSize = 1_000,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show encodings, keys and snapshot marks of a topic, and propose a CREATE TABLE."""
    from service.wiring.topic_access import inspected  # slow to load

    known, servers = read_config(config), brokers(bootstrap_servers, server)
    reached = registry_of(registry, known)
    report = inspected(kafka_of(topic, servers, known), reached, records)
    settings = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": servers,
        **_format(report, registry),
    }
    name = topic.rpartition(".")[2] or topic
    statement = report.create_table(name, settings)
    if output is OutputFormat.JSON:
        show_json(_document(report, statement))
    else:
        _show(report, statement)


def _format(report: "TopicReport", registry: str | None) -> dict[str, str]:
    """Options of a stream's format, or of a table of Debezium."""
    name = "json" if registry is None else "avro-confluent"
    if not report.is_stream:
        name = f"debezium-{name}"
    options = {"format": name}
    if registry is not None:
        options[f"{name}.url"] = registry
    if report.is_stream:
        if registry is None and any("TIMESTAMP" in (each.sql or "") for each in report.columns):
            options["json.timestamp-format.standard"] = "ISO-8601"
        return {**options, "scan.startup.mode": "earliest-offset"}
    if report.layout is not None and report.layout.value != "envelope":
        options[f"{name}.layout"] = report.layout.value
    return options


def _show(report: "TopicReport", statement: str) -> None:
    layout = "unknown" if report.layout is None else report.layout.value
    read_as = "stream" if report.is_stream else "table of Debezium"
    tables = (".".join(part for part in name if part) for name in report.tables)
    marks = (
        f"partition {at}: {', '.join(f'{word} {count}' for word, count in words.items())}"
        for at, words in sorted(report.marks.items())
    )
    show(
        facts_table(
            [
                ("records", str(report.records)),
                ("read as", read_as if report.columns else "unknown"),
                ("layout", layout),
                ("with schema", str(report.with_schema)),
                ("kinds", one_line(", ".join(f"{k} {n}" for k, n in report.kinds.items()))),
                *(("tables", one_line(each)) for each in [", ".join(filter(None, tables))] if each),
                *(("key", one_line(each)) for each in [", ".join(report.key)] if each),
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
        "is_stream": report.is_stream,
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
