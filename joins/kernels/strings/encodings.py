"""Bytes as text and back: HEX, BIN, base64, character sets, URLs; digests as hexadecimal digits."""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from urllib.parse import quote_plus

from joins.kernels.expressions.operation import Function, as_bytes, as_text, grown, of_rows

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


_CHARSETS = {
    "US-ASCII": "ascii", "ISO-8859-1": "latin-1", "UTF-8": "utf-8",
    "UTF-16": "utf-16", "UTF-16BE": "utf-16-be", "UTF-16LE": "utf-16-le",
}  # fmt: skip
_ALPHABET = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_URL = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<ref>.*))?",
    re.DOTALL,
)
_PROTOCOLS = frozenset(("http", "https", "ftp", "file", "jar", "mailto"))  # java.net.URL's
_PERCENT = re.compile(r"%(..?)?", re.DOTALL)


def _charset(name: str) -> str:
    charset = _CHARSETS.get(name.upper())
    if charset is None:
        raise ValueError(name)
    return charset


def _encode(text: str, name: str) -> bytes:
    charset = _charset(name)
    if charset == "utf-16":
        return b"\xfe\xff" + text.encode("utf-16-be") if text else b""
    return text.encode(charset, "replace")


def _decode(value: bytes, name: str) -> str:
    charset = _charset(name)
    if charset == "utf-16" and value[:2] not in (b"\xfe\xff", b"\xff\xfe"):
        charset = "utf-16-be"
    return value.decode(charset, "replace")


def _unhex(text: str) -> bytes | None:
    if not re.fullmatch(r"[0-9A-Fa-f]*", text, re.ASCII):
        return None
    return bytes.fromhex(text if len(text) % 2 == 0 else "00" + text[1:])


def _from_base64(value: str | bytes) -> str:
    raw = as_bytes(value)
    whole = raw.rstrip(b"=")
    is_padded_wrongly = len(raw) % 4 != 0 and len(whole) < len(raw)
    if not _ALPHABET.fullmatch(raw) or len(whole) % 4 == 1 or is_padded_wrongly:
        raise ValueError("base64")
    try:
        return as_text(base64.b64decode(whole + b"=" * (-len(whole) % 4)))
    except binascii.Error as error:
        raise ValueError(error) from error


def _url_decode(text: str) -> str | None:
    """Form encoding: `+` is a blank; NULL for an invalid text."""
    pieces: list[bytes] = []
    at = 0
    for match in _PERCENT.finditer(text):
        digits = match[1] or ""
        if not re.fullmatch(r"[0-9A-Fa-f]{2}", digits, re.ASCII):
            return None
        pieces += [text[at : match.start()].replace("+", " ").encode(), bytes.fromhex(digits)]
        at = match.end()
    pieces.append(text[at:].replace("+", " ").encode())
    return b"".join(pieces).decode("utf-8", "replace")


def _url_decode_recursive(text: str, most: int = 10) -> str | None:
    decoded = None
    for _ in range(most):
        following = _url_decode(text if decoded is None else decoded)
        if following is None or following == decoded:
            break
        decoded = following
    return decoded


def _parse_url(url: str, part: str, key: str | None = None) -> str | None:
    match = _URL.fullmatch(url.strip())
    if match is None or match["scheme"].lower() not in _PROTOCOLS:
        return None
    if match["scheme"].lower() == "jar" and "!/" not in match["path"]:
        return None
    if key is not None:
        return _of_query(match["query"], key) if part == "QUERY" else None
    authority = match["authority"] or None
    user, _, place = (authority or "").rpartition("@")
    host = re.sub(r":\d*\Z", "", place)
    if ":" in host and not host.startswith("["):
        return None
    file = match["path"] + (f"?{match['query']}" if match["query"] is not None else "")
    parts = {
        "HOST": host,
        "PATH": match["path"],
        "QUERY": match["query"],
        "REF": match["ref"],
        "PROTOCOL": match["scheme"].lower(),
        "FILE": file,
        "AUTHORITY": authority,
        "USERINFO": user or None,
    }
    return parts.get(part)


def _of_query(query: str | None, key: str) -> str | None:
    for pair in (query or "").split("&"):
        name, equals, value = pair.partition("=")
        if equals and name == key:
            return value
    return None


def _sized(value: bytes, length: int, fixed: bool) -> bytes:
    cut = value[:length]
    return cut.ljust(length, b"\0") if fixed else cut


ENCODINGS: Mapping[str, Function] = {
    "ENCODE": grown(of_rows(_encode), 4),
    "DECODE": grown(of_rows(_decode), 3),
    "HEX": of_rows(lambda number: format(number % 2**64, "X")),
    "HEX_TEXT": grown(of_rows(lambda text: as_bytes(text).hex().upper()), 2),
    "UNHEX": of_rows(_unhex),
    "BIN": of_rows(lambda number: format(number % 2**64, "b")),
    "TO_BASE64": grown(of_rows(lambda value: base64.b64encode(as_bytes(value)).decode()), 2),
    "FROM_BASE64": grown(of_rows(_from_base64), 3),
    "URL_DECODE": grown(of_rows(_url_decode), 3),
    "URL_DECODE_RECURSIVE": grown(of_rows(_url_decode_recursive), 3),
    "URL_ENCODE": grown(of_rows(lambda text: quote_plus(text, safe="*").replace("~", "%7E")), 3),
    "PARSE_URL": of_rows(_parse_url),
    "SIZED": of_rows(_sized),
}
