"""Rows of a dimension, and what changed in it, as the answers of an inspection."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joins.dimension.changelog_scan import (
    SOURCE_TIME,
    VISIBLE,
    DimensionStates,
    Key,
    RowPage,
    State,
)
from joins.dimension.changes import CHANGE_TYPE, ChangePage, KeyChange, json_columns
from joins.kernels.changelog.changes import DELETED
from joins.kernels.changelog.digest import POSITION_COLUMNS
from joins.plan.plan import Dimension
from service.jobs.inspect.table_keys import key_objects, next_cursor, read_keys

_POSITION = {"_epoch": "epoch", "_file": "file", "_pos": "pos", "_row": "row"}
PAGE_BYTES = 4 << 20  # the control plane holds an answer in memory
Question = Mapping[str, Any]
Answer = dict[str, Any]


def described(dimension: Dimension) -> Answer:
    """What the plan says of a dimension."""
    columns = [
        {
            "name": item.name,
            "type": str(item.type),
            "nullable": item.nullable and item.name not in dimension.primary_key,
        }
        for item in dimension.fields
    ]
    key = list(dimension.primary_key)
    kind = dimension.source.kind
    return {"table": dimension.name, "source": kind, "primary_key": key, "columns": columns}


def by_key(states: DimensionStates, state: State, question: Question) -> Answer:
    """The rows of the keys that were asked for, and why others have none."""
    dimension = states.dimension
    keys = read_keys(question["keys"], dimension)
    records = states.records(state, keys)
    rows = records.filter(records.column(VISIBLE))
    answer: Answer = {"next_cursor": None}
    if question.get("arrow"):
        return {**answer, "arrow": arrow_stream(_with_places(rows, dimension))}
    hidden = records.filter(pc.invert(records.column(VISIBLE)))
    absent = _absent(keys, records, hidden, dimension)
    return {**answer, "items": row_items(rows, dimension), "absent": absent}


def _absent(
    keys: pa.Table, records: pa.Table, hidden: pa.Table, dimension: Dimension
) -> list[Answer]:
    names = list(dimension.primary_key)
    shown = [
        {"key": item["key"], "reason": absence(is_deleted=deleted), **place}
        for item, deleted, place in zip(
            row_items(hidden, dimension),
            hidden.column(DELETED).to_pylist(),
            _places(hidden),
            strict=True,
        )
    ]
    unknown = keys.join(records.select(names), names, join_type="left anti")
    unknown = unknown.sort_by([(name, "ascending") for name in names])
    nothing = {"position": None, "source_ts_ms": None}
    shown += [
        {"key": key, "reason": "no-record", **nothing} for key in key_objects(unknown, dimension)
    ]
    return shown


def absence(*, is_deleted: bool) -> str:
    return "deleted" if is_deleted else "not-copied-again"


def row_page(page: RowPage, dimension: Dimension, state: State, question: Question) -> Answer:
    """The rows of a page."""
    versions = (state.version,)
    cursor = next_cursor(page.next_after, dimension, versions)
    if question.get("arrow"):
        return {"next_cursor": cursor, "arrow": arrow_stream(_with_places(page.rows, dimension))}
    items = row_items(page.rows, dimension)
    shown = fitting(items)
    if shown < len(items):
        cursor = next_cursor(_key(page.rows, shown - 1, dimension), dimension, versions)
    return {"next_cursor": cursor, "items": items[:shown], "absent": []}


def fitting(items: Sequence[Answer]) -> int:
    """How many of `items` an answer has room for; one at least.

    Many short columns are far longer as JSON than in memory.
    """
    size = 0
    for at, item in enumerate(items):
        size += len(json.dumps(item))
        if at and size > PAGE_BYTES:
            return at
    return len(items)


def _key(rows: pa.Table, at: int, dimension: Dimension) -> Key:
    return tuple(rows.column(name)[at] for name in dimension.primary_key)


def row_items(rows: pa.Table, dimension: Dimension) -> list[Answer]:
    """Rows with their keys, and where the record of each is in the source's changes."""
    names = [item.name for item in dimension.fields]
    values = zip(*json_columns(rows, dimension), strict=True)
    shown = [dict(zip(names, row, strict=True)) for row in values]
    return [
        {"key": {name: row[name] for name in dimension.primary_key}, "values": row, **place}
        for row, place in zip(shown, _places(rows), strict=True)
    ]


def _places(rows: pa.Table) -> list[Answer]:
    """Where the record of each row is in the source's changes, and when the source made it."""
    columns = {shown: rows.column(name).to_pylist() for name, shown in _POSITION.items()}
    positions = [dict(zip(columns, p, strict=True)) for p in zip(*columns.values(), strict=True)]
    times = rows.column(SOURCE_TIME).to_pylist()
    return [
        {"position": position, "source_ts_ms": at_ms}
        for position, at_ms in zip(positions, times, strict=True)
    ]


def changed_rows(
    page: ChangePage, dimension: Dimension, versions: tuple[int, int], question: Question
) -> Answer:
    """The changes of a page."""
    cursor = next_cursor(page.next_after, dimension, versions)
    if question.get("arrow"):
        rows = _with_places(page.as_table(), dimension, CHANGE_TYPE)
        return {"next_cursor": cursor, "arrow": arrow_stream(rows)}
    items = _change_items(page, dimension)
    shown = fitting(items)
    if shown < len(items):
        last = page.changes[shown - 1]
        side, at = (page.before, last.before) if last.after is None else (page.after, last.after)
        assert at is not None
        cursor = next_cursor(_key(side, at, dimension), dimension, versions)
    return {"next_cursor": cursor, "items": items[:shown]}


def _change_items(page: ChangePage, dimension: Dimension) -> list[Answer]:
    before, after = (_needed(page, dimension, side) for side in ("before", "after"))
    items = []
    for change in page.changes:
        old = None if change.before is None else before[change.before]
        new = None if change.after is None else after[change.after]
        row = new or old
        assert row is not None
        items.append(
            {
                "change": _change_name(change),
                "key": row["key"],
                "before": None if old is None else old["values"],
                "after": None if new is None else new["values"],
                "position": None if new is None else new["position"],
                "source_ts_ms": None if new is None else new["source_ts_ms"],
            }
        )
    return items


def _needed(page: ChangePage, dimension: Dimension, side: str) -> dict[int, Answer]:
    rows: pa.Table = getattr(page, side)
    at = [n for change in page.changes if (n := getattr(change, side)) is not None]
    return dict(zip(at, row_items(rows.take(pa.array(at, pa.int64())), dimension), strict=True))


def _change_name(change: KeyChange) -> str:
    if change.before is None:
        return "insert"
    return "delete" if change.after is None else "update"


def _with_places(rows: pa.Table, dimension: Dimension, *more: str) -> pa.Table:
    names = [*(item.name for item in dimension.fields), *POSITION_COLUMNS, SOURCE_TIME, *more]
    return rows.select(names)


def arrow_stream(rows: pa.Table) -> str:
    """`rows` as an Arrow stream in base64."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return base64.b64encode(sink.getvalue()).decode()
