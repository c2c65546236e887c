"""Rows, arrays and maps as text: `(a, b)`, `[a, b]`, `{key=value}`; a NULL part is `NULL`."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from joins.kernels.expressions.casts import Checked, mask_of
from joins.kernels.expressions.nested import parts_of
from joins.plan.types import SqlType, TypeName

Convert = Callable[[pa.Array, SqlType], Checked]


def nested_text(column: pa.Array, kind: SqlType, convert: Convert) -> Checked:
    """The texts of a nested column; `convert` makes those of its parts."""
    parts = parts_of(column, entries=kind.name is TypeName.MAP)
    made = [
        convert(child, member.type)
        for child, member in zip(parts.children, kind.members, strict=True)
    ]
    failed = np.zeros(len(column), dtype=np.bool_)
    for each in made:
        failed |= parts.of_rows(each.failed, len(column))
    texts = [each.values.fill_null("NULL").to_pylist() for each in made]
    missing = mask_of(column.is_null()) | failed
    if parts.lengths is None:
        rows: Sequence[str] = [f"({', '.join(row)})" for row in zip(*texts, strict=True)]
    else:
        rows = _of_spans(parts.starts.tolist(), parts.lengths.tolist(), texts, kind)
    return Checked(pa.array(rows, pa.string(), mask=missing), failed)


def _of_spans(
    starts: list[int], lengths: list[int], texts: list[list[str]], kind: SqlType
) -> list[str]:
    spans = [slice(first, first + count) for first, count in zip(starts, lengths, strict=True)]
    if kind.name is TypeName.ARRAY:
        return [f"[{', '.join(texts[0][span])}]" for span in spans]
    keys, values = texts
    return [
        "{" + ", ".join(f"{k}={v}" for k, v in zip(keys[s], values[s], strict=True)) + "}"
        for s in spans
    ]
