"""Envelope of a change: its operation, its rows, and its source block."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium import readers, tokens
from joins.kernels.debezium.changes import Faults, RecordFault, RecordKind
from joins.kernels.debezium.options import CapturedName
from joins.kernels.debezium.raw import Payloads, RawValues, members_of
from joins.kernels.debezium.readers import Readers
from joins.kernels.expressions.casts import Checked, mask_of, sound
from joins.kernels.json.plain import ABSENT

Rows = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

KINDS = tuple(RecordKind)
CODES = {kind: code for code, kind in enumerate(KINDS)}
_BAD = CODES[RecordKind.BAD]
_LETTERS = np.full(256, _BAD, np.uint8)
for _kind in KINDS:
    if len(_kind) == 1:
        _LETTERS[ord(_kind)] = CODES[_kind]
WITH_ROW = [CODES[kind] for kind in (RecordKind.READ, RecordKind.CREATE, RecordKind.UPDATE)]
_SOURCE = ("snapshot", "ts_ms", "name", "db", "schema", "table")
_POSITION = ("lsn", "file", "pos")
_ONE_IS_EMPTY = "it empties one partition of the table, whose rows are not known"


@dataclass(frozen=True, slots=True)
class Source:
    """Origin of changes, a row a record; NULL if unknown. Only snapshot rows have a `position`."""

    snapshot: pa.StringArray
    ts_ms: pa.Int64Array
    connector: pa.StringArray
    database: pa.StringArray
    schema: pa.StringArray
    table: pa.StringArray
    position: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes whose rows are not read yet; `codes` are places in `KINDS`."""

    codes: Codes
    before: RawValues
    after: RawValues
    source: Source


def envelopes(payloads: Payloads, table: CapturedName | None, faults: Faults) -> Changes:
    members = members_of(payloads.values, ("before", "after", "source", "op"))
    faults.add_all(RecordFault.UNREADABLE, members.reasons)
    op, after, before = members["op"], members["after"], members["before"]
    codes = _codes_of(op)
    codes[payloads.values.lasts < 0] = CODES[RecordKind.TOMBSTONE]
    for row in np.flatnonzero((codes == _BAD) & faults.sound).tolist():
        said = f'"op" is {op.shown(row)}, no operation of Debezium'
        if op.lasts[row] == ABSENT:
            said = 'it has no "op": is it a flat row, as ExtractNewRecordState makes them?'
        faults.add(RecordFault.LAYOUT, row, said)
    inner = members_of(members["source"], (*_SOURCE, *_POSITION))
    faults.add_all(RecordFault.LAYOUT, inner.reasons)
    said_of = [inner[name] for name in _SOURCE]
    positions = _positions([inner[name] for name in _POSITION], codes)
    source = _source_of(said_of, positions, members["source"].lasts >= 0, faults)
    _leave_others(codes, source, table, faults)
    no_row = np.isin(codes, WITH_ROW) & (after.kinds() != tokens.OBJECT)
    faults.where(RecordFault.LAYOUT, no_row, 'its "op" has a row, but there is none in "after"')
    kinds = before.kinds()
    odd = (kinds != tokens.OBJECT) & (kinds != tokens.NOTHING)
    faults.where(RecordFault.LAYOUT, odd, '"before" is no row')
    return Changes(codes, before, after, source)


def flat_rows(payloads: Payloads, table: CapturedName | None, faults: Faults) -> Changes:
    names = (*_SOURCE, *_POSITION)
    # add.fields with `source.table`, and with `table`, where ts_ms is not the source's
    long = [f"__source_{name}" for name in names]
    short = [f"__{name}" for name in names if name != "ts_ms"]
    op_name, deleted_name = "__op", "__deleted"
    rows = payloads.values
    members = members_of(rows, (op_name, deleted_name, *long, *short))
    faults.add_all(RecordFault.UNREADABLE, members.reasons)
    op, deleted = members[op_name], members[deleted_name]
    codes = _codes_of(op)
    codes[op.lasts < 0] = CODES[RecordKind.UPDATE]
    no_op = codes == _BAD
    gone = deleted.are(b'"true"') | deleted.are(b"true")
    stays = deleted.are(b'"false"') | deleted.are(b"false") | (deleted.lasts < 0)
    codes[gone] = CODES[RecordKind.DELETE]
    codes[rows.lasts < 0] = CODES[RecordKind.TOMBSTONE]
    for row in np.flatnonzero((no_op | ~(gone | stays)) & faults.sound).tolist():
        name, value = (op_name, op) if no_op[row] else (deleted_name, deleted)
        faults.add(RecordFault.LAYOUT, row, f'"{name}" is {value.shown(row)}, which says nothing')
    said_of = {name: members[f"__source_{name}"] for name in names}
    for name, first in said_of.items():
        if f"__{name}" in short:
            second, has_first = members[f"__{name}"], first.lasts != ABSENT
            firsts = np.where(has_first, first.firsts, second.firsts)
            lasts = np.where(has_first, first.lasts, second.lasts)
            said_of[name] = RawValues(firsts, lasts, first.kept)
    positions = _positions([said_of[name] for name in _POSITION], codes)
    source = _source_of(
        [said_of[name] for name in _SOURCE], positions, np.zeros(len(rows), np.bool_), faults
    )
    _leave_others(codes, source, table, faults)
    is_gone = codes == CODES[RecordKind.DELETE]
    before = RawValues(rows.firsts, np.where(is_gone, rows.lasts, ABSENT), rows.kept)
    return Changes(codes, before, rows, source)


