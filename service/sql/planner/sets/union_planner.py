"""UNION ALL: several queries over one stream are as many INSERTs of one job into one table.

A plan has one query, so each is planned by itself: `Unions` says which one it is this time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from joins.plan.types import TypeName
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, Typed
from service.sql.grammar.syntax import Select
from service.sql.grammar.type_rules import TEMPORAL
from service.sql.text.script import Script


@dataclass(slots=True)
class Unions:
    """Which query of each UNION ALL is planned, in the order in which they are met.

    Attributes:
        picks: of those that are met first; of the others the first query is planned.
    """

    picks: tuple[int, ...] = ()
    _counts: list[int] = field(default_factory=list)

    @property
    def is_used(self) -> bool:
        return bool(self._counts)

    def choose(self, count: int) -> int:
        met = len(self._counts)
        self._counts.append(count)
        return self.picks[met] if met < len(self.picks) else 0

    def refuse_beside_state(self, script: Script, select: Select) -> None:
        """See that a job that keeps state, with `select` as its query, has no UNION ALL.

        Raises:
            SqlError: it has.
        """
        if not self.is_used:
            return
        hint = "Write a job for each query: an INSERT INTO the same table, without the others."
        if not select.others:
            hint = (
                "Let one job insert the rows of UNION ALL into a topic, and another one have the "
                "window or the join over that topic."
            )
        what = "UNION ALL beside a window or a join by event time"
        raise script.error(select.at, what, hint=hint)

    def others(self) -> Iterator[tuple[int, ...]]:
        """The picks that lead to all queries but the one that was planned, each one once."""
        taken = (*self.picks, *(0 for _ in self._counts[len(self.picks) :]))
        for place in range(len(self.picks), len(self._counts)):
            for pick in range(1, self._counts[place]):
                yield (*taken[:place], pick)


def in_common_types(
    script: Script,
    columns: Sequence[Sequence[ScopeColumn]],
    queries: Sequence[Select],
    chosen: int,
) -> list[ScopeColumn]:
    """The columns of the `chosen` query, named as the first one's, in the types of all of them.

    Raises:
        SqlError: they have not as many columns, or some have no common type.
    """
    for query, own in zip(queries, columns, strict=True):
        if len(own) != len(columns[0]):
            raise script.error(
                query.at,
                f"UNION ALL has a query of {len(own)} columns behind one of {len(columns[0])}",
                hint="Select as many columns in each of them; they are matched by position.",
            )
    planner = ExpressionPlanner(NameScope(script, ()))
    united = []
    for at, alike in enumerate(zip(*columns, strict=True)):
        values = [column.written_out for column in alike]
        _check_texts(script, values, queries[chosen].at)
        value = planner.common(values, queries[chosen].at, "UNION ALL")[chosen]
        is_time = {column.time for column in alike} == {alike[0].time}
        nullable = any(column.nullable for column in alike)
        united.append(
            replace(
                alike[chosen],
                name=columns[0][at].name,
                type=value.type,
                nullable=nullable,
                time=alike[chosen].time if is_time and value == values[chosen] else None,
                value=replace(value, nullable=nullable),
            )
        )
    return united


def _check_texts(script: Script, values: Sequence[Typed], at: int) -> None:
    names = {value.type.name for value in values if not value.is_bare_null}
    if TypeName.STRING in names and names & TEMPORAL:
        raise script.error(
            at,
            "UNION ALL has a text and a time in one column",
            hint="Write CAST(… AS STRING) around the time, or a CAST of the text.",
        )
