"""An expression of a plan in one line of text."""

from joins.plan.plan import WINDOW
from joins.plan.types import Call, Case, Cast, Column, Constant, Expression, ProcTime, TypeName
from service.sql.grammar.type_rules import TEMPORAL, type_text

_INFIX = frozenset(
    (
        "IS DISTINCT FROM",
        "IS NOT DISTINCT FROM",
        *["+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "LIKE"],
    )
)
_PARTS = frozenset((".", "[]"))
_POSTFIX = frozenset(("IS NULL", "IS NOT NULL"))


def expression_text(expression: Expression) -> str:
    """An expression in one line; a literal shows its type where that is not its usual one."""
    if isinstance(expression, Column):
        if expression.relation in ("", WINDOW):
            return expression.name
        return f"{expression.relation}.{expression.name}"
    if isinstance(expression, Constant):
        return _constant(expression)
    if isinstance(expression, ProcTime):
        return "PROCTIME()"
    if isinstance(expression, Cast):
        name = "TRY_CAST" if expression.safe else "CAST"
        return f"{name}({expression_text(expression.operand)} AS {type_text(expression.type)})"
    if isinstance(expression, Case):
        return _case(expression)
    return _call(expression)


def _constant(constant: Constant) -> str:
    if constant.value is None:
        return f"NULL:{type_text(constant.type)}"
    if constant.type.name is TypeName.STRING:
        return "'" + constant.value.replace("'", "''") + "'"
    if constant.type.name in (TypeName.INT, TypeName.BOOLEAN):
        return constant.value
    return f"{constant.value}:{type_text(constant.type)}"


def _case(case: Case) -> str:
    parts = [
        f"WHEN {expression_text(condition)} THEN {expression_text(value)}"
        for condition, value in case.branches
    ]
    if case.otherwise is not None:
        parts.append(f"ELSE {expression_text(case.otherwise)}")
    return "CASE " + " ".join(parts) + " END"


def _call(call: Call) -> str:
    arguments = [expression_text(argument) for argument in call.arguments]
    if (interval := _interval(call)) is not None:
        return f"({arguments[0]} {interval})"
    if call.function in _INFIX and len(arguments) == 2:
        text = f"({arguments[0]} {call.function} {arguments[1]})"
    elif call.function in _PARTS:
        text = _part(call.function, arguments[0], call.arguments[1], arguments[1])
    elif call.function in ("ARRAY", "MAP"):
        text = f"{call.function}[{', '.join(arguments)}]"
    elif call.function in _POSTFIX:
        text = f"({arguments[0]} {call.function})"
    else:
        text = f"{call.function}({', '.join(arguments)})"
    return f"{text}:{call.type}" if call.type.name is TypeName.DECIMAL else text


def _part(function: str, whole: str, named: Expression, text: str) -> str:
    """A field of a ROW, or an element."""
    if function == "[]":
        return f"{whole}[{text}]"
    assert isinstance(named, Constant), "a field is known when the script is planned"
    return f"{whole}.{named.value}"


def _interval(call: Call) -> str | None:
    """What is added to a time or subtracted from it; None for other calls."""
    size = call.arguments[-1] if call.arguments else None
    if call.type.name not in TEMPORAL or not isinstance(size, Constant) or size.value is None:
        return None
    if call.function == "ADD_MONTHS":
        sign = "-" if size.value.startswith("-") else "+"
        return f"{sign} INTERVAL '{size.value.lstrip('-')}' MONTH"
    if call.function not in ("+", "-"):
        return None
    seconds, rest = divmod(int(size.value), 1_000)
    fraction = f".{rest:03}".rstrip("0") if rest else ""
    return f"{call.function} INTERVAL '{seconds}{fraction}' SECOND"
