"""Functions of maps: their entries as rows, maps made of arrays and of other maps."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from joins.kernels.collections.codes import codes_of
from joins.kernels.expressions.casts import Checked, Mask, mask_of
from joins.kernels.expressions.nested import Parts, assembled, parts_of
from joins.kernels.expressions.operation import Function, Operation
from joins.kernels.expressions.result_limits import grown
from joins.plan.types import arrow_type


def entries(op: Operation) -> pa.Array:
    """`MAP_ENTRIES(map)`: an array of rows of a key and a value."""
    column = op.array(0)
    parts = parts_of(column, entries=True)
    to = arrow_type(op.result)
    rows = pa.StructArray.from_arrays(parts.children, fields=list(to.value_type))
    return assembled(Parts([rows], parts.lengths), to, mask_of(column.is_null()))


def from_arrays(op: Operation) -> Checked:
    """`MAP_FROM_ARRAYS(keys, values)`; a row whose two arrays are not of one length fails."""
    keys, values = (parts_of(op.array(at)) for at in (0, 1))
    assert keys.lengths is not None, "an array has elements"
    assert values.lengths is not None, "an array has elements"
    missing = mask_of(op.array(0).is_null()) | mask_of(op.array(1).is_null())
    failed = ~missing & (keys.lengths != values.lengths)
    return _last_of_equal(op, [(keys, values)], missing | failed, failed)


def union(op: Operation) -> Checked:
    """`MAP_UNION(maps…)`: of equal keys that of the last map counts."""
    missing = np.zeros(op.num_rows, dtype=np.bool_)
    pairs = []
    for at in range(len(op.arguments)):
        parts = parts_of(op.array(at), entries=True)
        missing |= mask_of(op.array(at).is_null())
        keys, values = parts.children
        pairs.append((Parts([keys], parts.lengths), Parts([values], parts.lengths)))
    return _last_of_equal(op, pairs, missing, np.zeros(op.num_rows, dtype=np.bool_))


def _last_of_equal(
    op: Operation, pairs: Sequence[tuple[Parts, Parts]], missing: Mask, failed: Mask
) -> Checked:
    """Maps of all entries, each key at its first place and with its last value."""
    keys = pa.concat_arrays([of_keys.children[0] for of_keys, _ in pairs])
    values = pa.concat_arrays([of_values.children[0] for _, of_values in pairs])
    codes = codes_of(keys, op.result.members[0].type).tolist()
    of_keys, of_values = _places([k for k, _ in pairs]), _places([v for _, v in pairs])
    rows: list[dict[int, tuple[int, int]]] = []
    for row in range(op.num_rows):
        chosen: dict[int, tuple[int, int]] = {}
        for places, others in zip(of_keys, of_values, strict=True) if not missing[row] else ():
            for key, value in zip(places[row], others[row], strict=True):
                chosen[codes[key]] = (chosen.get(codes[key], (key, value))[0], value)
        rows.append(chosen)
    if not op.result.members[0].nullable:
        failed = failed | np.array([-1 in row for row in rows], dtype=np.bool_)
    kept = [{} if bad else row for row, bad in zip(rows, failed, strict=True)]
    children = [
        column.take(pa.array([pair[at] for row in kept for pair in row.values()], pa.int64()))
        for at, column in enumerate((keys, values))
    ]
    parts = Parts(children, np.array([len(row) for row in kept], dtype=np.int64))
    return Checked(assembled(parts, arrow_type(op.result), missing | failed), failed)


def _places(every: Sequence[Parts]) -> list[list[range]]:
    """Of each list of columns: where the elements of each row are when all are one column."""
    result, start = [], 0
    for parts in every:
        assert parts.lengths is not None, "it has elements"
        spans = zip((parts.starts + start).tolist(), parts.lengths.tolist(), strict=True)
        result.append([range(first, first + count) for first, count in spans])
        start += len(parts.children[0])
    return result


MAPS: Mapping[str, Function] = {
    "MAP_ENTRIES": grown(entries),
    "MAP_FROM_ARRAYS": grown(from_arrays),
    "MAP_UNION": grown(union),
}
