"""What functions ask of their arguments beyond types: their number, and where they are literals."""

from collections.abc import Sequence

from joins.kernels.expressions.date_format import arrow_pattern
from joins.plan.expressions import Constant
from joins.plan.types import SqlType, TypeName
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import FunctionCall
from service.sql.grammar.type_rules import rounded_type
from service.sql.text.script import Script


def round_type(script: Script, arguments: Sequence[Typed]) -> SqlType:
    """The result of ROUND, whose scale is in the type: of a DECIMAL it must be a literal."""
    if len(arguments) == 1:
        return rounded_type(arguments[0].type, 0)
    digits = arguments[1].expression
    if arguments[0].type.name is not TypeName.DECIMAL:
        return arguments[0].type
    if not isinstance(digits, Constant) or digits.value is None:
        raise script.error(
            arguments[1].at,
            "ROUND of a DECIMAL takes a literal number of digits",
            hint="Write ROUND(x, 2).",
        )
    return rounded_type(arguments[0].type, int(digits.value))


def check_literals(script: Script, call: str, arguments: Sequence[Typed]) -> None:
    """See that an argument which must be a literal is one that has a meaning.

    Raises:
        SqlError: it is none.
    """
    if call == "DATE_FORMAT":
        _check_pattern(script, arguments[1])
    elif call == "TO_TIMESTAMP_LTZ" and len(arguments) > 1:
        _check_precision(script, arguments[1])


def _check_precision(script: Script, precision: Typed) -> None:
    value = precision.expression
    if isinstance(value, Constant) and value.value in ("0", "3"):
        return
    raise script.error(
        precision.at,
        "the precision of TO_TIMESTAMP_LTZ must be the literal 0 or 3",
        hint="Write TO_TIMESTAMP_LTZ(x, 3) for milliseconds since 1970, 0 for seconds.",
    )


def _check_pattern(script: Script, pattern: Typed) -> None:
    """See that the pattern of DATE_FORMAT is one that gives the same text as in Flink."""
    value = pattern.expression
    if isinstance(value, Constant) and value.value and arrow_pattern(value.value) is not None:
        return
    raise script.error(
        pattern.at,
        "the pattern of DATE_FORMAT must be a literal of yyyy, MM, dd, HH, mm, ss and SSS",
        hint="Write DATE_FORMAT(x, 'yyyy-MM-dd HH:mm:ss'); other letters go between quotes.",
    )


def check_count(script: Script, node: FunctionCall, least: int, most: int) -> None:
    """See that a function has as many arguments as it takes; 10,000 stands for any number."""
    count = len(node.arguments)
    if least <= count <= most:
        return
    expected = str(least) if least == most else f"{least} to {most}"
    if most == 10_000:
        expected = f"at least {least}"
    raise script.error(
        node.at,
        f"{node.name} takes {expected} arguments, not {count}",
        hint="Add or remove arguments.",
    )
