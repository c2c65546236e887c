"""What expressions read out of nested values, and how they make a ROW or an ARRAY."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.casts import mask_of
from joins.kernels.nested import parts_of
from joins.kernels.operation import Operation
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
    count = len(op.arguments)
    places = np.arange(op.num_rows)[:, None] + np.arange(count)[None, :] * op.num_rows
    elements = pa.concat_arrays(op.arrays()).take(pa.array(places.ravel()))
    offsets = pa.array(np.arange(op.num_rows + 1) * count, pa.int32())
    return pa.ListArray.from_arrays(offsets, elements, type=arrow_type(op.result))


def cardinality(op: Operation) -> pa.Array:
    """The number of elements of an ARRAY or of entries of a MAP."""
    column = op.array(0)
    lengths = parts_of(column).lengths
    return pa.array(lengths, pa.int32(), mask=mask_of(column.is_null()))


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
