"""Lines without decimals that Arrow cannot bear.

Its reader looks a power of ten up that a tiny number asks for, beyond the end of its table: such a
record would end the process, or have a wrong value. What is that small is no decimal of any scale.
"""

import json

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import is_beyond_scales, mask_of
from joins.kernels.json.maps import broken

_DOUBTFUL = r"[eE]-[0-9]{2}|\\u"  # what is escaped may be a number, too
_SHOWN_CHARACTERS = 60
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str)


def has_decimal(kind: pa.DataType) -> bool:
    """Whether there is a decimal in a type."""
    if pa.types.is_decimal(kind):
        return True
    return any(has_decimal(kind.field(at).type) for at in range(kind.num_fields))


def with_bearable_decimals(lines: pa.Array, schema: pa.Schema, reasons: dict[int, str]) -> pa.Array:
    """`lines`, one JSON object each or NULL, without those that would have such a decimal.

    Args:
        lines: strings, or NULL.
        schema: of the columns that will be read.
        reasons: gets an entry for each line that is left out, which is NULL then.
    """
    doubtful = mask_of(pc.match_substring_regex(lines, _DOUBTFUL))
    if not doubtful.any():
        return lines
    kind, texts = pa.struct(list(schema)), lines.to_pylist()
    for row in doubtful.nonzero()[0].tolist():
        reason = _reason(str(texts[row]), kind)
        if reason is not None:
            reasons[row], texts[row] = reason, None
    return pa.array(texts, pa.string())


def _reason(line: str, kind: pa.DataType) -> str | None:
    """Why a line cannot be given to the reader; None if it can."""
    try:
        return _first_tiny(_DECODER.decode(line), kind, "")
    except (ValueError, RecursionError) as error:
        return broken(error)


def _first_tiny(value: object, kind: pa.DataType, place: str) -> str | None:
    """What is wrong with the first number in `value` that is too small."""
    if pa.types.is_decimal(kind) and isinstance(value, str) and is_beyond_scales(value, kind):
        expected = f"a DECIMAL({kind.precision}, {kind.scale})"
        return f'field "{place}": "{value[:_SHOWN_CHARACTERS]}" is not {expected}'
    inside: list[tuple[object, pa.DataType, str]] = []
    if pa.types.is_struct(kind) and isinstance(value, tuple):
        types = {item.name: item.type for item in kind}
        inside = [(v, types[n], f"{place}.{n}".lstrip(".")) for n, v in value if n in types]
    elif pa.types.is_list(kind) and isinstance(value, list):
        inside = [(item, kind.value_type, f"{place}[]") for item in value]
    return next(filter(None, (_first_tiny(*each) for each in inside)), None)
