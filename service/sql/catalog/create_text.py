"""Tables and views as the statements that declare them; no credential is shown."""

from joins.plan.types import nested_text, quoted
from service.sql.catalog.catalog import Table
from service.sql.grammar.expression_nodes import TypeNode
from service.sql.grammar.syntax import (
    ColumnNode,
    ComputedColumn,
    CreateView,
    MetadataColumn,
    OptionNode,
    PhysicalColumn,
)
from service.sql.grammar.type_rules import STRING, type_text
from service.sql.text.script import Script

_LONGEST = 2**31 - 1


def table_text(script: Script, table: Table) -> str:
    """The CREATE TABLE of a table, LIKE worked in, inline secrets as references."""
    lines = [_column(script, column) for column in table.columns]
    if table.primary_key:
        names = ", ".join(quoted(name) for name in table.primary_key)
        lines.append(f"PRIMARY KEY ({names}) NOT ENFORCED")
    if table.watermark is not None:
        node = table.watermark.node
        lines.append(f"WATERMARK FOR {quoted(node.column.text)} AS {watermark_text(script, table)}")
    secrets = {secret.node.value_at: secret.reference for secret in table.inline_secrets}
    options = [_option(option, secrets) for option in table.node.options]
    cut = ", ".join(quoted(name.text) for name in table.node.partitioned)
    clauses = f" PARTITIONED BY ({cut})" if cut else ""
    shared = "SHARED " if table.node.shared else ""
    columns = f"CREATE {shared}TABLE {quoted(table.name)} (\n{_listed(lines)}\n)"
    return f"{columns}{clauses} WITH (\n{_listed(options)}\n)"


def view_text(script: Script, view: CreateView) -> str:
    """The CREATE VIEW of a view, its query as written."""
    columns = ""
    if view.columns is not None:
        columns = f" ({', '.join(quoted(name.text) for name in view.columns)})"
    query = script.shown(view.start, view.end)
    return f"CREATE VIEW {quoted(view.name.text)}{columns} AS\n{query}"


def column_extras(script: Script, column: ColumnNode) -> str:
    """What a column is beyond its type: computed or metadata; empty for a physical one."""
    if isinstance(column, ComputedColumn):
        return f"AS {script.shown(column.start, column.end)}"
    if isinstance(column, MetadataColumn):
        key = "" if column.key == column.name.text else f" FROM {_text(column.key)}"
        return f"METADATA{key}{' VIRTUAL' if column.virtual else ''}"
    return ""


def watermark_text(script: Script, table: Table) -> str:
    if table.watermark is None:
        return ""
    return script.shown(table.watermark.node.start, table.watermark.node.end)


def _column(script: Script, column: ColumnNode) -> str:
    parts = [quoted(column.name.text)]
    if not isinstance(column, ComputedColumn):
        parts.append(_type(column.type))
    if isinstance(column, PhysicalColumn) and not column.nullable:
        parts.append("NOT NULL")
    parts.append(column_extras(script, column))
    return " ".join(part for part in parts if part)


def _type(node: TypeNode) -> str:
    """The type as declared: CHAR and VARCHAR keep their length."""
    if node.parts:
        texts = iter([_type(part) for part in node.parts])
        return nested_text(node.type, lambda _: next(texts))
    if node.length is None:
        return type_text(node.type)
    fixed, varying = ("CHAR", "VARCHAR") if node.type == STRING else ("BINARY", "VARBINARY")
    if node.length == _LONGEST and not node.fixed:
        return type_text(node.type)
    return f"{fixed if node.fixed else varying}({node.length})"


def _option(option: OptionNode, secrets: dict[int, str]) -> str:
    return f"{_text(option.key)} = {_text(secrets.get(option.value_at, option.value))}"


def _listed(lines: list[str]) -> str:
    return ",\n".join(f"  {line}" for line in lines)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
