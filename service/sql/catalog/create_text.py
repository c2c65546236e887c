"""CREATE statements as text: tables and views written back, and LIKE applied."""

from dataclasses import replace

from joins.plan.types import nested_text, quoted
from service.sql.catalog.catalog import Table
from service.sql.catalog.option_values import InlineSecrets, literal
from service.sql.grammar.expression_nodes import Name, TypeNode
from service.sql.grammar.syntax import (
    ColumnNode,
    ComputedColumn,
    CreateTable,
    CreateView,
    Feature,
    Like,
    Merging,
    MetadataColumn,
    OptionNode,
    PhysicalColumn,
    WatermarkNode,
)
from service.sql.grammar.type_parser import STRING, type_text
from service.sql.text.script import Script, masked_comments


def merged(script: Script, node: CreateTable, like: Like, base: CreateTable) -> CreateTable:
    """`node` as one CREATE TABLE with LIKE applied."""
    return replace(
        node,
        columns=_columns(script, node, like, base),
        primary_key=_key(script, node, like, base),
        options=_options(script, node, like, base),
        watermark=_watermark(script, node, like, base),
        partitioned=_partitioned(script, node, like, base),
        like=None,
    )


def _feature(column: ColumnNode) -> Feature | None:
    if isinstance(column, ComputedColumn):
        return Feature.GENERATED
    return Feature.METADATA if isinstance(column, MetadataColumn) else None


def _columns(
    script: Script, node: CreateTable, like: Like, base: CreateTable
) -> tuple[ColumnNode, ...]:
    def is_taken(column: ColumnNode) -> bool:
        feature = _feature(column)
        return feature is None or like.merging[feature] is not Merging.EXCLUDING

    result = {column.name.text: column for column in base.columns if is_taken(column)}
    added: list[ColumnNode] = []
    for column in node.columns:
        earlier = result.get(column.name.text)
        feature = _feature(column)
        if earlier is None:
            added.append(column)
        elif (
            feature is not None
            and feature is _feature(earlier)
            and like.merging[feature] is Merging.OVERWRITING
        ):
            result[column.name.text] = column
        else:
            raise script.error(
                column.name.at,
                f'column "{column.name.text}" is already in table "{base.name.text}"',
                hint="Leave it out or rename it; a computed column replaces another one with "
                "LIKE … (OVERWRITING GENERATED).",
            )
    return (*result.values(), *added)


def _key(script: Script, node: CreateTable, like: Like, base: CreateTable) -> tuple[Name, ...]:
    if like.merging[Feature.CONSTRAINTS] is Merging.EXCLUDING or not base.primary_key:
        return node.primary_key
    if node.primary_key:
        raise script.error(
            node.primary_key[0].at,
            f'table "{base.name.text}" has a primary key already',
            hint="Leave the key out or write LIKE … (EXCLUDING CONSTRAINTS).",
        )
    return base.primary_key


def _watermark(
    script: Script, node: CreateTable, like: Like, base: CreateTable
) -> WatermarkNode | None:
    merging = like.merging[Feature.WATERMARKS]
    if merging is Merging.EXCLUDING or base.watermark is None:
        return node.watermark
    if node.watermark is not None and merging is Merging.INCLUDING:
        raise script.error(
            node.watermark.at,
            f'table "{base.name.text}" has a WATERMARK already',
            hint="Leave it out or write LIKE … (OVERWRITING WATERMARKS).",
        )
    return node.watermark or base.watermark


def _partitioned(
    script: Script, node: CreateTable, like: Like, base: CreateTable
) -> tuple[Name, ...]:
    if like.merging[Feature.PARTITIONS] is Merging.EXCLUDING or not base.partitioned:
        return node.partitioned
    if node.partitioned:
        raise script.error(
            node.partitioned[0].at,
            f'table "{base.name.text}" is PARTITIONED BY columns already',
            hint="Leave PARTITIONED BY out or write LIKE … (EXCLUDING PARTITIONS).",
        )
    return base.partitioned


def _options(
    script: Script, node: CreateTable, like: Like, base: CreateTable
) -> tuple[OptionNode, ...]:
    merging = like.merging[Feature.OPTIONS]
    if merging is Merging.EXCLUDING:
        return node.options
    own = {option.key for option in node.options}
    known = {option.key for option in base.options}
    if merging is Merging.INCLUDING:
        for option in node.options:
            if option.key in known:
                raise script.error(
                    option.at,
                    f'option "{option.key}" is already in table "{base.name.text}"',
                    hint="Leave it out or write LIKE … (OVERWRITING OPTIONS).",
                )
    return (*(option for option in base.options if option.key not in own), *node.options)


def with_hint(script: Script, node: CreateTable, options: tuple[OptionNode, ...]) -> CreateTable:
    """`node` with the options of an OPTIONS hint, which override its own."""
    hinted: dict[str, OptionNode] = {}
    for option in options:
        if option.key in hinted or option.key == "connector":
            what = "changes the connector" if option.key == "connector" else "has it twice"
            raise script.error(
                option.at,
                f'option "{option.key}": the hint {what}',
                hint="Give each option once; declare a separate table for another connector.",
            )
        hinted[option.key] = option
    kept = (option for option in node.options if option.key not in hinted)
    return replace(node, options=(*kept, *options))


_LONGEST = 2**31 - 1


def table_text(script: Script, table: Table, secrets: InlineSecrets) -> str:
    """The CREATE TABLE of a table, LIKE applied, its options as `secrets` show them."""
    lines = [_column(script, column) for column in table.columns]
    if table.primary_key:
        names = ", ".join(quoted(name) for name in table.primary_key)
        lines.append(f"PRIMARY KEY ({names}) NOT ENFORCED")
    if table.watermark is not None:
        node = table.watermark.node
        lines.append(f"WATERMARK FOR {quoted(node.column.text)} AS {watermark_text(script, table)}")
    options = [
        f"{literal(option.key)} = {literal(secrets.shown(option))}" for option in table.node.options
    ]
    cut = ", ".join(quoted(name.text) for name in table.node.partitioned)
    clauses = f" PARTITIONED BY ({cut})" if cut else ""
    shared = "SHARED " if table.node.shared else ""
    columns = f"CREATE {shared}TABLE {quoted(table.name)} (\n{_listed(lines)}\n)"
    return f"{columns}{clauses} WITH (\n{_listed(options)}\n)"


def view_text(script: Script, view: CreateView, secrets: InlineSecrets) -> str:
    columns = ""
    if view.columns is not None:
        columns = f" ({', '.join(quoted(name.text) for name in view.columns)})"
    query = secrets.redacted(script, view.start, view.end)
    return f"CREATE VIEW {quoted(view.name.text)}{columns} AS\n{query}"


def column_extras(script: Script, column: ColumnNode) -> str:
    """The clause of a computed or metadata column; empty for a physical one."""
    if isinstance(column, ComputedColumn):
        return f"AS {_written(script, column.start, column.end)}"
    if isinstance(column, MetadataColumn):
        key = "" if column.key == column.name.text else f" FROM {literal(column.key)}"
        return f"METADATA{key}{' VIRTUAL' if column.virtual else ''}"
    return ""


def watermark_text(script: Script, table: Table) -> str:
    if table.watermark is None:
        return ""
    return _written(script, table.watermark.node.start, table.watermark.node.end)


def _written(script: Script, start: int, end: int) -> str:
    """An expression as it is planned; only its comments may have credentials."""
    return masked_comments(script.text[start:end], ())


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


def _listed(lines: list[str]) -> str:
    return ",\n".join(f"  {line}" for line in lines)
