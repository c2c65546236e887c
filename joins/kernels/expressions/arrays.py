"""Functions of arrays: each gives positions among the elements, which are taken at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, mask_of
from joins.kernels.expressions.nested import Parts, assembled, parts_of
from joins.kernels.expressions.nested_access import codes_of
from joins.kernels.expressions.operation import Function, Operation, grown
from joins.plan.types import SqlType, arrow_type

Places = Sequence[int]
_NOTHING = -1


@dataclass(frozen=True)
class ArrayElements:
    """The concatenated elements of a call's arguments; `missing` rows lack a required one.

    In `pool` an argument that is no array is one element a row; `spans` has for each argument the
    first place and the number of a row's elements.
    """

    op: Operation
    pool: pa.Array
    kind: SqlType
    spans: list[tuple[list[int], list[int]]]
    missing: list[bool]

    @cached_property
    def codes(self) -> list[int]:
        return [int(code) for code in codes_of(self.pool, self.kind)]

    @cached_property
    def further(self) -> list[list[Any]]:
        return [item.to_pylist() for item in self.op.arrays()[len(self.spans) :]]

    @cached_property
    def ranks(self) -> list[int]:
        plain = self.pool
        if pa.types.is_boolean(plain.type):
            plain = plain.cast(pa.int8())
        ranks = pc.rank(plain, sort_keys="ascending", tiebreaker="dense")
        return [int(rank) for rank in ranks.to_pylist()]

    @cached_property
    def nulls(self) -> list[bool]:
        return [bool(each) for each in mask_of(self.pool.is_null())]

    def of(self, argument: int, row: int) -> range:
        first, length = self.spans[argument]
        return range(first[row], first[row] + length[row])


def elements_of(op: Operation, arrays: int, values: int = 0) -> ArrayElements:
    kind = op.types[0].members[0].type
    pieces, spans, start = [], [], 0
    missing = np.zeros(op.num_rows, dtype=np.bool_)
    for at in range(arrays):
        column = op.array(at)
        parts = parts_of(column)
        assert parts.lengths is not None, "an array has elements"
        pieces.append(parts.children[0])
        spans.append(((parts.starts + start).tolist(), parts.lengths.tolist()))
        missing |= mask_of(column.is_null())
        start += len(parts.children[0])
    for at in range(arrays, arrays + values):
        pieces.append(op.array(at))
        spans.append((list(range(start, start + op.num_rows)), [1] * op.num_rows))
        start += op.num_rows
    for at in range(arrays + values, len(op.arguments)):
        missing |= mask_of(op.array(at).is_null())
    return ArrayElements(op, pa.concat_arrays(pieces), kind, spans, missing.tolist())


def _array(
    pick: Callable[[ArrayElements, int], Places], values: int = 0, arrays: int = 0
) -> Function:
    def apply(op: Operation) -> pa.Array:
        elements = elements_of(op, arrays or len(op.arguments) - values, values)
        places: list[int] = []
        lengths: list[int] = []
        for row in range(op.num_rows):
            chosen = [] if elements.missing[row] else pick(elements, row)
            places.extend(chosen)
            lengths.append(len(chosen))
        taken = elements.pool.take(pa.array(places, pa.int64()))
        parts = Parts([taken], np.array(lengths, dtype=np.int64))
        missing = np.array(elements.missing, dtype=np.bool_)
        return assembled(parts, arrow_type(op.result), missing)

    return grown(apply)


def _one(pick: Callable[[ArrayElements, int], int]) -> Function:
    """The element at the place that `pick` gives for a row; the row fails below -1."""

    def apply(op: Operation) -> Checked:
        elements = elements_of(op, 1)
        places = np.array(
            [
                _NOTHING if elements.missing[row] else pick(elements, row)
                for row in range(op.num_rows)
            ],
            dtype=np.int64,
        )
        index = pa.array(np.maximum(places, 0), mask=places < 0)
        return Checked(elements.pool.take(index), places < _NOTHING)

    return apply


def _distinct(elements: ArrayElements, places: Sequence[int]) -> list[int]:
    first: dict[int, int] = {}
    for place in places:
        first.setdefault(elements.codes[place], place)
    return list(first.values())


def _chained(elements: ArrayElements, row: int) -> list[int]:
    return [place for at in range(len(elements.spans)) for place in elements.of(at, row)]


def _prepended(elements: ArrayElements, row: int) -> list[int]:
    return [*elements.of(1, row), *elements.of(0, row)]


def _codes_in(elements: ArrayElements, argument: int, row: int) -> set[int]:
    return {elements.codes[place] for place in elements.of(argument, row)}


def _without(elements: ArrayElements, row: int) -> list[int]:
    taken = _codes_in(elements, 1, row)
    return [place for place in elements.of(0, row) if elements.codes[place] not in taken]


def _intersected(elements: ArrayElements, row: int) -> list[int]:
    both = _codes_in(elements, 1, row)
    return _distinct(elements, [p for p in elements.of(0, row) if elements.codes[p] in both])


def _slice(elements: ArrayElements, row: int) -> Places:
    places, count = elements.of(0, row), len(elements.of(0, row))
    bounds = [int(column[row]) for column in elements.further]
    first = _place(bounds[0], count)
    last = _place(bounds[1], count) if len(bounds) > 1 else count - 1
    return places[max(first, 0) : max(last + 1, 0)]


def _place(bound: int, count: int) -> int:
    return count + bound if bound < 0 else max(bound - 1, 0)


def _sorted(elements: ArrayElements, row: int) -> list[int]:
    flags = [bool(column[row]) for column in elements.further]
    ascending = flags[0] if flags else True
    nulls_first = flags[1] if len(flags) > 1 else ascending
    places = list(elements.of(0, row))
    nulls = [place for place in places if elements.nulls[place]]
    others = [place for place in places if not elements.nulls[place]]
    others.sort(key=lambda place: elements.ranks[place], reverse=not ascending)
    return nulls + others if nulls_first else others + nulls


def _extreme(function: Callable[..., int]) -> Callable[[ArrayElements, int], int]:
    def pick(elements: ArrayElements, row: int) -> int:
        places = [place for place in elements.of(0, row) if not elements.nulls[place]]
        return function(places, key=lambda p: elements.ranks[p]) if places else _NOTHING

    return pick


def _single(elements: ArrayElements, row: int) -> int:
    places = elements.of(0, row)
    return _NOTHING if not places else places[0] if len(places) == 1 else _NOTHING - 1


def position(op: Operation) -> pa.Array:
    """`ARRAY_POSITION(array, value)`: from 1, 0 if it is missing."""
    elements = elements_of(op, 1, 1)
    found_at: list[int | None] = []
    for row in range(op.num_rows):
        value = elements.of(1, row)[0]
        if elements.missing[row] or elements.nulls[value]:
            found_at.append(None)
            continue
        code = elements.codes[value]
        hits = (at for at, p in enumerate(elements.of(0, row), 1) if elements.codes[p] == code)
        found_at.append(next(hits, 0))
    return pa.array(found_at, pa.int32())


def contains(op: Operation) -> pa.Array:
    elements = elements_of(op, 1, 1)
    return pa.array(
        [
            None
            if elements.missing[row]
            else elements.codes[elements.of(1, row)[0]] in _codes_in(elements, 0, row)
            for row in range(op.num_rows)
        ],
        pa.bool_(),
    )


ARRAYS: Mapping[str, Function] = {
    "ARRAY_APPEND": _array(_chained, values=1),
    "ARRAY_PREPEND": _array(_prepended, values=1),
    "ARRAY_CONCAT": _array(_chained),
    "ARRAY_DISTINCT": _array(lambda e, row: _distinct(e, e.of(0, row))),
    "ARRAY_UNION": _array(lambda e, row: _distinct(e, _chained(e, row))),
    "ARRAY_EXCEPT": _array(lambda e, row: _distinct(e, _without(e, row))),
    "ARRAY_INTERSECT": _array(_intersected),
    "ARRAY_REMOVE": _array(_without, values=1),
    "ARRAY_REVERSE": _array(lambda e, row: e.of(0, row)[::-1]),
    "ARRAY_SLICE": _array(_slice, arrays=1),
    "ARRAY_SORT": _array(_sorted, arrays=1),
    "ARRAY_MAX": _one(_extreme(max)),
    "ARRAY_MIN": _one(_extreme(min)),
    "ELEMENT": _one(_single),
    "ARRAY_POSITION": position,
}
