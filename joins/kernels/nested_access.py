"""What expressions read out of nested values, and how they make a ROW, an ARRAY or a MAP."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.casts import Checked, Mask, mask_of
from joins.kernels.nested import Parts, Rows, assembled, parts_of
from joins.kernels.operation import Function, Operation
from joins.types import TypeName, arrow_type


def field_of(op: Operation) -> pa.Array:
    """`row.field`; the second argument is the field's name."""
    name = op.constant(1)
    assert name is not None, "the planner names a field"
    names = [member.name for member in op.types[0].members]
    return parts_of(op.array(0)).children[names.index(name.as_py())]


def element_of(op: Operation) -> pa.Array:
    """`array[index]`, from 1, and `map[key]`; NULL where there is no such element."""
    of = _map_value if op.types[0].name is TypeName.MAP else _array_element
    return of(op)


def row_of(op: Operation) -> pa.Array:
    """`ROW(a, b)`."""
    return pa.StructArray.from_arrays(op.arrays(), fields=list(arrow_type(op.result)))


def array_of(op: Operation) -> pa.Array:
    """`ARRAY[a, b]`; all arguments have one type."""
    kept = np.ones((op.num_rows, len(op.arguments)), dtype=np.bool_)
    return _filled(op, [op.arrays()], kept)


def map_of(op: Operation) -> Checked:
    """`MAP[key, value, …]`; of equal keys the last one counts, a row with a NULL key fails."""
    arguments = op.arrays()
    keys, values = arguments[::2], arguments[1::2]
    coded = pc.fill_null(pa.concat_arrays(keys).dictionary_encode().indices, -1)
    codes = coded.to_numpy().reshape(len(keys), op.num_rows).T
    failed = (codes < 0).any(axis=1)
    kept = _last_of_equal(codes)
    kept[failed] = False
    made = _filled(op, [keys, values], kept)
    return Checked(pc.if_else(pa.array(failed), pa.scalar(None, made.type), made), failed)


def _last_of_equal(codes: Rows) -> Mask:
    """Which of the numbers in each row are followed by no equal one."""
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, axis=1)
    last = np.ones(codes.shape, dtype=np.bool_)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    kept = np.empty_like(last)
    np.put_along_axis(kept, order, last, axis=1)
    return kept


def _filled(op: Operation, parts: Sequence[Sequence[pa.Array]], kept: Mask) -> pa.Array:
    """An ARRAY or a MAP a row, of those of its `parts`, a column each, that are `kept`."""
    count = kept.shape[1]
    places = np.arange(op.num_rows)[:, None] + np.arange(count)[None, :] * op.num_rows
    chosen = pa.array(places[kept])
    children = [pa.concat_arrays(columns).take(chosen) for columns in parts]
    there = np.zeros(op.num_rows, dtype=np.bool_)
    return assembled(Parts(children, kept.sum(axis=1)), arrow_type(op.result), there)


def cardinality(op: Operation) -> pa.Array:
    """The number of elements of an ARRAY or of entries of a MAP."""
    column = op.array(0)
    lengths = parts_of(column).lengths
    return pa.array(lengths, pa.int32(), mask=mask_of(column.is_null()))


def entries_of(at: int) -> Function:
    """`MAP_KEYS(map)` for 0, `MAP_VALUES(map)` for 1: in the order of the entries."""

    def apply(op: Operation) -> pa.Array:
        column = op.array(0)
        parts = parts_of(column)
        chosen = Parts([parts.children[at]], parts.lengths)
        return assembled(chosen, arrow_type(op.result), mask_of(column.is_null()))

    return apply


def array_contains(op: Operation) -> pa.Array:
    """`ARRAY_CONTAINS(array, value)`; NULL is found where an element is NULL."""
    column = op.array(0)
    parts = parts_of(column)
    (elements,), owners = parts.children, parts.owners
    assert owners is not None, "an array has elements"
    wanted = op.array(1).take(pa.array(owners))
    same = mask_of(pc.equal(elements, wanted))
    same |= mask_of(pc.and_(elements.is_null(), wanted.is_null()))
    found = parts.of_rows(same, op.num_rows)
    return pa.array(found, mask=mask_of(column.is_null()))


def array_join(op: Operation) -> pa.Array:
    """`ARRAY_JOIN(texts, delimiter[, text for NULL])`; without the last NULL is left out."""
    column, delimiter, *further = op.arrays()
    parts = parts_of(column)
    (texts,), owners = parts.children, parts.owners
    assert owners is not None, "an array has elements"
    missing = mask_of(column.is_null()) | mask_of(delimiter.is_null())
    for replacement in further:
        texts = pc.coalesce(texts, replacement.take(pa.array(owners)))
        missing |= mask_of(replacement.is_null())
    there = mask_of(texts.is_valid())
    lengths = np.bincount(owners[there], minlength=op.num_rows)
    lists = assembled(Parts([texts.drop_null()], lengths), pa.list_(pa.string()), missing)
    return pc.binary_join(lists, delimiter)


def _array_element(op: Operation) -> pa.Array:
    parts = parts_of(op.array(0))
    assert parts.lengths is not None, "an array has elements"
    index = pc.fill_null(op.array(1).cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    absent = (index < 1) | (index > parts.lengths)
    places = np.where(absent, 0, parts.starts + index - 1)
    return parts.children[0].take(pa.array(places, mask=absent))


def _map_value(op: Operation) -> pa.Array:
    parts = parts_of(op.array(0))
    owners = parts.owners
    assert owners is not None, "a map has entries"
    keys, values = parts.children
    wanted = op.constant(1)
    same = pc.equal(keys, op.array(1).take(pa.array(owners)) if wanted is None else wanted)
    places = np.full(op.num_rows, -1, dtype=np.int64)
    hits = np.flatnonzero(mask_of(same))
    places[owners[hits]] = hits
    return values.take(pa.array(np.maximum(places, 0), mask=places < 0))
