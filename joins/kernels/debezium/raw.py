"""Values of JSON as addresses of their bytes: split, but not copied or parsed.

Payloads are values without the schema that a converter has put in front. All records of a table
begin with the same schema: its bytes are compared, not read again.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.debezium import tokens
from joins.kernels.debezium.options import ConnectType
from joins.kernels.json.each import WrittenNumber, broken
from joins.kernels.json.plain import ABSENT, NULL, raw_members
from joins.kernels.json.scan import counts_of, parts_into, unescape
from joins.kernels.texts import bytes_of, text_array

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]

_SHOWN_BYTES = 60
_HALF = re.compile("[\ud800-\udfff]")
NO_SCHEMA = -1
_WRAPPED = ("schema", "payload")
_MOST_PREFIXES, _MOST_TYPES = 32, 1024  # that are kept


def normal(value: bytes) -> bytes:
    """Equal JSON for the compiled pass: names have no escapes, numbers keep their digits.

    A text with half of a surrogate pair, NaN and Infinity become numbers that no type holds: they
    only count where the value is read. Raises ValueError with the reason for invalid JSON or an
    object with duplicate names.
    """
    try:
        text = value.decode(json.detect_encoding(value))
        return _written(_DECODER.decode(text)).encode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("the value is not UTF-8") from None
    except UnicodeEncodeError:
        raise ValueError("invalid JSON: half of a surrogate pair") from None
    except (ValueError, RecursionError) as exc:
        raise ValueError(broken(exc)) from None


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'field "{twice[:60]}" appears twice')
    return members


_UNFIT = {
    "half of a surrogate pair": "1e9999000001",
    "NaN": "1e9999000002",
    "Infinity": "1e9999000003",
    "-Infinity": "1e9999000004",
}
_SHOWN = {number.encode(): text for text, number in _UNFIT.items()}


def _constant(text: str) -> object:
    return WrittenNumber(_UNFIT[text])


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members,
    parse_int=WrittenNumber,
    parse_float=WrittenNumber,
    parse_constant=_constant,
    strict=False,  # strings may have control characters
)


def _written(value: object) -> str:
    if isinstance(value, WrittenNumber):
        return str(value)
    if isinstance(value, dict):
        members = (f"{_text(name)}:{_written(member)}" for name, member in value.items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, str) and _HALF.search(value):
        return _UNFIT["half of a surrogate pair"]
    return _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class RawValues:
    """Values of JSON.

    `firsts` has the address of each first byte, `lasts` the address after the last byte, or `NULL`
    or `ABSENT`. `kept` keeps their memory alive.
    """

    firsts: Rows
    lasts: Rows
    kept: tuple[object, ...]

    def __len__(self) -> int:
        return len(self.firsts)

    @classmethod
    def of(cls, values: pa.Array) -> Self:
        """Binary values, which need not be JSON; NULL in Arrow is `ABSENT`."""
        data, bounds = bytes_of(values)
        bounds += data.ctypes.data
        firsts, lasts = bounds[:-1], bounds[1:].copy()
        if values.null_count:
            lasts[values.is_null().to_numpy(zero_copy_only=False)] = ABSENT
        return cls(firsts, lasts, (data,))

    @classmethod
    def of_texts(cls, texts: Sequence[bytes | None]) -> Self:
        return cls.of(pa.array(texts, pa.binary()))

    def take(self, rows: Rows) -> Self:
        return type(self)(self.firsts[rows], self.lasts[rows], self.kept)

    def at(self, row: int) -> bytes:
        return self.copied(np.array([row]))[0].as_py() or b""

    def shown(self, row: int) -> str:
        text = self.at(row)
        if text in _SHOWN:
            return _SHOWN[text]
        cut = "…" if len(text) > _SHOWN_BYTES else ""
        return text[:_SHOWN_BYTES].decode("utf-8", "replace") + cut

    def copied(self, rows: Rows | None = None) -> pa.BinaryArray:
        chosen = self if rows is None else self.take(rows)
        valid = chosen.lasts >= 0
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(np.where(valid, chosen.lasts - chosen.firsts, 0), out=offsets[1:])
        out = np.empty(int(offsets[-1]), np.uint8)
        tokens.copy_into(chosen.firsts, offsets, out)
        return text_array(out, offsets, valid, pa.binary())

    def numbers(self) -> pa.StringArray:
        return self.copied().view(pa.string())

    def texts(self) -> pa.StringArray:
        """The unescaped texts; all values are strings or absent."""
        valid = self.lasts >= 0
        firsts, lasts = self.firsts + 1, np.where(valid, self.lasts - 1, ABSENT)
        out = np.empty(int(np.where(valid, lasts - firsts, 0).sum()), np.uint8)
        offsets = np.zeros(len(self) + 1, np.int64)
        unescape(out, offsets, firsts, lasts)
        return text_array(out, offsets, valid, pa.string())

    def kinds(self) -> Codes:
        kinds = np.empty(len(self), np.uint8)
        tokens.kinds_of(self.firsts, self.lasts, kinds)
        return kinds

    def are(self, text: bytes) -> Mask:
        equal = np.zeros(len(self), np.bool_)
        if ((self.lasts - self.firsts) == len(text)).any():
            data = np.frombuffer(text, np.uint8)
            tokens.are_equal(self.firsts, self.lasts, (data.ctypes.data, len(text)), equal)
        return equal


@dataclass(frozen=True, slots=True)
class Members:
    """Members of objects by name, `ABSENT` in other values; `reasons` why, by position."""

    values: dict[str, RawValues]
    reasons: dict[int, str]

    def __getitem__(self, name: str) -> RawValues:
        return self.values[name]


def members_of(objects: RawValues, names: Sequence[str]) -> Members:
    """Members of `objects` with these different names; `ABSENT` without one."""
    present = np.flatnonzero(objects.lasts >= 0)
    count = len(objects)
    chosen = objects if len(present) == count else objects.take(present)
    rows, firsts, lasts = raw_members(chosen.firsts, chosen.lasts, names)
    reasons: dict[int, str] = {}
    if len(rows) == count:
        parts = zip(names, firsts, lasts, strict=True)
        return Members({n: RawValues(f, e, objects.kept) for n, f, e in parts}, reasons)
    all_firsts = np.zeros((len(names), count), np.int64)
    all_lasts = np.full((len(names), count), ABSENT, np.int64)
    all_firsts[:, present[rows]], all_lasts[:, present[rows]] = firsts, lasts
    kept, others = objects.kept, np.delete(present, rows)
    if len(others):
        again = _normalised(objects, others, reasons)
        kept += again.kept
        rows, firsts, lasts = raw_members(again.firsts, again.lasts, names)
        all_firsts[:, others[rows]], all_lasts[:, others[rows]] = firsts, lasts
        for row in np.delete(others, rows).tolist():
            reasons.setdefault(row, "it is no JSON object, or nested too deeply")
    parts = zip(names, all_firsts, all_lasts, strict=True)
    return Members({n: RawValues(f, e, kept) for n, f, e in parts}, reasons)


def _normalised(objects: RawValues, rows: Rows, reasons: dict[int, str]) -> RawValues:
    texts: list[bytes] = []
    for row in rows.tolist():
        try:
            texts.append(normal(objects.at(row)))
        except ValueError as exc:
            reasons[row] = str(exc)
            texts.append(b"")
    return RawValues.of_texts(texts)


def parts_of_arrays(arrays: RawValues) -> tuple[RawValues, Rows]:
    counts, _, values = _parts(arrays)
    return values, counts


def parts_of_objects(objects: RawValues) -> tuple[RawValues, RawValues, Rows]:
    counts, names, values = _parts(objects)
    return names, values, counts


def _parts(owners: RawValues) -> tuple[Rows, RawValues, RawValues]:
    counts = np.empty(len(owners), np.int64)
    counts_of(owners.firsts, owners.lasts, counts)
    firsts, lasts, name_firsts, name_lasts = (np.zeros(counts.sum(), np.int64) for _ in range(4))
    parts_into(owners.firsts, owners.lasts, (name_firsts, name_lasts), (firsts, lasts))
    names = RawValues(name_firsts, name_lasts, owners.kept)
    return counts, names, RawValues(firsts, lasts, owners.kept)


@dataclass(frozen=True, slots=True)
class Payloads:
    """Payloads of keys or values; `ABSENT` with a reason if unreadable, `NULL` for null.

    `schemas` has the number of each one's schema in its reader, or `NO_SCHEMA`.
    """

    values: RawValues
    schemas: Rows
    reasons: dict[int, str]


class PayloadReader(Protocol):
    """Separates payloads and schemas of a topic's keys, or of its values; caches schemas."""

    def unwrapped(self, values: RawValues) -> Payloads:
        """The payloads of `values`, in JSON."""

    def type_of(self, number: int) -> ConnectType | None:
        """The schema of a number in `Payloads.schemas`, None for `NO_SCHEMA`."""


