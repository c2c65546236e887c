"""Values of JSON as places of their bytes in memory: taken apart, not copied, not yet read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.debezium import tokens
from joins.kernels.debezium.normal import normal
from joins.kernels.json.plain import ABSENT, raw_members
from joins.kernels.json.scan import unescape
from joins.kernels.texts import bytes_of, text_array

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]

_SHOWN_BYTES = 60


@dataclass(frozen=True, slots=True)
class RawValues:
    """Values of JSON.

    Attributes:
        firsts: where each begins, an address.
        lasts: where it ends; `NULL` or `ABSENT` of none.
        kept: what the addresses are in, so that it stays there.
    """

    firsts: Rows
    lasts: Rows
    kept: tuple[object, ...]

    def __len__(self) -> int:
        return len(self.firsts)

    @classmethod
    def of(cls, values: pa.Array) -> Self:
        """Binary values, which need not be JSON; what is NULL in Arrow is `ABSENT`."""
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
        """The bytes of one."""
        return self.copied(np.array([row]))[0].as_py() or b""

    def shown(self, row: int) -> str:
        text = self.at(row)
        cut = "…" if len(text) > _SHOWN_BYTES else ""
        return text[:_SHOWN_BYTES].decode("utf-8", "replace") + cut

    def copied(self, rows: Rows | None = None) -> pa.BinaryArray:
        """The bytes of all, or of those at `rows`."""
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
        """What the values say, which are strings or nothing."""
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
        """Which have exactly these bytes."""
        equal = np.zeros(len(self), np.bool_)
        if ((self.lasts - self.firsts) == len(text)).any():
            data = np.frombuffer(text, np.uint8)
            tokens.are_equal(self.firsts, self.lasts, (data.ctypes.data, len(text)), equal)
        return equal


@dataclass(frozen=True, slots=True)
class Members:
    """The members of objects, by name; `ABSENT` of what is no object.

    Attributes:
        reasons: why there are none, by position.
    """

    values: dict[str, RawValues]
    reasons: dict[int, str]

    def __getitem__(self, name: str) -> RawValues:
        return self.values[name]


def members_of(objects: RawValues, names: Sequence[str]) -> Members:
    """The members of `objects` with these names, which differ; what is not there has none."""
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
    tokens.counts_of(owners.firsts, owners.lasts, counts)
    firsts, lasts, name_firsts, name_lasts = (np.zeros(counts.sum(), np.int64) for _ in range(4))
    tokens.parts_into(owners.firsts, owners.lasts, (name_firsts, name_lasts), (firsts, lasts))
    names = RawValues(name_firsts, name_lasts, owners.kept)
    return counts, names, RawValues(firsts, lasts, owners.kept)
