"""Nested columns: split into plain ones and assembled again.

A child has the rows of a ROW, or the concatenated elements of all lists or maps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, Mask, mask_of
from joins.plan.types import SqlType, TypeName

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Parts:
    """A split nested column; a map has two children.

    `lengths` has the length of each list or map, 0 where it is NULL; None for a ROW.
    """

    children: list[pa.Array]
    lengths: Rows | None

    @property
    def owners(self) -> Rows | None:
        return (
            None if self.lengths is None else np.repeat(np.arange(len(self.lengths)), self.lengths)
        )

    @property
    def starts(self) -> Rows:
        assert self.lengths is not None, "a ROW has no elements"
        return np.cumsum(self.lengths) - self.lengths

    def of_rows(self, marked: Mask, count: int) -> Mask:
        """Mask of the rows, of `count`, that own a child's marked values."""
        owners = self.owners
        if owners is None:
            return marked
        rows = np.zeros(count, dtype=np.bool_)
        rows[owners[marked]] = True
        return rows


def parts_of(column: pa.Array, *, entries: bool = False) -> Parts:
    """The children of a nested column; with `entries` a list of (key, value) counts as a map."""
    kind = column.type
    if pa.types.is_struct(kind):
        return Parts(column.flatten(), None)
    if pa.types.is_map(kind):
        entries = True
        pair = pa.struct([kind.key_field, kind.item_field])
        column = column.cast(pa.list_(pair))
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    elements = column.flatten()
    return Parts(elements.flatten() if entries else [elements], lengths.astype(np.int64))


def mapped(
    column: pa.Array,
    to: pa.DataType,
    child: Callable[[int, pa.Array], Checked],
    *,
    entries: bool = False,
) -> Checked:
    """`column` as `to`; `child` converts the child at each place.

    A row fails, and is NULL, if a part of it has failed. A list of (key, value) may become a map;
    with `entries` it is one.
    """
    parts = parts_of(column, entries=entries or pa.types.is_map(to))
    made = [child(at, values) for at, values in enumerate(parts.children)]
    failed = np.zeros(len(column), dtype=np.bool_)
    for each in made:
        if each.failed.any():
            failed |= parts.of_rows(each.failed, len(column))
    missing = mask_of(column.is_null()) | failed
    whole = replace(parts, children=[each.values for each in made])
    return Checked(assembled(whole, to, missing), failed)


def assembled(parts: Parts, to: pa.DataType, missing: Mask) -> pa.Array:
    mask = pa.array(missing)
    if parts.lengths is None:
        return pa.StructArray.from_arrays(parts.children, fields=list(to), mask=mask)
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(parts.lengths)])
    of, children = (pa.MapArray if pa.types.is_map(to) else pa.ListArray), parts.children
    if len(children) == 2 and not pa.types.is_map(to):
        children = [pa.StructArray.from_arrays(children, fields=list(to.value_type))]
    return of.from_arrays(pa.array(ends, pa.int32()), *children, type=to, mask=mask)


def equal_keys(parts: Parts) -> Mask:
    """Mask of the maps in which a key comes twice."""
    assert parts.lengths is not None, "a map has entries"
    rows = np.zeros(len(parts.lengths), dtype=np.bool_)
    keys = pa.table({"owner": parts.owners, "key": parts.children[0]})
    counts = keys.group_by(keys.schema.names).aggregate([([], "count_all")])
    if len(counts) < len(keys):
        rows[counts.filter(pc.greater(counts["count_all"], 1))["owner"].to_numpy()] = True
    return rows


def missing_parts(column: pa.Array, kind: SqlType, path: str) -> Iterator[tuple[str, Mask]]:
    """Paths of the NOT NULL parts of `column` with a NULL, and the mask of its rows."""
    if _is_lenient(kind):
        return
    parts = parts_of(column)
    present = mask_of(column.is_valid())
    owners = parts.owners
    for member, child in zip(kind.members, parts.children, strict=True):
        name = f"{path}.{member.name}" if kind.name is TypeName.ROW else f"{path}[]"
        name += ".value" if kind.name is TypeName.MAP else ""
        if not member.nullable and child.null_count:
            exists = present if owners is None else present[owners]
            missing = parts.of_rows(mask_of(child.is_null()) & exists, len(column))
            if missing.any():
                yield name, missing
        for inner, rows in missing_parts(child, member.type, name):
            yield inner, parts.of_rows(rows, len(column))


def _is_lenient(kind: SqlType) -> bool:
    values = kind.members[1:] if kind.name is TypeName.MAP else kind.members
    return all(member.nullable and _is_lenient(member.type) for member in values)
