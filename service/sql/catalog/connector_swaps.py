"""WITH clauses in place of those of connectors that are not here, for `sluice migrate`."""

import re

from service.sql.catalog.option import TableRole
from service.sql.catalog.option_values import literal
from service.sql.grammar.syntax import CreateTable
from service.sql.text.script import Edit, Script

_BROKERS = "properties.bootstrap.servers"
_ROW_FORMATS = ("json", "csv", "raw", "avro")
_ELSEWHERE = "Its rows are elsewhere: let Kafka Connect bring them from there or to there."
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def role_of(script: Script, table: CreateTable) -> TableRole:
    """What the queries of the script do with the table, by their words."""
    text = _COMMENT.sub(" ", script.text)
    name = rf"(?:[`\w]+\s*\.\s*)*`?{re.escape(table.name.text)}`?(?![\w`])"
    if re.search(rf"\bINTO\s+{name}", text, re.IGNORECASE):
        return TableRole.SINK
    joined = rf"\b{name}\s*(?:/\*.*?\*/\s*)?FOR\s+SYSTEM_TIME\b|\bSNAPSHOT\s*\([^)]*\b{name}"
    if re.search(joined, text, re.IGNORECASE | re.DOTALL):
        return TableRole.DIMENSION
    return TableRole.STREAM


def swapped(script: Script, table: CreateTable, connector: str) -> Edit | None:
    """The table with a connector that is here, in the same role; None if it has no own WITH."""
    own = [node for node in table.options if table.options_at < node.at < table.options_end]
    if not table.options_at or not any(node.key == "connector" for node in own):
        return None
    role = role_of(script, table)
    options = _options(script, table, role)
    listed = ",\n".join(f"  {literal(key)} = {literal(text)}" for key, text in options)
    fill = "Fill in its address. " if role is not TableRole.SINK else ""
    return Edit(table.options_at, table.options_end, f"(\n{listed}\n)", note=fill + _ELSEWHERE)


def _options(script: Script, table: CreateTable, role: TableRole) -> list[tuple[str, str]]:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", table.name.text)
    if role is TableRole.SINK:
        return [("connector", "delta"), ("path", name)]
    brokers = re.search(rf"'{re.escape(_BROKERS)}'\s*=\s*'([^']+)'", script.text)
    topic = [
        ("connector", "kafka"),
        ("topic", name),
        (_BROKERS, brokers[1] if brokers else "localhost:9092"),
    ]
    if role is TableRole.DIMENSION:
        form = "debezium-json" if table.primary_key else "json"
        return [*topic, ("format", form)]
    given = next((node.value for node in table.options if node.key == "format"), "json")
    form = given if given in _ROW_FORMATS else "json"
    return [*topic, ("scan.startup.mode", "earliest-offset"), ("format", form)]
