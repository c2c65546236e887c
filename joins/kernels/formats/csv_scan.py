"""Splits rows of CSV into cells, by one compiled pass over their bytes."""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from joins.kernels.compiled import compiled, inlined

Rows = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

PLAIN, QUOTED, ESCAPED = 0, 1, 2
"""What a cell is: as it stands; with doubled quotes or escapes; outside quotes, with escapes."""
OPEN_QUOTE, BEHIND_QUOTE, OPEN_ESCAPE = -1, -2, -3
"""In place of the number of cells: what is wrong with a row."""

_LINE_FEED, _RETURN, _BLANK, _HASH = 10, 13, 32, 35


class CsvMarks(NamedTuple):
    """Special characters as bytes; -1 for none."""

    delimiter: int
    quote: int
    escape: int
    has_comments: bool


class Cells(NamedTuple):
    """Cells by read column and by row."""

    firsts: Rows  # start of the cell after its quote, negative if missing
    lasts: Rows
    kinds: npt.NDArray[np.int8]  # `PLAIN`, `QUOTED` or `ESCAPED`
    # number of cells by row, 0 for an empty row, negative for an error. As in Jackson, an empty
    # cell after the last declared column does not count.
    counts: Rows
    stops: Rows  # end of the row, after its line break and following empty lines and comments

    @classmethod
    def of(cls, columns: int, rows: int) -> Self:
        shape = (columns, rows)
        counts, stops = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        firsts, lasts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        return cls(firsts, lasts, np.zeros(shape, np.int8), counts, stops)


@compiled
def read_rows(
    data: Bytes, bounds: tuple[Rows, Rows], marks: CsvMarks, slots: Rows, cells: Cells
) -> None:
    """Reads a row of each text into `cells`, by the slot of its column, -1 for none."""
    firsts, lasts = bounds
    for row in range(len(firsts)):
        for slot in range(len(cells.firsts)):
            cells.firsts[slot, row] = -1
        _read_row(data, (firsts[row], lasts[row], row), marks, slots, cells)


@compiled
def split_rows(data: Bytes, marks: CsvMarks, bounds: Rows) -> int:
    """Splits a file into rows; returns their number, or minus the number of the first bad row.

    `bounds`, with room for a row a byte, receives the start of each row and the end of the last.
    """
    at, row = 0, 0
    while True:
        bounds[row] = at
        at = _behind_empty_lines(data, at, len(data), marks)
        if at >= len(data):
            return row
        bounds[row] = at
        while True:
            _, _, kind, at = _cell(data, at, len(data), marks)
            if kind < 0:
                return -1 - row
            if at >= len(data) or data[at] != marks.delimiter:
                break
            at += 1
        if at < len(data) and not _is_break(data[at]):
            return -1 - row
        at = _behind_break(data, at, len(data))
        row += 1


@compiled
def _read_row(
    data: Bytes, text: tuple[int, int, int], marks: CsvMarks, slots: Rows, cells: Cells
) -> None:
    at, end, row = text
    at = _behind_comments(data, at, end, marks)
    cells.counts[row], cells.stops[row] = 0, _behind_empty_lines(data, at, end, marks)
    if at >= end or _is_break(data[at]):
        return
    column = 0
    while True:
        first, last, kind, at = _cell(data, at, end, marks)
        if kind < 0:
            cells.counts[row] = kind
            return
        if column < len(slots) and slots[column] >= 0:
            cells.firsts[slots[column], row] = first
            cells.lasts[slots[column], row] = last
            cells.kinds[slots[column], row] = kind
        column += 1
        if at >= end or data[at] != marks.delimiter:
            break
        at += 1
    if at < end and not _is_break(data[at]):
        cells.counts[row] = BEHIND_QUOTE
        return
    is_trailing = column == len(slots) + 1 and first == last and kind == PLAIN
    cells.counts[row] = column - is_trailing
    cells.stops[row] = _behind_empty_lines(data, at, end, marks)


@compiled
def _cell(data: Bytes, at: int, end: int, marks: CsvMarks) -> tuple[int, int, int, int]:
    """Start and end of a cell, its kind or error, and the position after it."""
    if at < end and data[at] == marks.quote:
        return _quoted(data, at + 1, end, marks)
    first, kind = at, PLAIN
    while at < end and data[at] != marks.delimiter and not _is_break(data[at]):
        if data[at] == marks.escape:
            kind = ESCAPED
            at += 1
            if at >= end:
                return first, at, OPEN_ESCAPE, at
        at += 1
    return first, at, kind, at


@compiled
def _quoted(data: Bytes, at: int, end: int, marks: CsvMarks) -> tuple[int, int, int, int]:
    first, kind = at, PLAIN
    while at < end:
        if data[at] == marks.escape:
            kind = QUOTED
            at += 1
        elif data[at] == marks.quote:
            if at + 1 >= end or data[at + 1] != marks.quote:
                return first, at, QUOTED if at == first else kind, at + 1
            kind = QUOTED
            at += 1
        at += 1
    return first, end, OPEN_QUOTE, end


@inlined
def _is_break(byte: int) -> bool:
    return byte in (_LINE_FEED, _RETURN)


@compiled
def _behind_break(data: Bytes, at: int, end: int) -> int:
    if at < end and data[at] == _RETURN:
        at += 1
        return at + (at < end and data[at] == _LINE_FEED)
    return at + (at < end and data[at] == _LINE_FEED)


@compiled
def _behind_comments(data: Bytes, at: int, end: int, marks: CsvMarks) -> int:
    """With comments Jackson skips blanks and line breaks before a row, too."""
    while marks.has_comments and at < end:
        if data[at] == _HASH:
            while at < end and not _is_break(data[at]):
                at += 1
        elif _is_break(data[at]) or (data[at] == _BLANK and marks.delimiter != _BLANK):
            at += 1
        else:
            break
    return at


@compiled
def _behind_empty_lines(data: Bytes, at: int, end: int, marks: CsvMarks) -> int:
    while True:
        before = at
        at = _behind_break(data, _behind_comments(data, at, end, marks), end)
        if at == before:
            return at


@compiled
def unescape(
    data: Bytes,
    cells: tuple[Rows, Rows, npt.NDArray[np.int8]],
    marks: CsvMarks,
    out: Bytes,
    offsets: Rows,
) -> None:
    """Writes a column's texts to `out`, and their ends to `offsets` after a 0."""
    firsts, lasts, kinds = cells
    to = 0
    for row in range(len(firsts)):
        at = firsts[row]
        while 0 <= at < lasts[row]:
            byte = data[at]
            if kinds[row] != PLAIN and byte == marks.escape:
                at += 1
                byte = _meant(data[at])
            elif kinds[row] == QUOTED and byte == marks.quote:
                at += 1
            out[to] = byte
            at, to = at + 1, to + 1
        offsets[row + 1] = to


@compiled
def _meant(byte: int) -> int:
    """The byte of an escaped character, as in Jackson."""
    if byte == 48:  # 0
        return 0
    if byte == 110:  # n
        return _LINE_FEED
    if byte == 114:  # r
        return _RETURN
    return 9 if byte == 116 else byte  # t
