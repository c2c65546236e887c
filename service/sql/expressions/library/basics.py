"""Logic, tests for NULL, and choices."""

from service.sql.expressions.library.function import Function, Takes, first, fixed
from service.sql.grammar.type_rules import BOOLEAN

_C, _A = Takes.CONDITION, Takes.ANYTHING
BASICS: dict[str, Function] = {
    "AND": Function((_C, _C), fixed(BOOLEAN), "AND", repeats=True),
    "OR": Function((_C, _C), fixed(BOOLEAN), "OR", repeats=True),
    "NOT": Function((_C,), fixed(BOOLEAN), "NOT"),
    "IS NULL": Function((_A,), fixed(BOOLEAN), "IS NULL", null_free=True),
    "IS NOT NULL": Function((_A,), fixed(BOOLEAN), "IS NOT NULL", null_free=True),
    **{
        f"IS {negated}{word}": Function(
            (_C,), fixed(BOOLEAN), f"IS {negated}{word}", null_free=True
        )
        for negated in ("", "NOT ")
        for word in ("TRUE", "FALSE")
    },
    "IS UNKNOWN": Function((_C,), fixed(BOOLEAN), "IS NULL", null_free=True),
    "IS NOT UNKNOWN": Function((_C,), fixed(BOOLEAN), "IS NOT NULL", null_free=True),
    "IN": Function((_A, _A), fixed(BOOLEAN), "IN", repeats=True, common=True),
    "COALESCE": Function((_A,), first, "COALESCE", repeats=True, common=True),
    "IFNULL": Function((_A, _A), first, "COALESCE", common=True),
    "GREATEST": Function((_A,), first, "GREATEST", repeats=True, common=True),
    "LEAST": Function((_A,), first, "LEAST", repeats=True, common=True),
}