def _codes_of(op: RawValues) -> Codes:
    letters = np.zeros(len(op), np.uint8)
    tokens.letters_of(op.firsts, op.lasts, letters)
    return _LETTERS[letters]


def _positions(said_of: Sequence[RawValues], codes: Codes) -> pa.BinaryArray:
    """Positions of snapshot rows in the log; equal for all rows of one snapshot."""
    chosen = np.flatnonzero(codes == CODES[RecordKind.READ])
    lsn, file, pos = (values.copied(chosen) for values in said_of)
    positions = pc.coalesce(
        lsn, pc.binary_join_element_wise(file, pos, pa.scalar(b":", pa.binary()))
    )
    places = np.full(len(codes), -1, np.int64)
    places[chosen] = np.arange(len(chosen))
    return positions.take(pa.array(places, mask=places < 0))


def _source_of(
    said_of: Sequence[RawValues], positions: pa.BinaryArray, has_block: Mask, faults: Faults
) -> Source:
    by_kind: Readers = {tokens.STRING: readers.texts, tokens.BOOLEAN: _boolean_words}
    columns = []
    for name, value in zip(_SOURCE, said_of, strict=True):
        kind = pa.int64() if name == "ts_ms" else pa.string()
        read = {tokens.INTEGER: readers.integers(kind)} if name == "ts_ms" else by_kind
        checked = _read(value, read, kind)
        for row in np.flatnonzero(checked.failed & faults.sound).tolist():
            said = f'its source says {value.shown(row)} for "{name}"'
            faults.add(RecordFault.LAYOUT, row, said)
        columns.append(checked.values)
    if columns[0].null_count:
        is_false = pa.array(has_block & mask_of(columns[0].is_null()))
        columns[0] = pc.if_else(is_false, pa.scalar("false"), columns[0])
    snapshot, ts_ms, connector, database, schema, table = columns
    return Source(snapshot, ts_ms, connector, database, schema, table, positions)


def _read(values: RawValues, by_kind: Readers, to: pa.DataType) -> Checked:
    """Reads each value by its kind; reads a value that all records share once."""
    count = len(values)
    if count > 1 and values.lasts[0] >= 0 and values.are(values.at(0)).all():
        one = readers.read_by_kind(values.take(np.zeros(1, np.int64)), by_kind, to)
        return Checked(pa.repeat(one.values[0], count), one.failed.repeat(count))
    return readers.read_by_kind(values, by_kind, to)


def _boolean_words(values: RawValues) -> Checked:
    return sound(readers.booleans(values).values.cast(pa.string()))


def _leave_others(codes: Codes, source: Source, table: CapturedName | None, faults: Faults) -> None:
    if table is None:
        return
    names = source.table.unique().drop_null().to_pylist()
    ours = pa.array([name for name in names if table.has(name)], pa.string())
    columns = (
        ("table", source.table, table.table),
        ("schema", source.schema, table.schema),
        ("database", source.database, table.database),
    )
    other = CODES[RecordKind.OTHER_TABLE]
    has_table = codes != CODES[RecordKind.TOMBSTONE]
    for word, column, name in columns:
        if name is not None:
            silent = has_table & mask_of(column.is_null()) & (codes != other)
            faults.where(RecordFault.LAYOUT, silent, f"it does not name its {word}")
            values = ours if word == "table" else pa.array([name])
            is_named = column.is_valid()
            codes[mask_of(pc.and_(is_named, pc.invert(pc.is_in(column, values))))] = other
    if table.is_pattern:
        is_truncate = codes == CODES[RecordKind.TRUNCATE]
        faults.where(RecordFault.LAYOUT, is_truncate, _ONE_IS_EMPTY)
