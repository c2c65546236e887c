"""Lines without decimals that Arrow cannot bear.

Its reader looks a power of ten up that a tiny number asks for, beyond the end of its table: such a
record would end the process, or have a wrong value. `joins.kernels.json.each` reads these.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import is_beyond_scales, mask_of

_DOUBTFUL = r"[eE]-[0-9]{2}|\\u"  # what is escaped may be a number, too
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str)


def has_decimal(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        return True
    return any(has_decimal(kind.field(at).type) for at in range(kind.num_fields))


def with_bearable_decimals(lines: pa.Array, schema: pa.Schema) -> pa.Array:
    """`lines`, one JSON object each or NULL, with NULL where there is such a decimal.

    Args:
        lines: strings, or NULL.
        schema: of the columns that will be read.
    """
    doubtful = mask_of(pc.match_substring_regex(lines, _DOUBTFUL))
    if not doubtful.any():
        return lines
    kind, texts = pa.struct(list(schema)), lines.to_pylist()
    for row in doubtful.nonzero()[0].tolist():
        if not _is_bearable(str(texts[row]), kind):
            texts[row] = None
    return pa.array(texts, pa.string())


def _is_bearable(line: str, kind: pa.DataType) -> bool:
    try:
        return not _has_tiny(_DECODER.decode(line), kind)
    except (ValueError, RecursionError):
        return False


def _has_tiny(value: object, kind: pa.DataType) -> bool:
    """Whether there is a decimal in `value` that is too small."""
    if pa.types.is_decimal(kind) and isinstance(value, str):
        return is_beyond_scales(value, kind)
    if pa.types.is_struct(kind) and isinstance(value, tuple):
        types = {item.name: item.type for item in kind}
        return any(_has_tiny(part, types[name]) for name, part in value if name in types)
    if pa.types.is_list(kind) and isinstance(value, list):
        return any(_has_tiny(part, kind.value_type) for part in value)
    return False
