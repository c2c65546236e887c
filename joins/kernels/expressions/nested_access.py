"""ROW, ARRAY and MAP values: made, read, compared and joined.

Equal values of a column have one code, NULL has -1; NULL parts are equal to each other.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, Mask, mask_of
from joins.kernels.expressions.nested import Parts, Rows, assembled, parts_of
from joins.kernels.expressions.operation import Function, Operation, Sizes, bytes_of, grown
from joins.plan.types import SqlType, TypeName, arrow_type


def codes_of(column: pa.Array, kind: SqlType) -> Rows:
    if not kind.is_nested:
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 equals 0.0
        coded = column.dictionary_encode().indices
        return np.asarray(pc.fill_null(coded, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    parts = parts_of(column, entries=kind.name is TypeName.MAP)
    inner = [
        codes_of(child, member.type)
        for child, member in zip(parts.children, kind.members, strict=True)
    ]
    codes = _numbered(_keys(parts, inner, kind, len(column)))
    codes[mask_of(column.is_null())] = -1
    return codes


def _keys(parts: Parts, inner: list[Rows], kind: SqlType, count: int) -> Iterable[Hashable]:
    if parts.lengths is None:
        return zip(*(codes.tolist() for codes in inner), strict=True) if inner else [()] * count
    starts, lengths = parts.starts.tolist(), parts.lengths.tolist()
    spans = [slice(first, first + length) for first, length in zip(starts, lengths, strict=True)]
    if kind.name is TypeName.ARRAY:
        elements = inner[0].tolist()
        return [tuple(elements[span]) for span in spans]
    keys, values = (codes.tolist() for codes in inner)
    return [frozenset(zip(keys[span], values[span], strict=True)) for span in spans]


def _numbered(keys: Iterable[Hashable]) -> Rows:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def same_codes(left: pa.Array, right: pa.Array, kind: SqlType) -> tuple[Rows, Rows]:
    codes = codes_of(pa.concat_arrays([left, right]), kind)
    return codes[: len(left)], codes[len(left) :]


def equal(op: Operation) -> pa.Array:
    """Equality of two nested values; NULL if one is NULL."""
    left, right = op.arrays()
    first, second = same_codes(left, right, op.types[0])
    missing = mask_of(left.is_null()) | mask_of(right.is_null())
    return pa.array(first == second, pa.bool_(), mask=missing)


def distinct(op: Operation) -> pa.Array:
    left, right = op.arrays()
    first, second = same_codes(left, right, op.types[0])
    return pa.array(np.asarray(first != second), pa.bool_())


def entries(op: Operation) -> pa.Array:
    column = op.array(0)
    parts = parts_of(column, entries=True)
    to = arrow_type(op.result)
    rows = pa.StructArray.from_arrays(parts.children, fields=list(to.value_type))
    return assembled(Parts([rows], parts.lengths), to, mask_of(column.is_null()))


def from_arrays(op: Operation) -> Checked:
    """`MAP_FROM_ARRAYS(keys, values)`; a row with arrays of different lengths fails."""
    keys, values = (parts_of(op.array(at)) for at in (0, 1))
    assert keys.lengths is not None, "an array has elements"
    assert values.lengths is not None, "an array has elements"
    missing = mask_of(op.array(0).is_null()) | mask_of(op.array(1).is_null())
    failed = ~missing & (keys.lengths != values.lengths)
    return _joined_entries(op, [(keys, values)], missing | failed, failed)


def union(op: Operation) -> Checked:
    """`MAP_UNION(maps…)`: the last of equal keys counts."""
    missing = np.zeros(op.num_rows, dtype=np.bool_)
    pairs = []
    for at in range(len(op.arguments)):
        parts = parts_of(op.array(at), entries=True)
        missing |= mask_of(op.array(at).is_null())
        keys, values = parts.children
        pairs.append((Parts([keys], parts.lengths), Parts([values], parts.lengths)))
    return _joined_entries(op, pairs, missing, np.zeros(op.num_rows, dtype=np.bool_))


def _joined_entries(
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


def field_of(op: Operation) -> pa.Array:
    """`row.field`; the second argument is the field's name."""
    name = op.constant(1)
    assert name is not None, "the planner names a field"
    names = [member.name for member in op.types[0].members]
    return parts_of(op.array(0)).children[names.index(name.as_py())]


