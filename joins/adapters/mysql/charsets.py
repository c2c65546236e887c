"""Character sets as the server converts them to Unicode.

The server converts a copied row, this module the same row of the binlog. Python's codecs differ
from the server's tables (sjis 0x815F, half of euckr, unassigned codes) and lack nine of its sets.
So the server converts every byte sequence of a column's character set to UTF-8 once: up to 50,000
in a dozen statements, tenths of a second on MariaDB and seconds on MySQL. Unicode's own encodings
and gb18030 stay codecs.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from pymysql.connections import Connection

from joins.adapters.mysql.connection import MysqlConnectionConfig, connected, rows
from joins.plan.errors import SourceError

Decode = Callable[[bytes], str]

NO_CHARACTER = "\ufffd"
_UNMAPPED = "?"  # the server's answer for bytes without a character in Unicode
_LINE = b"\n"  # never a part of a longer sequence
_ASKED_AT_ONCE = 4_096
_COLUMNS_AT_ONCE = 500
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAME = re.compile(r"\w+", re.ASCII)
# Only in ujis and eucjpms, characters of three bytes begin with these.
_LONG_LEADS = (0x8E, 0x8F)
_LEADS = range(0x80, 0x100)
_MOST_BYTES = 3


class CharacterTable:
    """A character set: byte sequence → character, `?` where Unicode lacks it."""

    def __init__(self, characters: Mapping[bytes, str]) -> None:
        self.characters = {
            sequence: character
            for sequence, character in characters.items()
            if not any(sequence[:size] in characters for size in range(1, len(sequence)))
        }
        self._lengths = [1] * 256
        for sequence in self.characters:
            lead = sequence[0]
            self._lengths[lead] = max(self._lengths[lead], len(sequence))
        self._is_ascii = all(characters.get(bytes([byte])) == chr(byte) for byte in range(128))

    def text(self, raw: bytes) -> str:
        """Converted like the server: bytes that begin no character become `?`."""
        if self._is_ascii and raw.isascii():
            return raw.decode("ascii")
        texts, at = [], 0
        while at < len(raw):
            size = self._lengths[raw[at]]
            while size > 1 and raw[at : at + size] not in self.characters:
                size -= 1
            texts.append(self.characters.get(raw[at : at + size], _UNMAPPED))
            at += size
        return "".join(texts)


class Charsets:
    """Character sets and collations of one server; conversion tables are read on first use."""

    def __init__(self, config: MysqlConnectionConfig, collations: Mapping[int, str]) -> None:
        self._config = config
        self._tables: dict[str, CharacterTable] = {}
        self.collations = collations

    def decoder(self, charset: str) -> Decode:
        """The decoder, equal to the server's conversion; SourceUnavailableError, SourceError."""
        if charset in _BY_CODEC:
            return _BY_CODEC[charset]
        if charset not in self._tables:
            with connected(self._config) as connection:
                self._tables[charset] = character_table(connection, charset)
        return self._tables[charset].text


def server_charsets(config: MysqlConnectionConfig) -> Charsets:
    with connected(config) as connection:
        pairs = rows(connection, "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS")
        table = "COLLATION_CHARACTER_SET_APPLICABILITY"
        has_id = rows(
            connection,
            "SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema'"
            " AND TABLE_NAME = %s AND COLUMN_NAME = 'ID'",
            table,
        )
        if has_id:  # MariaDB has the numbers here for collations of several character sets
            pairs += rows(
                connection, f"SELECT ID, CHARACTER_SET_NAME FROM information_schema.{table}"
            )
    known = {int(number): str(name) for number, name in pairs if number is not None and name}
    return Charsets(config, known)


def is_readable(charset: str, most_bytes: int) -> bool:
    """True if a character set with at most so many bytes per character is supported."""
    return charset in _BY_CODEC or most_bytes <= _MOST_BYTES


