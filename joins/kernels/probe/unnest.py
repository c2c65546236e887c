"""Arrays and maps as rows: which row each element belongs to, and the elements themselves."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import mask_of
from joins.plan.plan import JoinType

Rows = npt.NDArray[np.int64]
ELEMENT = "element"


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of rows, one after the other.

    Attributes:
        columns: what an element has, by name.
        rows: the element of each row, -1 for a row without one.
    """

    columns: Mapping[str, pa.Array]
    rows: Rows

    def taken(self, name: str) -> pa.Array:
        return self.columns[name].take(pa.array(self.rows, mask=self.rows < 0))

    def picked(self, at: Rows) -> "Elements":
        return Elements(self.columns, self.rows[at])


def unnested(values: pa.Array, join_type: JoinType) -> tuple[Rows, Elements]:
    """The position of each row that comes of `values`, ascending, and its elements.

    NULL has as many elements as an empty one: none.
    """
    lists = _as_list(values)
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64)
    elements = lists.flatten()
    if join_type is JoinType.INNER:
        at = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        return at, Elements(_columns(elements), np.arange(len(at), dtype=np.int64))
    at = np.repeat(np.arange(len(lengths), dtype=np.int64), np.maximum(lengths, 1))
    rows = np.full(len(at), -1, dtype=np.int64)
    rows[(lengths > 0)[at]] = np.arange(len(elements), dtype=np.int64)
    return at, Elements(_columns(elements), rows)


def _as_list(values: pa.Array) -> pa.ListArray:
    """A map as the list of its entries."""
    if not pa.types.is_map(values.type):
        return values
    if values.offset:
        values = values.take(pa.array(np.arange(len(values))))
    entries = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
    mask = pa.array(mask_of(values.is_null())) if values.null_count else None
    return pa.ListArray.from_arrays(values.offsets, entries, mask=mask)


def _columns(elements: pa.Array) -> Mapping[str, pa.Array]:
    """The fields of a row are NULL where the row is."""
    if not pa.types.is_struct(elements.type):
        return {ELEMENT: elements}
    names = [field.name for field in elements.type]
    return dict(zip(names, elements.flatten(), strict=True))