def element_of(op: Operation) -> pa.Array:
    of = _map_value if op.types[0].name is TypeName.MAP else _array_element
    return of(op)


def row_of(op: Operation) -> pa.Array:
    return pa.StructArray.from_arrays(op.arrays(), fields=list(arrow_type(op.result)))


def array_of(op: Operation) -> pa.Array:
    kept = np.ones((op.num_rows, len(op.arguments)), dtype=np.bool_)
    return _filled(op, [op.arrays()], kept)


def map_of(op: Operation) -> Checked:
    """`MAP[key, value, …]`; the last of equal keys counts."""
    arguments = op.arrays()
    keys, values = arguments[::2], arguments[1::2]
    coded = codes_of(pa.concat_arrays(keys), op.types[0])
    codes = coded.reshape(len(keys), op.num_rows).T
    failed = np.asarray((codes < 0).any(axis=1), dtype=np.bool_)
    failed &= not op.result.members[0].nullable
    kept = _last_of_equal(codes)
    kept[failed] = False
    made = _filled(op, [keys, values], kept)
    return Checked(pc.if_else(pa.array(failed), pa.scalar(None, made.type), made), failed)


def _last_of_equal(codes: Rows) -> Mask:
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, axis=1)
    last = np.ones(codes.shape, dtype=np.bool_)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    kept = np.empty_like(last)
    np.put_along_axis(kept, order, last, axis=1)
    return kept


def _filled(op: Operation, parts: Sequence[Sequence[pa.Array]], kept: Mask) -> pa.Array:
    count = kept.shape[1]
    places = np.arange(op.num_rows)[:, None] + np.arange(count)[None, :] * op.num_rows
    chosen = pa.array(places[kept])
    children = [pa.concat_arrays(columns).take(chosen) for columns in parts]
    there = np.zeros(op.num_rows, dtype=np.bool_)
    return assembled(Parts(children, kept.sum(axis=1)), arrow_type(op.result), there)


def cardinality(op: Operation) -> pa.Array:
    column = op.array(0)
    lengths = parts_of(column).lengths
    return pa.array(lengths, pa.int32(), mask=mask_of(column.is_null()))


def entries_of(at: int) -> Function:
    """`MAP_KEYS(map)` for 0, `MAP_VALUES(map)` for 1, in the order of the entries."""

    def apply(op: Operation) -> pa.Array:
        column = op.array(0)
        parts = parts_of(column, entries=True)
        chosen = Parts([parts.children[at]], parts.lengths)
        return assembled(chosen, arrow_type(op.result), mask_of(column.is_null()))

    return apply


def array_contains(op: Operation) -> pa.Array:
    """`ARRAY_CONTAINS(array, value)`; NULL is found where an element is NULL."""
    column = op.array(0)
    parts = parts_of(column)
    (elements,), owners = parts.children, parts.owners
    assert owners is not None, "an array has elements"
    same = _same(elements, op.array(1), owners)
    same |= mask_of(elements.is_null()) & mask_of(op.array(1).is_null())[owners]
    contained = parts.of_rows(same, op.num_rows)
    return pa.array(contained, mask=mask_of(column.is_null()))


def array_join(op: Operation) -> pa.Array:
    """`ARRAY_JOIN(texts, delimiter[, text for NULL])`; without the last NULL is left out."""
    column, delimiter, *further = op.arrays()
    parts = parts_of(column)
    (texts,), owners = parts.children, parts.owners
    assert owners is not None, "an array has elements"
    missing = mask_of(column.is_null()) | mask_of(delimiter.is_null())
    for replacement in further:
        nulls = texts.is_null()
        values = replacement.to_pylist()
        shown = [values[row] for row in owners[mask_of(nulls)]]
        texts = pc.replace_with_mask(texts, nulls, pa.array(shown, pa.string()))
        missing |= mask_of(replacement.is_null())
    return joined(Parts([texts], parts.lengths), delimiter, missing)


