"""Results of windows as rows of the sink: HAVING and the plan's output, over the windows' relation.

A changed row that HAVING no longer lets through is deleted, one that it did not let through before
is new. A row whose expression fails is a dead letter and counts as not let through: it has no
record, so the letter's value is the row itself, as JSON.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from joins.kernels.changelog.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.kernels.json.exact import row_texts
from joins.kernels.windows.firing import Fired
from joins.kernels.windows.spec import WindowSpec
from joins.plan.types import Column, Expression, arrow_type


@dataclass(frozen=True, slots=True)
class Projected:
    """Rows for the sink, in the order in which windows fired.

    Attributes:
        rows: the plan's output columns.
        kinds: int8, Flink's RowKind byte of each row.
        watermarks: int64, the operator's watermark that came before each row, milliseconds.
        dead: `[reason: string, value: binary]`, rows of the windows' relation that failed.
    """

    rows: pa.RecordBatch
    kinds: pa.Array
    watermarks: pa.Array
    dead: pa.RecordBatch


def project(spec: WindowSpec, fired: Fired, proctime_ms: int) -> Projected:
    """What the sink gets of `fired`."""
    run = _Projection(fired.rows, proctime_ms, {})
    passes = np.ones(fired.rows.num_rows, dtype=np.bool_)
    if spec.having is not None:
        passes = mask_of(run.evaluate(spec.having))
    columns = []
    for item in spec.output:
        values = run.evaluate(item.expression, passes)
        if not item.nullable:
            reason = f'column "{item.name}" of the sink is NOT NULL and would be NULL'
            run.fail(np.flatnonzero(mask_of(values.is_null()) & passes), reason)
        columns.append(values)
    passes[list(run.failed)] = False
    kinds, keep = _kinds(np.asarray(fired.kinds), passes, retracts=spec.retracts)
    schema = pa.schema(
        [
            pa.field(item.name, arrow_type(item.expression.type), nullable=item.nullable)
            for item in spec.output
        ]
    )
    mask = pa.array(keep)
    rows = pa.RecordBatch.from_arrays([item.filter(mask) for item in columns], schema=schema)
    return Projected(rows, pa.array(kinds[keep]), fired.watermarks.filter(mask), run.dead(fired))


@dataclass(frozen=True, slots=True)
class _Projection:
    rows: pa.RecordBatch
    proctime_ms: int
    failed: dict[int, str]

    def evaluate(self, expression: Expression, where: Mask | None = None) -> pa.Array:
        """The values; failures count in the rows of `where`."""
        result = evaluate_rows(
            expression, Scope(self._resolve, self.rows.num_rows, self.proctime_ms)
        )
        for row, reason in result.errors.items():
            if where is None or where[row]:
                self.failed.setdefault(row, reason)
        return result.values

    def fail(self, rows: np.ndarray, reason: str) -> None:
        for row in rows:
            self.failed.setdefault(int(row), reason)

    def dead(self, fired: Fired) -> pa.RecordBatch:
        """New rows that failed; an old one failed when it was new."""
        kinds = fired.kinds.to_numpy()
        at = [row for row in sorted(self.failed) if kinds[row] in {INSERT, UPDATE_AFTER}]
        texts = row_texts(self.rows.take(pa.array(at, pa.int64())))
        reasons = pa.array([self.failed[row] for row in at], pa.string())
        return pa.RecordBatch.from_arrays(
            [reasons, texts.cast(pa.binary())], names=["reason", "value"]
        )

    def _resolve(self, column: Column) -> pa.Array:
        return self.rows.column(column.name)


def _kinds(kinds: np.ndarray, passes: Mask, *, retracts: bool) -> tuple[np.ndarray, Mask]:
    """The kinds after HAVING, and the rows that are left: a -U stands right before its +U."""
    changed, keep = kinds.copy(), passes.copy()
    after = np.flatnonzero(kinds == UPDATE_AFTER)
    paired = after[(after > 0) & (kinds[after - 1] == UPDATE_BEFORE)]
    before = paired - 1
    changed[paired[passes[paired] & ~passes[before]]] = INSERT
    gone = before[passes[before] & ~passes[paired]]
    changed[gone] = DELETE
    if not retracts:
        keep &= changed != UPDATE_BEFORE
    return changed, keep
