"""DATE_FORMAT: the patterns that give the same text in Arrow as in Flink."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.operation import Operation, Value

_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_PIECE = re.compile(
    r"yyyy|MM|dd|HH|mm|ss|(?P<fraction>S{1,6}(?!S))|'(?P<quoted>[^']*)'|(?P<plain>[^A-Za-z'])"
)


def arrow_pattern(pattern: str) -> list[str | int] | None:
    """A pattern of Java's `DateTimeFormatter` for Arrow, None if it has letters that we do not.

    Letters are `yyyy MM dd HH mm ss` and up to six `S`; other characters stand for themselves,
    letters between single quotes too, and two single quotes are one.

    Returns:
        Patterns of strftime, and between them how many digits of the second's fraction.
    """
    result: list[str | int] = [""]
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return None
        if piece["fraction"] is not None:
            result += [len(piece[0]), ""]
        else:
            result[-1] = f"{result[-1]}{_arrow_piece(piece)}"
        at = piece.end()
    follows_quote = re.search(r"'[^']+''", pattern)
    return None if follows_quote else result


def _arrow_piece(piece: re.Match[str]) -> str:
    if piece[0] in _FIELDS:
        return _FIELDS[piece[0]]
    text = piece["quoted"] if piece["quoted"] is not None else piece["plain"]
    return "'" if piece[0] == "''" else text.replace("%", "%%")


def date_format(op: Operation) -> Value:
    """TIMESTAMP and a literal pattern to text."""
    pattern = op.constant(1)
    assert pattern is not None, "the planner takes literals only"
    parts = arrow_pattern(pattern.as_py())
    assert parts is not None, "the planner takes known letters only"
    values = op.array(0).cast(pa.timestamp("us"))
    seconds = pc.floor_temporal(values, unit="second")
    texts = [
        _fraction(values, seconds, part)
        if isinstance(part, int)
        else pc.strftime(seconds.cast(pa.timestamp("s")), part)
        for part in parts
        if part
    ]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "")


def _fraction(values: pa.Array, seconds: pa.Array, digits: int) -> pa.Array:
    micros = pc.subtract(values, seconds).cast(pa.int64()).cast(pa.string())
    return pc.utf8_slice_codeunits(pc.utf8_lpad(micros, 6, "0"), 0, digits)
