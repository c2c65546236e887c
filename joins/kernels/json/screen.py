"""A guess at the lines that keep a block of JSON from being parsed, for speed only.

The pass over plain objects knows lines that certainly look right, at the speed of the parse; only
the others are looked at line by line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa

_SHOWN_CHARACTERS = 60

_FOUND = {
    int: "number",
    float: "number",
    str: "string",
    bool: "boolean",
    dict: "object",
    list: "array",
}


@dataclass(frozen=True, slots=True)
class _Check:
    """What a value must be.

    Attributes:
        types: Python's types of a value of the right kind.
        numbers: those that fit, None for no such limit.
        fitting: what a number is that fits.
    """

    expected: str
    types: tuple[type, ...]
    numbers: range | None = None
    fitting: str = ""


@dataclass(frozen=True, slots=True)
class Screened:
    """Positions of lines, each in one of these.

    Attributes:
        right: look right.
        doubtful: may be right, in a form that is seldom.
        alone: are probably bad, for a reason that only the reader can give.
        wrong: to the reason: have a value of a type that the schema does not allow, which is final.
    """

    right: Sequence[int]
    doubtful: Sequence[int]
    alone: Sequence[int]
    wrong: Mapping[int, str]


class Screen:
    """Looks at lines that are to be read with `schema`, which has only the reader's own types."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._checks = [
            (item.name, check) for item in schema if (check := _check(item.type)) is not None
        ]

    def screened(self, lines: pa.Array) -> Screened:
        """A guess at each of `lines`."""
        from joins.kernels.json.plain import plain_rows

        right = plain_rows(lines, self._schema)
        doubtful: list[int] = []
        alone: list[int] = []
        wrong: dict[int, str] = {}
        rest = np.delete(np.arange(len(lines)), right)
        for at, line in zip(rest.tolist(), lines.take(pa.array(rest)).to_pylist(), strict=True):
            try:
                reason = _wrong_type(orjson.loads(line), self._checks)
            except orjson.JSONDecodeError:
                alone.append(at)
                continue
            if reason is None:
                doubtful.append(at)
            else:
                wrong[at] = reason
        return Screened(right.tolist(), doubtful, alone, wrong)


def _wrong_type(members: dict[str, object], checks: Sequence[tuple[str, _Check]]) -> str | None:
    for name, check in checks:
        value = members.get(name)
        if value is None:
            continue
        if type(value) not in check.types:
            return f'field "{name}": expected {check.expected}, found {_FOUND[type(value)]}'
        # A float that is looked for in a range is compared with each of its numbers.
        if check.numbers is not None and (type(value) is float or value not in check.numbers):
            return f'field "{name}": {str(value)[:_SHOWN_CHARACTERS]} is not {check.fitting}'
    return None


def _check(kind: pa.DataType) -> _Check | None:
    """What a JSON value must be so that the reader may accept it as `kind`."""
    if pa.types.is_signed_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return _Check("number", (int, float), range(-limit, limit), f"an {kind}")
    if pa.types.is_floating(kind):
        return _Check("number", (int, float))
    if pa.types.is_decimal(kind):
        return _Check("number or string", (int, float, str))
    if pa.types.is_boolean(kind):
        return _Check("boolean", (bool,))
    if pa.types.is_string(kind):
        return _Check("string", (str,))
    if pa.types.is_list(kind):
        return _Check("array", (list,))
    return _Check("object", (dict,)) if pa.types.is_struct(kind) else None
