"""Keys of a dimension and cursors of its pages, as a caller writes them and as typed values."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from joins.dimension.changelog_scan import Key, key_table
from joins.kernels.expressions.casts import whole
from joins.kernels.json.exact import json_values, typed_values
from joins.plan.errors import QuestionError
from joins.plan.plan import Dimension, Field


def _fields_of_key(dimension: Dimension) -> list[Field]:
    fields = {item.name: item for item in dimension.fields}
    return [fields[name] for name in dimension.primary_key]


def read_keys(texts: Sequence[str], dimension: Dimension) -> pa.Table:
    """Keys as callers write them: the value, of a composite key a JSON array or object; each once.

    Raises:
        QuestionError: one is no key of the dimension.
    """
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
    """Keys as JSON objects."""
    fields = _fields_of_key(dimension)
    columns = [json_values(whole(keys.column(item.name)), item.type) for item in fields]
    names = [item.name for item in fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Where a page begins: versions and a key, so that all pages are of the same versions.

    Of a history the versions say where the page begins, and the key is that of all pages.
    """

    versions: tuple[int, ...]
    key: Key

    def key_row(self, dimension: Dimension) -> pa.Table:
        return key_table(dimension, [pa.repeat(value, 1) for value in self.key])

    @classmethod
    def read(cls, text: str | None, dimension: Dimension, versions: int) -> "PageCursor | None":
        """The cursor in `text`.

        Raises:
            QuestionError: it is none of this table and this kind of question.
        """
        if text is None:
            return None
        fields = _fields_of_key(dimension)
        try:
            content = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            numbers = tuple(int(v) for v in content["v"])
            columns = [
                typed_values([str(part)], item.type)
                for part, item in zip(content["k"], fields, strict=True)
            ]
            if len(numbers) != versions or any(c.failed.any() for c in columns):
                raise ValueError(text)
            key = key_table(dimension, [c.values for c in columns])
        except (binascii.Error, ValueError, KeyError, TypeError, RecursionError) as exc:
            raise QuestionError(
                "cursor is none of this table",
                hint="Take the cursor that the page before has ended with, of the same table.",
            ) from exc
        return cls(numbers, tuple(key.column(n)[0] for n in dimension.primary_key))


def next_cursor(key: Key | None, dimension: Dimension, versions: tuple[int, ...]) -> str | None:
    """The cursor of the page behind `key`; None if there is none."""
    if key is None:
        return None
    parts = [
        json_values(pa.repeat(value, 1), item.type)[0]
        for value, item in zip(key, _fields_of_key(dimension), strict=True)
    ]
    texts = [part if isinstance(part, str) else json.dumps(part) for part in parts]
    text = json.dumps({"v": versions, "k": texts}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
