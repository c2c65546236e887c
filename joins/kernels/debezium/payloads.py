"""What a key or a value is about, without the schema that a converter may have put in front.

All records of a table begin with the same schema: its bytes are compared, not read again.
"""

from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from joins.kernels.debezium import tokens
from joins.kernels.debezium.connect import ConnectType
from joins.kernels.debezium.raw import RawValues, members_of
from joins.kernels.json.plain import ABSENT, NULL

Rows = npt.NDArray[np.int64]

NO_SCHEMA = -1
_WRAPPED = ("schema", "payload")
_MOST_PREFIXES, _MOST_TYPES = 32, 1024  # that are kept


@dataclass(frozen=True, slots=True)
class Payloads:
    """Payloads of keys or values.

    Attributes:
        values: `ABSENT` of what there is none of, `NULL` of what is null.
        schemas: the number of each one's schema of its reader, or `NO_SCHEMA`.
        reasons: why there is none, by position.
    """

    values: RawValues
    schemas: Rows
    reasons: dict[int, str]


class PayloadReader(Protocol):
    """Takes the keys, or the values, of a topic apart; it remembers schemas."""

    def unwrapped(self, values: RawValues) -> Payloads:
        """The payloads of `values`, in JSON."""
        ...

    def type_of(self, number: int) -> ConnectType | None:
        """The schema with a number of `Payloads.schemas`, None if there is none."""
        ...


@dataclass(slots=True)
class JsonPayloads:
    """Payloads of JSON, of which a schema may be in front.

    Attributes:
        include: whether there is one; None: each value tells by itself, an object of `schema` and
            `payload` and nothing else is one that has it.
    """

    include: bool | None = None
    _types: list[ConnectType | str | None] = field(default_factory=list)
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _prefixes: dict[bytes, int] = field(default_factory=dict)

    def unwrapped(self, values: RawValues) -> Payloads:
        """The payloads of `values`."""
        if len(self._types) > _MOST_TYPES:
            self._types, self._numbers, self._prefixes = [], {}, {}
        work = _Unwrapping.of(values)
        if self.include is False:
            work.lasts[:] = values.lasts
        else:
            self._take_apart(work, must=bool(self.include))
        payloads = work.payloads()
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

    def _take_apart(self, work: "_Unwrapping", *, must: bool) -> None:
        for prefix, number in self._prefixes.items():
            work.match(prefix, number)
        others = work.open_rows()
        doubtful = np.zeros(len(others), np.bool_)
        chosen = work.values.take(others)
        tokens.may_be_wrapped(chosen.firsts, chosen.lasts, doubtful)
        work.leave(others[~doubtful], must=must)
        others = others[doubtful]
        for _ in range(_MOST_PREFIXES):
            if not len(others):
                return
            if len(self._prefixes) >= _MOST_PREFIXES:
                self._prefixes.clear()
            self._read(work, others[:1], must=must)
            others = others[1:]
            others = others[work.lasts[others] == ABSENT]
        self._read(work, others, must=must)

    def _read(self, work: "_Unwrapping", rows: Rows, *, must: bool) -> None:
        """Take apart what looks as if it had a schema, and remember what these begin with."""
        chosen = work.values.take(rows)
        members = members_of(chosen, _WRAPPED)
        schemas, inner = members["schema"], members["payload"]
        is_wrapped = counts_of(chosen, members.reasons) == len(_WRAPPED)
        is_wrapped &= (schemas.lasts != ABSENT) & (inner.lasts != ABSENT)
        sound = ~is_wrapped
        sound[list(members.reasons)] = False
        work.leave(rows[sound], must=must)
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
        """The number of the schema in JSON, `NO_SCHEMA` of `null`."""
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
    """Values of which some are taken apart already."""

    values: RawValues
    firsts: Rows
    lasts: Rows
    schemas: Rows
    kept: tuple[object, ...]
    reasons: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, values: RawValues) -> Self:
        absent = np.full(len(values), ABSENT, np.int64)
        schemas = np.full(len(values), NO_SCHEMA, np.int64)
        return cls(values, values.firsts.copy(), absent, schemas, values.kept)

    def open_rows(self) -> Rows:
        return np.flatnonzero((self.lasts == ABSENT) & (self.values.lasts >= 0))

    def match(self, prefix: bytes, number: int) -> None:
        """Take off what values have in front that begin with these bytes."""
        data, was_open = np.frombuffer(prefix, np.uint8), self.lasts == ABSENT
        text, places = (data.ctypes.data, len(data)), (self.firsts, self.lasts)
        if tokens.unwrap(self.values.firsts, self.values.lasts, text, places):
            self.schemas[was_open & (self.lasts != ABSENT)] = number

    def leave(self, rows: Rows, *, must: bool) -> None:
        if must:
            self.reasons.update(dict.fromkeys(rows.tolist(), "it has no schema in front"))
        else:
            self.lasts[rows] = self.values.lasts[rows]

    def payloads(self) -> Payloads:
        return Payloads(RawValues(self.firsts, self.lasts, self.kept), self.schemas, self.reasons)


def counts_of(objects: RawValues, reasons: dict[int, str]) -> Rows:
    """How many members there are in each object that has no reason against it."""
    lasts = objects.lasts.copy()
    lasts[list(reasons)] = ABSENT
    counts = np.empty(len(objects), np.int64)
    tokens.counts_of(objects.firsts, lasts, counts)
    return counts
