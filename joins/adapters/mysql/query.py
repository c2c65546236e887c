"""Statements in the binlog as their sessions had them: text, character set and modes.

python-mysql-replication gives up at status variables that it does not know, such as MariaDB 11's,
and decodes every statement as UTF-8.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pymysqlreplication import constants, event
from pymysqlreplication.exceptions import StatusVariableMismatch
from pymysqlreplication.packet import BinLogPacketWrapper

from joins.adapters.mysql.tokens import UNDECODED, Modes

_Foreign = Any  # objects of python-mysql-replication, which have no types
_FIXED_BYTES = 13  # before the status variables
# Sessions have no other ones. Of a statement only words and names are read; `rows` of a table that
# it changes are read by the server's own tables.
_CODECS = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ascii": "ascii",
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "big5": "big5",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "euckr": "euc_kr",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
}
_CHARACTER_SET_COLLATIONS = 131  # of MariaDB: how many, and four bytes each


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that the binlog has as text: DDL, or a change that was not logged as rows.

    Attributes:
        schema: its default database, empty for none.
        text: U+FFFD stands for what could not be decoded; it is in front if nothing is sure.
        modes: of its session.
    """

    schema: str
    text: str
    modes: Modes


class QueryEvent(event.QueryEvent):  # type: ignore[misc] # has no types
    """A statement, also with status variables that are not known.

    Attributes:
        is_whole: whether all of them are.
    """

    is_whole = True
    _end: int | None = None

    def _read_status_vars_value_for_key(self, key: int) -> None:
        if self._end is None:
            self._end = self.packet.read_bytes - 1 + self.status_vars_length
        if key == _CHARACTER_SET_COLLATIONS:
            self.packet.advance(4 * self.packet.read_uint8())
            return
        try:
            super()._read_status_vars_value_for_key(key)
        except StatusVariableMismatch:  # how long its value is, only the server knows
            self.is_whole = False
            self.packet.advance(self._end - self.packet.read_bytes)


# The library makes what this mapping says of each event, and has no other way to be told.
BinLogPacketWrapper._BinLogPacketWrapper__event_map[constants.QUERY_EVENT] = QueryEvent


def query_statement(query_event: _Foreign, charsets: Mapping[int, str]) -> Statement:
    """The statement of a query event.

    Args:
        query_event: the event.
        charsets: character set by collation number, as the server has them.
    """
    fixed: int = query_event._declared_post_header_len(_FIXED_BYTES)
    length = (
        query_event.event_size
        - fixed
        - query_event.status_vars_length
        - query_event.schema_length
        - 1
    )
    packet = query_event.packet.packet  # the text is what was read of it last
    text = bytes(packet._data[packet._position - length : packet._position])
    number = getattr(query_event, "character_set_client", None)
    charset = "utf8mb4" if number is None else charsets.get(int(number), "")
    sql = decoded(text, charset)
    # its modes and character set may be others
    mark = "" if query_event.is_whole else f"{UNDECODED} "
    modes = Modes.of(getattr(query_event, "sql_mode", 0))
    return Statement(query_event.schema.decode("utf-8", "replace"), mark + sql.strip(), modes)


def load_statement(load_event: _Foreign) -> Statement:
    """The statement of a LOAD DATA that was not logged as rows."""
    rest = load_event.packet.read(load_event.event_size - load_event.packet.read_bytes)
    rest = rest[load_event.status_vars_length :]
    schema, text = rest[: load_event.schema_length], rest[load_event.schema_length + 1 :]
    return Statement(schema.decode("utf-8", "replace"), decoded(text, "utf8mb4"), Modes())


def decoded(text: bytes, charset: str) -> str:
    """A statement in `charset`; in UTF-8 a byte that is none hides no other character."""
    with contextlib.suppress(UnicodeDecodeError):
        return text.decode(_CODECS.get(charset, "ascii"))
    is_utf8 = _CODECS.get(charset) == "utf-8"
    return text.decode("utf-8", "replace") if is_utf8 else f"{UNDECODED} {text.decode('latin1')}"
