"""DATE_FORMAT: the patterns that give the same text in Arrow as in Flink."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.operation import Operation, Value

_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PIECE = re.compile(r"yyyy|MM|dd|HH|mm|ss|'(?P<quoted>[^']*)'|(?P<plain>[^A-Za-z'])")


def arrow_pattern(pattern: str) -> str | None:
    """A pattern of Java's `DateTimeFormatter` for Arrow, None if it has letters that we do not.

    Letters are `yyyy MM dd HH mm ss`; other characters stand for themselves, letters between
    single quotes too, and two single quotes are one.
    """
    result, at = "", 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return None
        text = piece["quoted"] if piece["quoted"] is not None else piece["plain"]
        if text is None:
            result += _FIELDS[piece[0]]
        else:
            result += "'" if piece[0] == "''" else text.replace("%", "%%")
        at = piece.end()
    follows_quote = re.search(r"'[^']+''", pattern)
    return None if follows_quote else result


def date_format(op: Operation) -> Value:
    """TIMESTAMP and a literal pattern to text."""
    pattern = op.constant(1)
    assert pattern is not None, "the planner takes literals only"
    values = pc.floor_temporal(op.array(0).cast(pa.timestamp("us")), unit="second")
    return pc.strftime(values.cast(pa.timestamp("s")), arrow_pattern(pattern.as_py()))
