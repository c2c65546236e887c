"""Rules for the arguments of a call: their number, their types, literals."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from joins.kernels.strings.regular import SimilarError, UnknownAnswerError, compiled, matcher
from joins.plan.types import Constant, SqlType, TypeName
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import FunctionCall, Literal, Node
from service.sql.grammar.type_parser import STRING, rounded_type
from service.sql.text.script import Script

if TYPE_CHECKING:
    from service.sql.expressions.expression_planner import ExpressionPlanner


Special = Callable[["ExpressionPlanner", Script, FunctionCall], Typed]


def text_constant(text: str, at: int) -> Typed:
    return Typed(Constant(text, STRING), nullable=False, at=at)


def word_of(node: Node) -> str:
    assert isinstance(node, Literal), "the grammar names it"
    return node.text


def literal_of(value: Typed) -> str | None:
    expression = value.expression
    return expression.value if isinstance(expression, Constant) else None


def round_type(script: Script, name: str, arguments: Sequence[Typed]) -> SqlType:
    """The result of ROUND or TRUNCATE; a DECIMAL takes a literal, as its type has the scale."""
    if len(arguments) == 1:
        return rounded_type(arguments[0].type, 0)
    digits = arguments[1].expression
    if arguments[0].type.name is not TypeName.DECIMAL:
        return arguments[0].type
    if isinstance(digits, Constant) and digits.value is None:
        return rounded_type(arguments[0].type, 0)
    if not isinstance(digits, Constant):
        raise script.error(
            arguments[1].at,
            f"{name} of a DECIMAL takes a literal number of digits",
            hint=f"Write {name}(x, 2).",
        )
    return rounded_type(arguments[0].type, int(digits.value or 0))


def check_literals(script: Script, call: str, arguments: Sequence[Typed]) -> None:
    if call in ("STARTSWITH", "ENDSWITH") and arguments[0].type != arguments[1].type:
        raise script.error(
            arguments[1].at,
            f"{call} takes two texts or two BYTES, not one of each",
            hint="Write CAST(… AS BYTES).",
        )
    text = literal_of(arguments[1]) if call in (*_REGULAR, "SIMILAR") else None
    if text is None:
        return
    hint = (
        "Write it without looking ahead or back, without references to groups, and with (?i) for "
        "ASCII only."
    )
    try:
        if call != "SIMILAR":
            by = compiled(text)
        elif len(arguments) == 2:
            by = matcher(text)
        else:
            escape = literal_of(arguments[2])
            by = True if escape is None else matcher(text, escape)
    except UnknownAnswerError as error:
        raise script.error(
            arguments[1].at, f"RE2 cannot match the regular expression: {error}", hint=hint
        ) from error
    except SimilarError as error:
        raise script.error(
            arguments[1].at,
            "the pattern of SIMILAR TO is not valid",
            hint="Write x SIMILAR TO '(a|b)_%' ESCAPE '!'.",
        ) from error
    if by is None and call in _STRICT:
        raise script.error(
            arguments[1].at,
            f"the regular expression of {call} is not valid",
            hint="Close its groups.",
        )


_STRICT = ("REGEXP_REPLACE", "REGEXP_EXTRACT")
_REGULAR = (
    *_STRICT,
    "REGEXP",
    "REGEXP_EXTRACT_ALL",
    "REGEXP_COUNT",
    "REGEXP_INSTR",
    "REGEXP_SUBSTR",
)


def check_count(script: Script, node: FunctionCall, least: int, most: int) -> None:
    """Refuse a wrong number of arguments; `most` 10,000 means any number."""
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
