"""The one evaluator of plan expressions: columns in, a column out, and the rows that failed.

An expression never raises for data. All rows are computed, but a failure counts only where SQL
would compute the value: in the taken branch of CASE, while AND and OR are open, in COALESCE until a
value is found.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import (
    CastRules,
    Checked,
    Mask,
    cast,
    mask_of,
    null_where,
    sound,
)
from joins.kernels.expressions.conversion import constant, convert
from joins.kernels.expressions.functions import FUNCTIONS as _EAGER
from joins.kernels.expressions.operation import (
    MAX_COLUMN_BYTES,
    MAX_VALUE_BYTES,
    Function,
    Operation,
    Value,
    broadcast,
)
from joins.kernels.expressions.time_casts import cut_fraction
from joins.plan.errors import ExpressionError
from joins.plan.types import (
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Expression,
    ProcTime,
    SqlType,
    arrow_type,
)

_REASON_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Isolated:
    """A computed column; `reasons` explains the rows for which the kernel has raised."""

    values: pa.Array
    failed: Mask
    reasons: dict[int, str] = field(default_factory=dict)


def isolated(compute: Callable[[int, int], Checked], count: int, to: pa.DataType) -> Isolated:
    """`compute(0, count)`, bisected around failing rows; raises ExpressionError, MemoryError."""
    pieces: list[Checked] = []
    reasons: dict[int, str] = {}
    pending = [(0, count)]
    while pending:
        first, stop = pending.pop()
        try:
            pieces.append(compute(first, stop))
        except (ExpressionError, MemoryError):
            raise
        except Exception as error:
            if stop - first > 1:
                middle = (first + stop) // 2
                pending += [(middle, stop), (first, middle)]
                continue
            failed = np.ones(stop - first, dtype=np.bool_)
            pieces.append(Checked(pa.nulls(stop - first, to), failed))
            reasons[first] = f"{type(error).__name__}: {error}".split("\n")[0][:_REASON_CHARACTERS]
    if len(pieces) == 1:
        return Isolated(pieces[0].values, pieces[0].failed, reasons)
    values = pa.concat_arrays([piece.values for piece in pieces])
    return Isolated(values, np.concatenate([piece.failed for piece in pieces]), reasons)


_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Scope:
    """Columns of an expression, and the batch's time in epoch milliseconds."""

    resolve: Callable[[Column], pa.Array]
    num_rows: int
    proctime_ms: int


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One value a row; `errors` has the reason for each row that failed, which is NULL."""

    values: pa.Array
    errors: dict[int, str]


def evaluate_rows(expression: Expression, scope: Scope) -> Evaluated:
    """The value and failure of each row; raises ExpressionError only for a wrong expression."""
    run = _Evaluation(scope)
    values = broadcast(
        run.value(expression, np.ones(scope.num_rows, dtype=np.bool_)), scope.num_rows
    )
    if run.errors:
        failed = np.zeros(scope.num_rows, dtype=np.bool_)
        failed[list(run.errors)] = True
        values = null_where(values, failed)
    return Evaluated(values, run.errors)


def evaluate(
    expression: Expression,
    resolve: Callable[[Column], pa.Array],
    num_rows: int,
    proctime_ms: int,
) -> pa.Array:
    """The values of `expression`; raises ExpressionError if it is wrong or any row fails."""
    result = evaluate_rows(expression, Scope(resolve, num_rows, proctime_ms))
    for row, reason in result.errors.items():
        raise ExpressionError(
            f"row {row}: {reason}", hint="Use TRY_CAST or CASE for values that may be unfit."
        )
    return result.values


@dataclass(frozen=True, slots=True)
class _Evaluation:
    scope: Scope
    errors: dict[int, str] = field(default_factory=dict)

    def value(self, node: Expression, active: Mask) -> Value:
        """The value of `node`; its failures count in the rows of `active`."""
        if isinstance(node, Column):
            return self.scope.resolve(node)
        if isinstance(node, Constant):
            return _constant(node)
        if isinstance(node, ProcTime):
            micros = pa.array([self.scope.proctime_ms * 1000], pa.timestamp("us"))
            return cast(cut_fraction(micros, node.type), arrow_type(node.type))[0]
        if isinstance(node, Cast):
            return self._cast(node, active)
        if isinstance(node, Case):
            return self._case(node, active)
        lazy = _LAZY.get(node.function)
        if lazy is not None:
            return lazy(self, node, active)
        return self._call(node, active)

    def _cast(self, node: Cast, active: Mask) -> Value:
        operand = self.value(node.operand, active)
        source = node.operand.type
        if source == node.type:
            return operand
        single = isinstance(operand, pa.Scalar)
        column = broadcast(operand, 1)
        rules = CastRules(node.wraps, node.zone)
        checked = isolated(
            lambda first, stop: convert(
                column.slice(first, stop - first), source, node.type, rules
            ),
            len(column),
            arrow_type(node.type),
        )
        if not node.safe and checked.failed.any():
            self._fail_casts(node, column, checked, active)
        return checked.values[0] if single else checked.values

    def _fail_casts(self, node: Cast, column: pa.Array, result: Isolated, active: Mask) -> None:
        for row in np.flatnonzero(result.failed & active):
            at = int(row) if len(column) == len(active) else 0
            shown = _shown(column[at])[:_SHOWN_CHARACTERS]
            raised = result.reasons.get(at)
            reason = f'cannot cast "{shown}" to {node.type}' + (f": {raised}" if raised else "")
            self.errors.setdefault(int(row), reason)

    def _case(self, node: Case, active: Mask) -> Value:
        remaining = active
        taken: list[tuple[Mask, Value]] = []
        for condition, then in node.branches:
            true = mask_of(broadcast(self.value(condition, remaining), self.scope.num_rows))
            taken.append((true, self._typed(self.value(then, remaining & true), node.type)))
            remaining = remaining & ~true
        result: Value = pa.scalar(None, arrow_type(node.type))
        if node.otherwise is not None:
            result = self._typed(self.value(node.otherwise, remaining), node.type)
        for true, value in reversed(taken):
            result = pc.if_else(pa.array(true), value, result)
        return result

    def _call(self, node: Call, active: Mask) -> Value:
        function = _EAGER.get(node.function)
        if function is None:
            raise ExpressionError(
                f'function "{node.function}" is not known',
                hint=f"Use one of {', '.join(sorted(FUNCTIONS))}.",
            )
        arguments = tuple(self.value(argument, active) for argument in node.arguments)
        types = tuple(argument.type for argument in node.arguments)
        single = all(isinstance(argument, pa.Scalar) for argument in arguments)
        if single:
            arguments = tuple(broadcast(item, 1) for item in arguments)
        count = 1 if single else self.scope.num_rows
        operation = Operation(arguments, types, node.type, count)
        result = isolated(
            lambda first, stop: self._computed(function, operation.part(first, stop)),
            count,
            arrow_type(node.type),
        )
        for row in np.flatnonzero(result.failed & active):
            reason = result.reasons.get(int(row) if count > 1 else 0)
            self.errors.setdefault(int(row), _failure(node, reason))
        return result.values[0] if single else result.values

    def _computed(self, function: Function, operation: Operation) -> Checked:
        result = function(operation)
        if not isinstance(result, Checked):
            result = sound(broadcast(result, operation.num_rows))
        return Checked(self._typed(result.values, operation.result), result.failed)

    def _typed(self, value: Value, kind: SqlType) -> Value:
        to = arrow_type(kind)
        return value if value.type.equals(to) else cast(value, to, safe=False)

    def connective(self, node: Call, active: Mask) -> Value:
        """AND and OR: the right side counts where the left one leaves the answer open."""
        combine = pc.and_kleene if node.function == "AND" else pc.or_kleene
        result = self.value(node.arguments[0], active)
        for argument in node.arguments[1:]:
            whole = broadcast(result, self.scope.num_rows)
            settled = mask_of(pc.invert(whole) if node.function == "AND" else whole)
            result = combine(whole, self.value(argument, active & ~settled))
        return result

    def coalesce(self, node: Call, active: Mask) -> Value:
        """The first value that is not NULL; later arguments count where all before are NULL."""
        result: Value = pa.scalar(None, arrow_type(node.type))
        for argument in node.arguments:
            open_rows = active & mask_of(pc.is_null(broadcast(result, self.scope.num_rows)))
            result = pc.coalesce(result, self._typed(self.value(argument, open_rows), node.type))
        return result


def _constant(node: Constant) -> pa.Scalar:
    checked = constant(node.value, node.type)
    if checked.failed.any():
        raise ExpressionError(
            f'constant "{node.value}" is not a {node.type}',
            hint="Write the constant in the form that CAST from STRING reads.",
        )
    return checked.values[0]


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value.as_py())
    except (ValueError, OverflowError):
        return str(value.type)


def _failure(node: Call, reason: str | None) -> str:
    if reason is not None:
        return f'"{node.function}": {reason}'
    if node.function in _LIMITED:
        other = "a key is NULL, or " if node.function == "MAP" else ""
        return (
            f'"{node.function}": {other}the result has more than {MAX_VALUE_BYTES >> 20} MiB, '
            f"or those of its batch more than {MAX_COLUMN_BYTES >> 20} MiB"
        )
    if node.function in {"/", "%", "MOD"}:
        return f'"{node.function}": division by zero or a result that does not fit {node.type}'
    return f'"{node.function}": the result does not fit {node.type}, or an argument is unfit'


_LIMITED = frozenset(
    (
        *("||", "CONCAT", "CONCAT_WS", "REPLACE", "LPAD", "RPAD", "ARRAY_JOIN", "ROW", "ARRAY"),
        *("MAP", "REPEAT", "OVERLAY", "TRANSLATE", "INITCAP", "ELT", "SPLIT", "PRINTF"),
        *("HEX_TEXT", "TO_BASE64", "URL_ENCODE", "REGEXP_REPLACE", "REGEXP_EXTRACT_ALL"),
        *("ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_CONCAT", "ARRAY_UNION", "MAP_UNION"),
        *("JSON_STRING", "JSON_OBJECT", "JSON_ARRAY", "JSON_QUOTE"),
    )
)
_LAZY: Mapping[str, Callable[[_Evaluation, Call, Mask], Value]] = {
    "AND": _Evaluation.connective,
    "OR": _Evaluation.connective,
    "COALESCE": _Evaluation.coalesce,
}

FUNCTIONS: frozenset[str] = frozenset(_EAGER) | frozenset(_LAZY)
