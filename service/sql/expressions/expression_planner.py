"""Typed plan expressions from the grammar's: names, functions, casts, NULL."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from joins.plan.types import Constant, SqlType, TypeName
from service.sql.expressions.arguments import Special, check_count, check_literals, round_type
from service.sql.expressions.array_functions import ARRAY_FUNCTIONS
from service.sql.expressions.expression_text import NAMES
from service.sql.expressions.functions import (
    ACCEPTED,
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    REFUSED,
    SAME_AS,
    TO_DOUBLE,
    Function,
    Takes,
)
from service.sql.expressions.json_functions import (
    JSON_FUNCTIONS,
    OTHER_FUNCTIONS,
    check_length,
    check_padding,
)
from service.sql.expressions.nested_access import NESTED, PARTS_HINT, field_of, refuse_nested
from service.sql.expressions.scope import NameScope, Typed
from service.sql.expressions.time_functions import TIME_FUNCTIONS, folded_interval, local, shifted
from service.sql.expressions.typed_values import (
    TypedValues,
    check_nanos,
    retyped_null,
    typed_literal,
)
from service.sql.grammar.expression_nodes import (
    AggregateNode,
    CaseNode,
    CastNode,
    FunctionCall,
    Literal,
    LiteralKind,
    Node,
    Reference,
    RowNumberNode,
    TypeNode,
)
from service.sql.grammar.expression_parser import rank_refused
from service.sql.grammar.type_parser import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INSTANTS,
    INT,
    INTERVALS,
    NUMERIC,
    STRING,
    TEMPORAL,
    arithmetic_type,
    as_decimal,
    is_explicit,
    type_text,
)
from service.sql.text.script import OUTSIDE, Edit, SqlError, suggestion


class ExpressionPlanner(TypedValues):
    """Types expressions over one scope."""

    # reads better deep: who may stand where differs in GROUP BY, in its rows and in its results.
    # reads better long: typed values are made by one set of steps, whoever plans them.

    def __init__(self, scope: NameScope) -> None:
        super().__init__(scope.script)
        self._scope = scope

    def plan(self, node: Node) -> Typed:
        if isinstance(node, Reference):
            return self._reference(node)
        if isinstance(node, Literal):
            return typed_literal(self._script, node)
        if isinstance(node, CastNode):
            return self._explicit_cast(node)
        if isinstance(node, CaseNode):
            return self._case(node)
        if isinstance(node, AggregateNode):
            return self.aggregate(node)
        if isinstance(node, RowNumberNode):
            raise rank_refused(self._script, "ROW_NUMBER", node.at)
        return self._operation(node)

    def _reference(self, node: Reference) -> Typed:
        relation, column, fields = self._scope.located(node)
        typed = self._scope.typed(relation, column, node.at)
        for name in fields:
            typed = field_of(
                self, self._script, typed, Literal(LiteralKind.STRING, name.text, name.at)
            )
        return typed

    def aggregate(self, node: AggregateNode) -> Typed:
        raise self._script.error(
            node.at,
            f"aggregate {node.name} without a window and GROUP BY",
            hint=f"{OUTSIDE} "
            "Write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) … "
            "GROUP BY window_start, window_end; LEAST and GREATEST compare values of one row.",
        )

    def condition(self, node: Node, what: str) -> Typed:
        typed = self.plan(node)
        if typed.is_bare_null:
            return retyped_null(typed, BOOLEAN)
        if typed.type != BOOLEAN:
            raise self._script.error(
                node.at,
                f"{what} is {type_text(typed.type)}, expected BOOLEAN",
                hint="Write a comparison, such as x = 1 or x IS NOT NULL.",
            )
        return typed

    def _explicit_cast(self, node: CastNode) -> Typed:
        operand = self.plan(node.operand)
        target = node.type.type
        if operand.is_bare_null:
            return retyped_null(operand, target)
        if not is_explicit(operand.type, target):
            raise self._script.error(
                node.at,
                f"cannot cast {type_text(operand.type)} to {type_text(target)}",
                hint=PARTS_HINT
                if operand.type.is_nested
                else "Cast to STRING first, or choose another type.",
            )
        value = operand.expression
        if isinstance(value, Constant) and value.value and target.name in INSTANTS:
            check_nanos(self._script, value.value, target, operand.at)
        return self._sized(self.written_cast(operand, target, safe=node.safe), node.type)

    def _sized(self, value: Typed, target: TypeNode) -> Typed:
        """CHAR(n) and BINARY(n) pad and cut, VARCHAR(n) and VARBINARY(n) cut."""
        if target.length is None or target.length == 2**31 - 1:
            return value
        length = Typed(Constant(str(target.length), INT), nullable=False, at=target.at)
        if target.type == BYTES:
            check_padding(self._script, length)
            text = str(target.fixed).lower()
            fixed = Typed(Constant(text, BOOLEAN), nullable=False, at=target.at)
            return self.call("SIZED", (value, length, fixed), BYTES, value.at)
        if not target.fixed:
            return self.call("LEFT", (value, length), STRING, value.at)
        check_padding(self._script, length)
        blank = Typed(Constant(" ", STRING), nullable=False, at=target.at)
        return self.call("RPAD", (value, length, blank), STRING, value.at)

    def _case(self, node: CaseNode) -> Typed:
        conditions: list[Typed] = []
        operand = None if node.operand is None else self.plan(node.operand)
        for when, _ in node.branches:
            if operand is None:
                conditions.append(self.condition(when, "a WHEN condition"))
            else:
                conditions.append(self.comparison("=", operand, self.plan(when), when.at))
        values = [self.plan(value) for _, value in node.branches]
        if node.otherwise is not None:
            values.append(self.plan(node.otherwise))
        return self.searched(conditions, values, node.at)

    def _operation(self, node: FunctionCall) -> Typed:
        if node.name in COMPARISONS:
            left, right = (self.plan(argument) for argument in node.arguments)
            return self.comparison(node.name, left, right, node.at)
        if node.name in ARITHMETIC or node.name == "MOD":
            return self._arithmetic(node)
        rewrite = _REWRITES.get(node.name)
        if rewrite is not None:
            return rewrite(self, node)
        special = _SPECIAL.get(node.name)
        if special is not None:
            return special(self, self._script, node)
        if node.name == "NEG":
            return self._negated(node)
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise self._unknown_function(node)
        return self._function(node, function)

    def _negated(self, node: FunctionCall) -> Typed:
        interval = folded_interval(self._script, node)
        if interval is not None:
            return interval
        value = self.plan(node.arguments[0])
        if value.type.name not in INTERVALS:
            value = self.argument('"-"', value, Takes.NUMBER)
        return self.call("NEG", (value,), value.type, node.at)

    def _unknown_function(self, node: FunctionCall) -> SqlError:
        edit = None
        if node.name in REFUSED:
            message, hint = f"function {node.name} is not supported", REFUSED[node.name]
            same = SAME_AS.get(node.name)
            if same is not None:
                edit = Edit(node.at, node.at + len(node.name), same)
        else:
            message = f'unknown function "{node.name[:100]}"'
            no_code = f"{OUTSIDE} {_NO_CODE}"
            functions = f"{no_code} Functions are {', '.join(NAMES)}."
            is_coded = node.name in self._script.coded_functions
            hint = no_code if is_coded else suggestion(node.name, NAMES, functions)
        return self._script.error(node.at, message, hint=hint, edit=edit)

    def _arithmetic(self, node: FunctionCall) -> Typed:
        check_count(self._script, node, 2, 2)
        interval = folded_interval(self._script, node)
        if interval is not None:
            return interval
        left, right = (self.plan(argument) for argument in node.arguments)
        moved = shifted(self, self._script, node, (left, right))
        if moved is not None:
            return moved
        name = "%" if node.name == "MOD" else node.name
        left, right = self._numbers(node, left, right)
        result = arithmetic_type(name, left.type, right.type)
        if result.name is not TypeName.DECIMAL:
            operands = (self.cast(left, result), self.cast(right, result))
        elif name in ("*", "/"):
            operands = (
                self.cast(left, as_decimal(left.type)),
                self.cast(right, as_decimal(right.type)),
            )
        else:
            operands = tuple(self.common((left, right), node.at, f'"{name}"'))  # type: ignore[assignment]
        typed = self.call(name, operands, result, node.at)
        is_whole = name == "%" and TypeName.DECIMAL not in (left.type.name, right.type.name)
        return self.cast(typed, right.type) if is_whole else typed

    def _numbers(self, node: FunctionCall, left: Typed, right: Typed) -> tuple[Typed, Typed]:
        if left.is_bare_null:
            left = retyped_null(left, INT if right.is_bare_null else right.type)
        if right.is_bare_null:
            right = retyped_null(right, left.type)
        for operand in (left, right):
            if operand.type.name not in NUMERIC:
                hint = "Cast it to a number."
                if operand.type.name in TEMPORAL:
                    hint = "Add an INTERVAL to a time or subtract one; compare times instead."
                if operand.type == STRING and node.name == "+":
                    hint = "Join texts with || or CONCAT, or cast to a number."
                raise self._script.error(
                    operand.at,
                    f'"{node.name}" takes numbers, not {type_text(operand.type)}',
                    hint=hint,
                )
        return left, right

    def _between(self, node: FunctionCall) -> Typed:
        value, low, high = (self.plan(argument) for argument in node.arguments)
        bounds = (
            self.comparison(">=", value, low, node.at),
            self.comparison("<=", value, high, node.at),
        )
        return self.conjunction("AND", bounds, node.at)

    def _between_symmetric(self, node: FunctionCall) -> Typed:
        value, low, high = node.arguments
        both = [
            self._between(replace(node, arguments=(value, *b))) for b in ((low, high), (high, low))
        ]
        return self.conjunction("OR", both, node.at)

    def _if(self, node: FunctionCall) -> Typed:
        check_count(self._script, node, 3, 3)
        condition = self.condition(node.arguments[0], "the condition of IF")
        values = [self.plan(argument) for argument in node.arguments[1:]]
        return self.searched([condition], values, node.at)

    def _nullif(self, node: FunctionCall) -> Typed:
        check_count(self._script, node, 2, 2)
        left, right = (self.plan(argument) for argument in node.arguments)
        refuse_nested(self._script, (left, right), "NULLIF")
        both = self.common((left, right), node.at, "NULLIF")
        typed = replace(self.call("NULLIF", both, both[0].type, node.at), nullable=True)
        return typed if left.is_bare_null else self.cast(typed, left.type)

    def _logic(self, node: FunctionCall) -> Typed:
        what = f'an operand of "{node.name}"'
        parts = [self.condition(argument, what) for argument in node.arguments]
        return self.conjunction(node.name, parts, node.at)

    def _function(self, node: FunctionCall, function: Function) -> Typed:
        most = 10_000 if function.repeats else len(function.takes)
        check_count(self._script, node, len(function.takes) - function.optional, most)
        arguments = [self.plan(argument) for argument in node.arguments]
        if function.common:
            if function.call not in ("COALESCE", "IN"):
                refuse_nested(self._script, arguments, node.name)
            arguments = self.common(arguments, node.at, node.name)
        else:
            arguments = [
                self._fitting(node, argument, function.takes[min(i, len(function.takes) - 1)])
                for i, argument in enumerate(arguments)
            ]
        if function.call in TO_DOUBLE:
            arguments = [self.cast(argument, DOUBLE) for argument in arguments]
        result = function.result([argument.type for argument in arguments])
        if function.call in ("ROUND", "TRUNCATE"):
            result = round_type(self._script, function.call, arguments)
        check_length(self._script, node.at, function.call, arguments)
        check_literals(self._script, function.call, arguments)
        typed = self.call(function.call, arguments, result, node.at)
        return replace(typed, nullable=_result_nullable(function, arguments))

    def _fitting(self, node: FunctionCall, argument: Typed, takes: Takes) -> Typed:
        fitting = self.argument(node.name, argument, takes)
        return local(self, fitting) if takes in _LOCAL else fitting

    def argument(self, name: str, argument: Typed, takes: Takes) -> Typed:
        accepted, expected = ACCEPTED[takes]
        if argument.is_bare_null:
            return retyped_null(argument, _NULL_TYPES.get(takes, STRING))
        if argument.type.name not in accepted:
            hint = "Cast the argument."
            if takes in (Takes.TEXT, Takes.WHOLE):
                hint = f"Write CAST(… AS {expected})."
            raise self._script.error(
                argument.at,
                f"{name} takes {expected}, not {type_text(argument.type)}",
                hint=hint,
            )
        target = _CAST_TO.get(takes)
        return argument if target is None else self.cast(argument, target)


def _result_nullable(function: Function, arguments: Sequence[Typed]) -> bool:
    if function.null_free or function.may_be_null:
        return function.may_be_null
    if function.call == "COALESCE":
        return all(argument.nullable for argument in arguments)
    return any(argument.nullable for argument in arguments)


_CAST_TO = {Takes.WHOLE: INT, Takes.LONG: BIGINT}
_LOCAL = (Takes.CALENDAR, Takes.CLOCK)
_NULL_TYPES = {
    **_CAST_TO,
    Takes.NUMBER: INT,
    Takes.CONDITION: BOOLEAN,
    Takes.BYTES: BYTES,
    Takes.TIME: SqlType(TypeName.TIMESTAMP, 3),
    Takes.CALENDAR: SqlType(TypeName.TIMESTAMP, 3),
    Takes.CLOCK: SqlType(TypeName.TIMESTAMP, 3),
    Takes.MOMENT: SqlType(TypeName.TIMESTAMP, 3),
}
_NO_CODE = "Code cannot be added to a job."
_REWRITES: dict[str, Callable[[ExpressionPlanner, FunctionCall], Typed]] = {
    "AND": ExpressionPlanner._logic,
    "OR": ExpressionPlanner._logic,
    "BETWEEN": ExpressionPlanner._between,
    "IF": ExpressionPlanner._if,
    "NULLIF": ExpressionPlanner._nullif,
    "BETWEEN SYMMETRIC": ExpressionPlanner._between_symmetric,
}
_SPECIAL: dict[str, Special] = {
    **NESTED,
    **ARRAY_FUNCTIONS,
    **TIME_FUNCTIONS,
    **JSON_FUNCTIONS,
    **OTHER_FUNCTIONS,
}
