"""CREATE TABLE … LIKE: a table's columns, key and options over those of another one.

Source: Flink's documentation of CREATE TABLE, section LIKE: physical columns are always taken over
and come first; what the new table declares of the same name is an error unless it is OVERWRITING.
"""

from dataclasses import replace

from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import (
    ColumnNode,
    ComputedColumn,
    CreateTable,
    Feature,
    Like,
    Merging,
    MetadataColumn,
    OptionNode,
    WatermarkNode,
)
from service.sql.text.script import Script


def merged(script: Script, node: CreateTable, like: Like, base: CreateTable) -> CreateTable:
    """`node` as one CREATE TABLE without LIKE.

    Raises:
        SqlError: the two declare the same column, option or a key each.
    """
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
    """`node` with the options of an OPTIONS hint, which win.

    Raises:
        SqlError: an option comes twice in the hint, or the hint changes the connector.
    """
    hinted: dict[str, OptionNode] = {}
    for option in options:
        if option.key in hinted or option.key == "connector":
            what = "changes the connector" if option.key == "connector" else "has it twice"
            raise script.error(
                option.at,
                f'option "{option.key}": the hint {what}',
                hint="Give each option once; another connector needs a table of its own.",
            )
        hinted[option.key] = option
    kept = (option for option in node.options if option.key not in hinted)
    return replace(node, options=(*kept, *options))
