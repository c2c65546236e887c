"""Answers of an inspection: rows and changes of a dimension, their keys and page cursors."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    key_table,
)
from joins.dimension.changes import CHANGE_TYPE, ChangePage, KeyChange, json_columns
from joins.kernels.changelog.changes import DELETED
from joins.kernels.changelog.digest import POSITION_COLUMNS
from joins.kernels.expressions.casts import whole
from joins.kernels.json.exact import json_values, typed_values
from joins.plan.errors import QuestionError
from joins.plan.plan import Dimension, Field


def _fields_of_key(dimension: Dimension) -> list[Field]:
    fields = {item.name: item for item in dimension.fields}
    return [fields[name] for name in dimension.primary_key]


def read_keys(texts: Sequence[str], dimension: Dimension) -> pa.Table:
    """Distinct keys from texts: a value, or a JSON array or object. Raises QuestionError."""
    fields = _fields_of_key(dimension)
    rows = [[text] if len(fields) == 1 else _composite(text, fields) for text in texts]
    columns = []
    for at, item in enumerate(fields):
        read = typed_values([row[at] for row in rows], item.type)
        if read.failed.any():
            wrong = rows[int(read.failed.argmax())][at]
            raise QuestionError(
                f'"{wrong[:100]}" is no value of key column "{item.name}", {item.type}',
                hint="Write the value as the rows of the table show it.",
            )
        columns.append(read.values)
    keys = key_table(dimension, columns)
    names = list(dimension.primary_key)
    return keys.group_by(names).aggregate([]).select(names)


def _composite(text: str, fields: Sequence[Field]) -> list[str]:
    names = [item.name for item in fields]
    try:
        value = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and set(value) == set(names):
        value = [value[name] for name in names]
    if not isinstance(value, list) or len(value) != len(names):
        raise QuestionError(
            f'"{text[:100]}" is no key of columns {", ".join(names)}',
            hint="Write a composite key as a JSON array in the order of the primary key.",
        )
    texts = {True: "true", False: "false"}
    parts = [texts[v] if isinstance(v, bool) else v for v in value]
    if not all(isinstance(v, str) for v in parts):
        raise QuestionError(
            f'"{text[:100]}" has a part that is no value of a key column',
            hint="Each part is a string, a number, true or false; a key has no NULL.",
        )
    return parts


def key_objects(keys: pa.Table, dimension: Dimension) -> list[dict[str, Any]]:
    fields = _fields_of_key(dimension)
    columns = [json_values(whole(keys.column(item.name)), item.type) for item in fields]
    names = [item.name for item in fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Start of a page: versions and a key, so that all pages show the same versions.

    In a history, the versions mark the start of the page and the key is that of all pages.
    """

    versions: tuple[int, ...]
    key: Key

    def key_row(self, dimension: Dimension) -> pa.Table:
        return key_table(dimension, [pa.repeat(value, 1) for value in self.key])

    @classmethod
    def read(cls, text: str | None, dimension: Dimension, versions: int) -> "PageCursor | None":
        """The cursor in `text`. Raises QuestionError if it belongs to another table or question."""
        if text is None:
            return None
        fields = _fields_of_key(dimension)
        try:
            content = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            numbers = tuple(content["v"])
            is_of_question = len(numbers) == versions and content["t"] == dimension.name
            if not is_of_question or any(type(v) is not int for v in numbers):
                raise ValueError(text)
            columns = [
                typed_values([str(part)], item.type)
                for part, item in zip(content["k"], fields, strict=True)
            ]
            if any(c.failed.any() for c in columns):
                raise ValueError(text)
            key = key_table(dimension, [c.values for c in columns])
        except (binascii.Error, ValueError, KeyError, TypeError, RecursionError) as exc:
            raise QuestionError(
                "cursor is none of this table",
                hint="Take the cursor that the page before has ended with, of the same table.",
            ) from exc
        return cls(numbers, tuple(key.column(n)[0] for n in dimension.primary_key))


def next_cursor(key: Key | None, dimension: Dimension, versions: tuple[int, ...]) -> str | None:
    if key is None:
        return None
    parts = [
        json_values(pa.repeat(value, 1), item.type)[0]
        for value, item in zip(key, _fields_of_key(dimension), strict=True)
    ]
    texts = [part if isinstance(part, str) else json.dumps(part) for part in parts]
    text = json.dumps({"t": dimension.name, "v": versions, "k": texts}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_POSITION = {"_epoch": "epoch", "_file": "file", "_pos": "pos", "_row": "row"}
PAGE_BYTES = 4 << 20  # the control plane holds an answer in memory
Question = Mapping[str, Any]
Answer = dict[str, Any]


def described(dimension: Dimension) -> Answer:
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
    """How many of `items`, at least one, fit into an answer as JSON."""
    size = 0
    for at, item in enumerate(items):
        size += len(json.dumps(item))
        if at and size > PAGE_BYTES:
            return at
    return len(items)


def _key(rows: pa.Table, at: int, dimension: Dimension) -> Key:
    return tuple(rows.column(name)[at] for name in dimension.primary_key)


def row_items(rows: pa.Table, dimension: Dimension) -> list[Answer]:
    names = [item.name for item in dimension.fields]
    values = zip(*json_columns(rows, dimension.fields), strict=True)
    shown = [dict(zip(names, row, strict=True)) for row in values]
    return [
        {"key": {name: row[name] for name in dimension.primary_key}, "values": row, **place}
        for row, place in zip(shown, _places(rows), strict=True)
    ]


def _places(rows: pa.Table) -> list[Answer]:
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
    cursor = next_cursor(page.next_after, dimension, versions)
    if question.get("arrow"):
        rows = _with_places(page.as_table(), dimension, CHANGE_TYPE)
        return {"next_cursor": cursor, "arrow": arrow_stream(rows)}
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
    shown = fitting(items)
    if shown < len(items):
        last = page.changes[shown - 1]
        side, at = (page.before, last.before) if last.after is None else (page.after, last.after)
        assert at is not None
        cursor = next_cursor(_key(side, at, dimension), dimension, versions)
    return {"next_cursor": cursor, "items": items[:shown]}


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
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return base64.b64encode(sink.getvalue()).decode()
