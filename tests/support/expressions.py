"""SQL expressions planned and evaluated by themselves: text and columns in, values out."""

from collections.abc import Mapping, Sequence
from functools import cache

import pyarrow as pa

from joins.kernels.expressions.evaluate import Evaluated, evaluate_rows
from joins.kernels.expressions.evaluate import Scope as Rows
from joins.plan.types import SqlType, arrow_type
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, ScopeRelation, Typed
from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_parser import ExpressionParser
from service.sql.grammar.type_parser import parse_type
from service.sql.text.dialect import tokenize
from service.sql.text.script import Script

NOW_MS = 1_700_000_000_123


@cache
def sql_type(text: str) -> SqlType:
    script = Script(text)
    return parse_type(TokenCursor(script, tokenize(script))).type


def planned(expression: str, types: Mapping[str, str], zone: str = "UTC") -> Typed:
    """`expression` over columns of `types`; raises SqlError where a script would."""
    script = Script(expression, zone)
    columns = tuple(ScopeColumn(name, sql_type(text), True) for name, text in types.items())
    scope = NameScope(script, (ScopeRelation("t", "t", columns, "t"),))
    return ExpressionPlanner(scope).plan(
        ExpressionParser(TokenCursor(script, tokenize(script))).parse()
    )


def evaluated(typed: Typed, columns: Mapping[str, pa.Array]) -> Evaluated:
    count = max((len(column) for column in columns.values()), default=1)
    return evaluate_rows(typed.expression, Rows(lambda column: columns[column.name], count, NOW_MS))


def arrays(types: Mapping[str, str], rows: Sequence[Sequence[object]]) -> dict[str, pa.Array]:
    return {
        name: pa.array([row[at] for row in rows], arrow_type(sql_type(text)))
        for at, (name, text) in enumerate(types.items())
    }
