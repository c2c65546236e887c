"""The server's packed decimals: groups of nine digits in four bytes."""

from collections.abc import Callable

_DECIMAL_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_DECIMAL_GROUP = 9


def decimal_bytes(precision: int, scale: int) -> int:
    """How many bytes a decimal has."""
    return sum(
        digits // _DECIMAL_GROUP * 4 + _DECIMAL_BYTES[digits % _DECIMAL_GROUP]
        for digits in (precision - scale, scale)
    )


def decimal_converter(precision: int, scale: int) -> Callable[[bytes], str]:
    """Reads the bytes of a decimal with so many digits, `scale` of them behind the point."""
    integral = _groups(precision - scale, partial_first=True)
    fraction = _groups(scale, partial_first=False)

    def convert(raw: bytes) -> str:
        negative = not raw[0] & 0x80
        content = bytes([raw[0] ^ 0x80]) + raw[1:]
        if negative:
            content = bytes(byte ^ 0xFF for byte in content)
        at, texts = 0, []
        for size, digits in (*integral, *fraction):
            texts.append(f"{int.from_bytes(content[at : at + size], 'big'):0{digits}d}")
            at += size
        whole = "".join(texts[: len(integral)]).lstrip("0") or "0"
        rest = "".join(texts[len(integral) :])
        return ("-" if negative else "") + whole + (f".{rest}" if rest else "")

    return convert


def _groups(digits: int, *, partial_first: bool) -> list[tuple[int, int]]:
    """(bytes, digits) of each group."""
    whole = [(4, _DECIMAL_GROUP)] * (digits // _DECIMAL_GROUP)
    partial = digits % _DECIMAL_GROUP
    rest = [(_DECIMAL_BYTES[partial], partial)] if partial else []
    return rest + whole if partial_first else whole + rest
