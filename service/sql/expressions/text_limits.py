"""Limits on how long functions may make a text: no small record becomes gigabytes."""

from collections.abc import Sequence

from joins.plan.types import Call, Case, Cast, Constant, Expression
from service.sql.expressions.functions import MAX_PADDED_LENGTH, PADDING
from service.sql.expressions.scope import Typed
from service.sql.text.script import Script

MAX_GROWTH = 256
MAX_REPEATED = 1 << 20
_GROWTH_OF_ANY_TEXT = 100


def check_length(script: Script, at: int, call: str, arguments: Sequence[Typed]) -> None:
    """See that the call at `at` has a bound on the length of its result.

    Raises:
        SqlError: its length is no literal, or what it does to a text can make it too long.
    """
    if call in PADDING:
        check_padding(script, arguments[1])
    if call == "REPEAT" and _repeated(*(a.expression for a in arguments)) > MAX_REPEATED:
        raise script.error(
            at,
            f"REPEAT may make a text more than {MAX_REPEATED:,} times as long",
            hint="Repeat it less often, and do not nest what makes a text longer.",
        )
    if call == "REPLACE" and _replaced(*(a.expression for a in arguments)) > MAX_GROWTH:
        raise script.error(
            at,
            f"REPLACE may make a text more than {MAX_GROWTH} times as long",
            hint="Shorten the replacement, and do not nest replacements that make a text longer.",
        )


def check_padding(script: Script, length: Typed) -> None:
    """See that a text is padded to a length that is a literal and not too much.

    Raises:
        SqlError: it is not.
    """
    value, highest = length.expression, MAX_PADDED_LENGTH
    if isinstance(value, Constant) and (value.value is None or int(value.value) <= highest):
        return
    raise script.error(
        length.at,
        f"the length must be a literal up to {highest:,}",
        hint="Write LPAD(text, 10, '0').",
    )


def _growth(expression: Expression) -> float:
    """How many times as long as the texts in it an expression may be."""
    if isinstance(expression, Cast):
        return _growth(expression.operand)
    if isinstance(expression, Case):
        values = [value for _, value in expression.branches]
        if expression.otherwise is not None:
            values.append(expression.otherwise)
        return max(_growth(value) for value in values)
    if not isinstance(expression, Call):
        return 1.0
    if expression.function == "REPLACE":
        return _replaced(*expression.arguments)
    if expression.function == "REPEAT":
        return _repeated(*expression.arguments)
    grown = [_growth(argument) for argument in expression.arguments]
    return sum(grown) if expression.function.startswith("CONCAT") else max(grown, default=1.0)


def _repeated(text: Expression, count: Expression) -> float:
    times = int(count.value or 0) if isinstance(count, Constant) else 1
    return _growth(text) * max(1, times)


def _replaced(text: Expression, old: Expression, new: Expression) -> float:
    added = _GROWTH_OF_ANY_TEXT * _growth(new)
    if isinstance(new, Constant):
        old_length = len(old.value or "") if isinstance(old, Constant) else 1
        added = len(new.value or "") / max(1, old_length)
    return _growth(text) * max(1.0, added)
