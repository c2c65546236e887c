"""Looks at each batch by the plan of its pin: one tool a plan, opened when it is needed."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from joins.lookback.history import History
from joins.lookback.past_indexes import PastIndexes


class Closable(Protocol):
    """A tool that is closed when it is done."""

    def close(self) -> None: ...


_Tool = TypeVar("_Tool", bound=Closable)


class OfPlans(Generic[_Tool]):
    """The tools for the plans of one job; close it when done."""

    def __init__(self, history: History, make: Callable[[History, PastIndexes], _Tool]) -> None:
        self._history = history
        self._make = make
        self._made: dict[int, _Tool] = {}
        self._at_end = ExitStack()

    def of(self, plan: int) -> _Tool:
        """Raises CheckpointError if the plan's file is missing or damaged."""
        if plan not in self._made:
            history = self._history.of_plan(plan)
            indexes = self._at_end.enter_context(PastIndexes(history.places))
            tool = self._at_end.enter_context(closing(self._make(history, indexes)))
            self._made[plan] = tool
        return self._made[plan]

    def close(self) -> None:
        self._at_end.close()


@dataclass(frozen=True, slots=True)
class PlanIndexes:
    """What batches of one plan are joined with."""

    history: History
    indexes: PastIndexes

    def close(self) -> None:
        """Does nothing: who opened the indexes closes them."""


def widened(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of an older plan with the columns of `schema`; NULL where the older plan has none."""
    columns = [
        rows.column(field.name)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