def array_join_bytes(op: Operation) -> Sizes:
    column, delimiter, *further = (op.array(at) for at in range(len(op.arguments)))
    parts = parts_of(column)
    lengths, owners = parts.lengths, parts.owners
    assert lengths is not None, "an array has elements"
    assert owners is not None, "an array has elements"
    nulls = mask_of(parts.children[0].is_null())
    replaced = np.bincount(owners[nulls], minlength=op.num_rows)
    shown: Sizes = sum((bytes_of(item) for item in further), np.zeros(1, dtype=np.int64))
    return np.asarray(bytes_of(column) + lengths * bytes_of(delimiter) + replaced * shown)


def joined(parts: Parts, delimiter: pa.Array, missing: Mask) -> pa.Array:
    (texts,), owners = parts.children, parts.owners
    assert owners is not None, "a list has elements"
    lengths = np.bincount(owners[mask_of(texts.is_valid())], minlength=len(missing))
    lists = assembled(Parts([texts.drop_null()], lengths), pa.list_(pa.string()), missing)
    return pc.binary_join(lists, delimiter)


def concat_ws(op: Operation) -> pa.Array:
    """`CONCAT_WS(delimiter, texts…)`: NULL texts are left out."""
    delimiter, *columns = op.arrays()
    places = np.arange(op.num_rows)[:, None] + np.arange(len(columns))[None, :] * op.num_rows
    texts = pa.concat_arrays(columns).take(pa.array(places.ravel()))
    lengths = np.full(op.num_rows, len(columns), dtype=np.int64)
    return joined(Parts([texts], lengths), delimiter, mask_of(delimiter.is_null()))


def _array_element(op: Operation) -> pa.Array:
    parts = parts_of(op.array(0))
    assert parts.lengths is not None, "an array has elements"
    index = pc.fill_null(op.array(1).cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    absent = (index < 1) | (index > parts.lengths)
    return _picked(parts.children[0], np.where(absent, -1, parts.starts + index - 1))


def _map_value(op: Operation) -> pa.Array:
    parts = parts_of(op.array(0), entries=True)
    owners = parts.owners
    assert owners is not None, "a map has entries"
    keys, values = parts.children
    key = op.constant(1)
    same = _same(keys, op.array(1), owners) if key is None else mask_of(pc.equal(keys, key))
    places = np.full(op.num_rows, -1, dtype=np.int64)
    hits = np.flatnonzero(same)
    places[owners[hits]] = hits
    return _picked(values, places)


def _picked(values: pa.Array, places: Rows) -> pa.Array:
    """The values at `places`, NULL for -1.

    For texts Arrow would reserve the mean length for each NULL, too: few long ones take gigabytes.
    """
    there = places >= 0
    if not pa.types.is_string(values.type) and not pa.types.is_binary(values.type):
        return values.take(pa.array(np.maximum(places, 0), mask=~there))
    nothing = pa.nulls(len(places), values.type)
    return pc.replace_with_mask(nothing, pa.array(there), values.take(pa.array(places[there])))


def _same(elements: pa.Array, keys: pa.Array, owners: Rows) -> Mask:
    """Mask of elements that equal the key of their row; does not copy a long text for each."""
    if not pa.types.is_string(elements.type) and not pa.types.is_binary(elements.type):
        return mask_of(pc.equal(elements, keys.take(pa.array(owners))))
    coded = pa.concat_arrays([elements, keys]).dictionary_encode().indices
    codes = pc.fill_null(coded, -1).to_numpy(zero_copy_only=False)
    firsts = codes[: len(elements)]
    return np.asarray((firsts >= 0) & (firsts == codes[len(elements) :][owners]))
