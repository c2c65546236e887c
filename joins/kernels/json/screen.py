"""A guess at the lines that keep a block of JSON from being parsed, for speed only.

A regular expression accepts lines that certainly look right: one flat or slightly nested object,
known members of their types. It runs at the speed of the parse; only what it does not accept is
looked at line by line. A second one finds members that appear twice.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Mask, mask_of

_SHOWN_CHARACTERS = 60

_FOUND = {
    int: "number",
    float: "number",
    str: "string",
    bool: "boolean",
    dict: "object",
    list: "array",
}

_BLANKS = r"[ \t]*"
_PLAIN = r"""[^"\\\x00-\x1f]"""
_STRING = (
    rf'"(?:{_PLAIN}|\\["\\/bfnrt]'
    r'|\\u(?:[0-9a-cA-CefEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2})*"'
)
_NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?"
_FILLING = rf"[^\"\\\[\]{{}}]|{_STRING}"
_NESTED = rf"[\[{{](?:{_FILLING}|[\[{{](?:{_FILLING})*[\]}}])*[\]}}]"
_ANY = rf"true|false|{_NUMBER}|{_STRING}|{_NESTED}"
_INTEGER_DIGITS = {8: 2, 16: 4, 32: 9, 64: 18}  # that fit whatever they are


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
        self.schema = schema
        self._looks_for_repeats = False
        self._pattern = _pattern(schema)
        self._twice = "|".join(f"{key}.*{key}" for key in map(_key, schema.names))
        self._checks = [
            (item.name, check) for item in schema if (check := _check(item.type)) is not None
        ]

    def screened(self, lines: pa.Array) -> Screened:
        """A guess at each of `lines`, which have a line break at their end and nowhere else."""
        right = _matches(lines, self._pattern)
        repeated = np.zeros(len(lines), dtype=np.bool_)
        if self._looks_for_repeats:
            repeated = self.repeated(lines)
            right &= ~repeated
        doubtful: list[int] = []
        alone: list[int] = []
        wrong: dict[int, str] = {}
        rest = np.flatnonzero(~right)
        for at, line in zip(rest.tolist(), lines.take(pa.array(rest)).to_pylist(), strict=True):
            try:
                reason = _wrong_type(orjson.loads(line), self._checks)
            except orjson.JSONDecodeError:
                alone.append(at)
                continue
            if reason is None:
                (alone if repeated[at] else doubtful).append(at)
            else:
                wrong[at] = reason
        return Screened(np.flatnonzero(right).tolist(), doubtful, alone, wrong)

    def repeated(self, lines: pa.Array) -> Mask:
        """The lines in which a known member, its name not escaped, seems to appear twice.

        This costs as much as all the rest, so `screened` asks only after somebody else has asked.
        """
        self._looks_for_repeats = True
        return _matches(lines, self._twice) if self._twice else np.zeros(len(lines), dtype=np.bool_)


def _matches(lines: pa.Array, pattern: str) -> Mask:
    """The lines that match; none of them if the pattern is too large for the engine."""
    try:
        return mask_of(pc.match_substring_regex(lines, pattern))
    except pa.ArrowInvalid:
        return np.zeros(len(lines), dtype=np.bool_)


def _pattern(schema: pa.Schema) -> str:
    known = [f"{_key(item.name)[1:]}(?:null|{_value(item.type)})" for item in schema]
    unknown = rf'{_other_than(schema.names)}"{_BLANKS}:{_BLANKS}(?:null|{_ANY})'
    member = f'"(?:{"|".join([*known, unknown])}){_BLANKS}'
    return rf"^\{{{_BLANKS}(?:\}}\n$|(?:{member}(?:,{_BLANKS}|\}}\n$))+$)"


def _key(name: str) -> str:
    return f'"{re.escape(name)}"{_BLANKS}:{_BLANKS}'


def _value(kind: pa.DataType) -> str:
    if pa.types.is_signed_integer(kind):
        return f"-?(?:0|[1-9][0-9]{{0,{_INTEGER_DIGITS[kind.bit_width] - 1}}})"
    if pa.types.is_floating(kind):
        return _NUMBER
    if pa.types.is_decimal(kind):
        return f"{_NUMBER}|{_STRING}"
    if pa.types.is_boolean(kind):
        return "true|false"
    if pa.types.is_string(kind):
        return _STRING
    return rf"\{{(?:{_FILLING}|{_NESTED})*\}}" if pa.types.is_struct(kind) else _ANY


def _other_than(names: Sequence[str]) -> str:
    """A pattern for the strings without escapes that are none of `names`."""
    if not names:
        return f"{_PLAIN}*"
    rests: dict[str, list[str]] = {}
    for name in names:
        if name:
            rests.setdefault(name[0], []).append(name[1:])
    first = "".join(map(re.escape, rests))
    longer = [f"{re.escape(letter)}{_other_than(rest)}" for letter, rest in rests.items()]
    body = "|".join([rf'[^"\\\x00-\x1f{first}]{_PLAIN}*', *longer])
    return f"(?:{body})" if "" in names else f"(?:{body})?"


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
