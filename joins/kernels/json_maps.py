"""Lines of JSON whose maps are lists of entries, the form in which Arrow's reader can read them.

`{"m": {"a": 1}}` becomes `{"m": [{"key": "a", "value": 1}]}`. Numbers keep their digits, what is
not asked for is left out, and of equal keys of a map the last one counts, as in Flink. A line in
which a value has not the kind that is asked for gets the reason that the reader would give.
"""

import json
from collections.abc import Sequence
from math import isinf
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.casts import mask_of

_FOUND = {tuple: "object", list: "array", str: "string", bool: "boolean"}
_SHORT = 300  # so many digits are below the greatest double
_Pairs = tuple[tuple[str, Any], ...]


class _UnfitError(ValueError):
    """A line is not what is asked for; says why."""


def has_map(kind: pa.DataType) -> bool:
    """Whether there is a map in a type."""
    if pa.types.is_map(kind):
        return True
    return any(has_map(kind.field(at).type) for at in range(kind.num_fields))


def with_entries(lines: pa.Array, schema: pa.Schema, reasons: dict[int, str]) -> pa.Array:
    """`lines`, one JSON object each or NULL, with a list of entries for each map of `schema`.

    Args:
        lines: strings, or NULL.
        schema: of the columns that will be read.
        reasons: gets an entry for each line that is not fit, which is NULL then.
    """
    fields = {item.name: item.type for item in schema}
    decoder = json.JSONDecoder(
        object_pairs_hook=_pairs,
        parse_int=_number,
        parse_float=_number,
        parse_constant=orjson.Fragment,
    )
    doubtful = mask_of(pc.match_substring(lines, r"\ud", ignore_case=True))
    changed: list[str | None] = []
    for row, line in enumerate(lines.to_pylist()):
        changed.append(None)
        if line is None:
            continue
        try:
            if doubtful[row]:
                orjson.loads(line)  # of all parsers here, Python's alone takes half a character
            made = _members(decoder.decode(line), fields, "")
            changed[row] = orjson.dumps(made).decode()
        except _UnfitError as error:
            reasons[row] = str(error)
        except RecursionError:
            reasons[row] = "invalid JSON: it is nested too deeply"
        except (ValueError, TypeError) as error:
            told = str(error)
            reasons[row] = f"invalid JSON: {told[:1].lower()}{told[1:100]}"
    return pa.array(changed, pa.string())


def _pairs(members: Sequence[tuple[str, Any]]) -> _Pairs:
    return tuple(members)


def _number(digits: str) -> orjson.Fragment:
    """The number as it is written; the reader takes none that no double can hold."""
    if (len(digits) > _SHORT or "e" in digits or "E" in digits) and isinf(float(digits)):
        raise ValueError("number too big to be stored in double")
    return orjson.Fragment(digits)


def _members(pairs: _Pairs, fields: dict[str, pa.DataType], path: str) -> dict[str, Any]:
    """The members that are asked for; the others are ignored."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        kind = fields.get(name)
        if kind is None:
            continue
        if name in found:
            raise _UnfitError(f'field "{path}{name}" appears twice')
        found[name] = _read(value, kind, f"{path}{name}")
    return found


def _read(value: object, kind: pa.DataType, path: str) -> object:
    """A value in the form for the reader."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            raise _unfit(value, "array", path)
        return [_read(item, kind.value_type, f"{path}[]") for item in value]
    if pa.types.is_map(kind):
        if not isinstance(value, tuple):
            raise _unfit(value, "object", path)
        return [
            {"key": key, "value": _read(item, kind.item_type, f"{path}[].value")}
            for key, item in dict(value).items()
        ]
    if pa.types.is_struct(kind):
        if not isinstance(value, tuple):
            raise _unfit(value, "object", path)
        return _members(value, {item.name: item.type for item in kind}, f"{path}.")
    return {} if isinstance(value, tuple) else value


def _unfit(value: object, expected: str, path: str) -> _UnfitError:
    found = _FOUND.get(type(value), "number")
    return _UnfitError(f'field "{path}": expected {expected}, found {found}')
