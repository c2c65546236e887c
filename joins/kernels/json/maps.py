"""Lines of JSON whose maps are lists of entries, the form in which Arrow's reader can read them.

`{"m": {"a": 1}}` becomes `{"m": [{"key": "a", "value": 1}]}`. Numbers keep their digits, what is
not asked for is left out, and of equal keys of a map the last one counts, as in Flink.
"""

import json
from collections.abc import Callable, Mapping
from math import isinf
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import mask_of

_SHORT = 300  # so many digits are below the greatest double
_Reader = Callable[[Any], object]


class WrittenNumber(str):
    """A number with the digits that the JSON text has."""

    __slots__ = ()


class _UnfitError(ValueError):
    """A line is not what is asked for."""


def has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(has_map(kind.field(at).type) for at in range(kind.num_fields))


def broken(error: Exception) -> str:
    message = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return f"invalid JSON: {message[:1].lower()}{message[1:100]}"


def with_entries(lines: pa.Array, schema: pa.Schema) -> pa.Array:
    """`lines`, one JSON object each or NULL, with a list of entries for each map of `schema`.

    Args:
        lines: strings, or NULL; those that do not fit become NULL.
        schema: of the columns that will be read.
    """
    read = _members({item.name: item.type for item in schema})
    doubtful = mask_of(pc.match_substring(lines, r"\ud", ignore_case=True))
    changed: list[str | None] = []
    for row, line in enumerate(lines.to_pylist()):
        changed.append(None)
        if line is None:
            continue
        try:
            if doubtful[row]:
                orjson.loads(line)  # of all parsers here, Python's alone takes half a character
            changed[row] = orjson.dumps(read(_DECODER.decode(line))).decode()
        except (ValueError, TypeError, RecursionError):
            changed[row] = None
    return pa.array(changed, pa.string())


def _number(digits: str) -> orjson.Fragment:
    if (len(digits) > _SHORT or "e" in digits or "E" in digits) and isinf(float(digits)):
        raise ValueError("number too big to be stored in double")
    return orjson.Fragment(digits)


_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple,
    parse_int=_number,
    parse_float=_number,
    parse_constant=orjson.Fragment,
)


def _members(fields: Mapping[str, pa.DataType]) -> _Reader:
    """Reads the members of an object that are asked for; the others are ignored."""
    readers = {name: _reader(kind) for name, kind in fields.items()}

    def read(members: tuple[tuple[str, object], ...]) -> object:
        values: dict[str, object] = {}
        for name, value in members:
            if name not in readers:
                continue
            if name in values:
                raise _UnfitError
            values[name] = readers[name](value)
        return values

    return read


def _reader(kind: pa.DataType) -> _Reader:
    """Brings values into the form for Arrow's reader; types are looked at once."""
    if pa.types.is_list(kind):
        return _expecting(list, _elements(_reader(kind.value_type)))
    if pa.types.is_map(kind):
        return _expecting(tuple, _entries(_reader(kind.item_type)))
    if pa.types.is_struct(kind):
        return _expecting(tuple, _members({item.name: item.type for item in kind}))
    return _scalar


def _expecting(right: type, read: _Reader) -> _Reader:
    """`read` for values of the right kind; NULL stays NULL."""

    def checked(value: object) -> object:
        if value is None:
            return None
        if not isinstance(value, right):
            raise _UnfitError
        return read(value)

    return checked


def _elements(read: _Reader) -> _Reader:
    return lambda values: [read(value) for value in values]


def _entries(read: _Reader) -> _Reader:
    if read is _scalar:
        return lambda pairs: [
            {"key": key, "value": {} if type(value) is tuple else value}
            for key, value in dict(pairs).items()
        ]
    return lambda pairs: [{"key": key, "value": read(value)} for key, value in dict(pairs).items()]


def _scalar(value: object) -> object:
    return {} if type(value) is tuple else value