@dataclass(slots=True)
class JsonPayloads:
    """JSON payloads; with `include` None, only `{schema, payload}` has a schema."""

    include: bool | None = None
    _types: list[ConnectType | str | None] = field(default_factory=list)
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _prefixes: dict[bytes, int] = field(default_factory=dict)

    def unwrapped(self, values: RawValues) -> Payloads:
        if len(self._types) > _MOST_TYPES:
            self._types, self._numbers, self._prefixes = [], {}, {}
        firsts = values.firsts.copy()
        tokens.skip_marks(firsts, values.lasts)
        values = RawValues(firsts, values.lasts, values.kept)
        work = _Unwrapping.of(values, is_required=bool(self.include))
        if self.include is False:
            work.lasts[:] = values.lasts
        else:
            self._take_apart(work)
        raw = RawValues(work.firsts, work.lasts, work.kept)
        payloads = Payloads(raw, work.schemas, work.reasons)
        tokens.trim(work.firsts, work.lasts)
        work.lasts[payloads.values.are(b"null")] = NULL
        for number in np.unique(payloads.schemas).tolist():
            said = self._types[number] if number != NO_SCHEMA else None
            if isinstance(said, str):
                rows = np.flatnonzero(payloads.schemas == number).tolist()
                payloads.reasons.update(dict.fromkeys(rows, said))
        return payloads

    def type_of(self, number: int) -> ConnectType | None:
        known = self._types[number] if number != NO_SCHEMA else None
        return None if isinstance(known, str) else known

    def _take_apart(self, work: "_Unwrapping") -> None:
        for prefix, number in self._prefixes.items():
            work.match(prefix, number)
        others = np.flatnonzero((work.lasts == ABSENT) & (work.values.lasts >= 0))
        doubtful = np.zeros(len(others), np.bool_)
        chosen = work.values.take(others)
        tokens.may_be_wrapped(chosen.firsts, chosen.lasts, doubtful)
        work.leave(others[~doubtful])
        others = others[doubtful]
        for _ in range(_MOST_PREFIXES):
            if not len(others):
                return
            if len(self._prefixes) >= _MOST_PREFIXES:
                self._prefixes.clear()
            self._read(work, others[:1])
            others = others[1:]
            others = others[work.lasts[others] == ABSENT]
        self._read(work, others)

    def _read(self, work: "_Unwrapping", rows: Rows) -> None:
        chosen = work.values.take(rows)
        members = members_of(chosen, _WRAPPED)
        schemas, inner = members["schema"], members["payload"]
        is_wrapped = member_counts(chosen, members.reasons) == len(_WRAPPED)
        is_wrapped &= (schemas.lasts != ABSENT) & (inner.lasts != ABSENT)
        sound = ~is_wrapped
        sound[list(members.reasons)] = False
        work.leave(rows[sound])
        work.reasons.update({int(rows[at]): said for at, said in members.reasons.items()})
        work.kept += inner.kept
        texts = schemas.copied()
        for at in np.flatnonzero(is_wrapped).tolist():
            row, number = int(rows[at]), self._number_of(texts[at].as_py())
            first, last = int(inner.firsts[at]), int(inner.lasts[at])
            work.firsts[row], work.lasts[row], work.schemas[row] = first, last, number
            is_last = last == work.values.lasts[row] - 1
            if is_last and len(self._prefixes) < _MOST_PREFIXES and len(rows) == 1:
                prefix = work.values.at(row)[: first - int(work.values.firsts[row])]
                self._prefixes[prefix] = number
                work.match(prefix, number)

    def _number_of(self, text: bytes | None) -> int:
        if text is None:
            return NO_SCHEMA
        if text not in self._numbers:
            try:
                known: ConnectType | str | None = ConnectType.parsed(text)
            except (ValueError, RecursionError) as exc:
                known = f"its schema cannot be read: {exc}"
            self._types.append(known)
            self._numbers[text] = len(self._types) - 1
        return self._numbers[text]