def character_table(connection: "Connection[Any]", charset: str) -> CharacterTable:
    most = rows(
        connection,
        "SELECT MAXLEN FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME = %s",
        charset,
    )
    if not most or not _NAME.fullmatch(charset) or not is_readable(charset, int(most[0][0])):
        raise SourceError(
            f'a column has character set "{charset}", whose characters the server does not tell',
            hint="Convert the column to utf8mb4.",
        )
    characters = {_LINE: "\n"}
    sequences = _candidates(int(most[0][0]))
    while part := list(islice(sequences, _ASKED_AT_ONCE)):
        characters.update(_characters(connection, charset, part))
    return CharacterTable(characters)


def _candidates(most_bytes: int) -> Iterator[bytes]:
    no_lines = [byte for byte in range(256) if byte != _LINE[0]]
    yield from (bytes([byte]) for byte in no_lines)
    if most_bytes > 1:
        yield from map(bytes, product(_LEADS, no_lines))
    if most_bytes == _MOST_BYTES:
        yield from map(bytes, product(_LONG_LEADS, _LEADS, _LEADS))


def _characters(
    connection: "Connection[Any]", charset: str, sequences: Sequence[bytes]
) -> Iterator[tuple[bytes, str]]:
    joined = _LINE.join(sequences)
    kept, texts = _converted(connection, charset, [joined])[0]
    alike = () if kept is None or texts is None else (kept.split(_LINE), texts.split(_LINE))
    if not alike or {len(part) for part in alike} != {len(sequences)}:
        # MySQL returns nothing for a text with an invalid part
        pairs = [
            pair
            for at in range(0, len(sequences), _COLUMNS_AT_ONCE)
            for pair in _converted(connection, charset, sequences[at : at + _COLUMNS_AT_ONCE])
        ]
    else:
        pairs = list(zip(*alike, strict=True))
    for sequence, (same, text) in zip(sequences, pairs, strict=True):
        if same == sequence and text:  # MySQL converts half a character of eucjpms to nothing
            yield sequence, utf8_text(text)


def _converted(
    connection: "Connection[Any]", charset: str, texts: Sequence[bytes]
) -> list[tuple[bytes | None, bytes | None]]:
    selected = [
        f"HEX({text})"
        for one in texts
        for as_text in (f"CONVERT(x'{one.hex()}' USING {charset})",)
        for text in (as_text, f"CONVERT({as_text} USING utf8mb4)")
    ]
    values = rows(connection, f"SELECT {', '.join(selected)}")[0]
    results = [None if value is None else bytes.fromhex(str(value)) for value in values]
    return list(zip(results[::2], results[1::2], strict=True))


# Unicode
# --------------------------------------------------------------------------------------------------


def utf8_text(raw: bytes) -> str:
    """Text of UTF-8; MariaDB also stores surrogates, which become U+FFFD."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _SURROGATE.sub(NO_CHARACTER, raw.decode("utf-8", "surrogatepass"))


def _ucs2(raw: bytes) -> str:
    units = struct.unpack(f">{len(raw) // 2}H", raw)
    return _SURROGATE.sub(NO_CHARACTER, "".join(map(chr, units)))


def _utf32(raw: bytes) -> str:
    return _SURROGATE.sub(NO_CHARACTER, raw.decode("utf-32-be", "surrogatepass"))


# MySQL uses the edition of 2005, Python that of 2000.
_OF_2005 = {0xE7C7: 0x1E3F, 0x1E3F: 0xE7C7}
_BY_CODEC: dict[str, Decode] = {
    **dict.fromkeys(("utf8mb4", "utf8mb3", "utf8"), utf8_text),
    "ucs2": _ucs2,
    "utf16": lambda raw: raw.decode("utf-16-be"),
    "utf16le": lambda raw: raw.decode("utf-16-le"),
    "utf32": _utf32,
    "gb18030": lambda raw: raw.decode("gb18030").translate(_OF_2005),  # 1.6 million characters
}
