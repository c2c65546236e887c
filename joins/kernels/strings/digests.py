"""Digests of text and bytes as hexadecimal digits."""

import hashlib
from collections.abc import Mapping

from joins.kernels.expressions.operation import Function, of_rows
from joins.kernels.strings.rows import as_bytes

_BITS = (224, 256, 384, 512)


def _digest(name: str) -> Function:
    def of_row(value: str | bytes) -> str:
        return hashlib.new(name, as_bytes(value), usedforsecurity=False).hexdigest()

    return of_rows(of_row)


def _sha2(value: str | bytes, bits: int) -> str:
    if bits not in _BITS:
        raise ValueError(bits)
    return hashlib.new(f"sha{bits}", as_bytes(value), usedforsecurity=False).hexdigest()


DIGESTS: Mapping[str, Function] = {
    "MD5": _digest("md5"),
    "SHA1": _digest("sha1"),
    **{f"SHA{bits}": _digest(f"sha{bits}") for bits in _BITS},
    "SHA2": of_rows(_sha2),
}