@dataclass(slots=True)
class _Unwrapping:
    """Partly split values; `lasts` is `ABSENT` for unsplit ones.

    With `is_required`, a value without a schema is bad.
    """

    values: RawValues
    is_required: bool
    firsts: Rows
    lasts: Rows
    schemas: Rows
    kept: tuple[object, ...]
    reasons: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, values: RawValues, *, is_required: bool) -> Self:
        absent = np.full(len(values), ABSENT, np.int64)
        schemas = np.full(len(values), NO_SCHEMA, np.int64)
        return cls(values, is_required, values.firsts.copy(), absent, schemas, values.kept)

    def match(self, prefix: bytes, number: int) -> None:
        data, was_open = np.frombuffer(prefix, np.uint8), self.lasts == ABSENT
        text, places = (data.ctypes.data, len(data)), (self.firsts, self.lasts)
        if tokens.unwrap(self.values.firsts, self.values.lasts, text, places):
            self.schemas[was_open & (self.lasts != ABSENT)] = number

    def leave(self, rows: Rows) -> None:
        if self.is_required:
            self.reasons.update(dict.fromkeys(rows.tolist(), "it has no schema in front"))
        else:
            self.lasts[rows] = self.values.lasts[rows]


def member_counts(objects: RawValues, reasons: dict[int, str]) -> Rows:
    lasts = objects.lasts.copy()
    lasts[list(reasons)] = ABSENT
    counts = np.empty(len(objects), np.int64)
    counts_of(objects.firsts, lasts, counts)
    return counts
