"""Rows of tables as others declare them: the same from the copy, the binlog and `SELECT`, or not.

Types, character sets and row images are what the server itself says that it has.
"""

import base64
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pymysql

from joins.adapters.mysql.chunks import Chunk, read_chunk
from joins.adapters.mysql.events.transactions import Boundary, RowImages
from joins.adapters.mysql.position import BinlogMark, take_high
from joins.adapters.mysql.row_images import Row, wire_rows
from joins.adapters.mysql.source import check_source, choose_server_id, require_followed
from joins.adapters.mysql.stream import BinlogStream, StreamStart
from joins.adapters.mysql.table import CapturedTable, ServerColumn, accepts
from joins.adapters.mysql.tokens import Statement
from joins.kernels.json.wire import Encoding
from joins.plan.errors import SnapshotNeededError, SourceError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from service.embedded.database import MariaDb
from tests.support.sql import cdc_connection, run_sql

Rows = dict[int, Any]
_MEMBERS = r"'a','b c','it''s','a\\b','new\nline','é'"
_FORMS = (
    *("{}", "{}(1)", "{}(6)", "{}(30)", "{}(300)", "{}(9,4)", "{} UNSIGNED", "{} ZEROFILL"),
    *(f"{{}}({_MEMBERS})", "{} COMPRESSED", "{}(300) COMPRESSED"),
)
_WORDS = (
    "SELECT WORD FROM information_schema.KEYWORDS"
    " UNION SELECT name FROM mysql.help_topic"
    " UNION SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'DATA TYPE'"
)
VALUES = (
    *("NULL", "DEFAULT(v)", "''", "' a '", r"'a\\b'", r"'\n\t\0\'\"/'", "'é€😀'", "'a,it''s'"),
    *("0", "1", "-1", "5", "127", "128", "-128", "255", "32767", "65535", "8388607", "-8388608"),
    *("2147483647", "-2147483648", "4294967295", "9223372036854775807", "18446744073709551615"),
    *("-9223372036854775808", "0.1", "-0.0", "1e-7", "1e22", "3.4028234e38", "1.17549435e-38"),
    *("16777217", "1.7976931348623157e308", "99999.9999", "-0.05", "b'1000000001'", "1901", "2155"),
    *("'0000-00-00'", "'2024-00-10'", "'1000-01-01'", "'9999-12-31 23:59:59.999999'"),
    *("'1970-01-01 00:00:00.5'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999999'"),
    *("'2024-02-29 12:34:56.789012'", "'-838:59:59.999999'", "'838:59:59'", "'-00:00:00.000001'"),
    *("x'00'", "x'FF00FF00'", "x'EDA080'", "x'6100'", "REPEAT('é', 300)", "REPEAT(x'FF', 300)"),
    *("'::1'", "'255.1.2.3'", "'123e4567-e89b-12d3-a456-426614174000'", "POINT(1, 2)"),
    *(r"""'{"a": [1, 2.50, "é\\n"], "b": null, "c": 1e-7}'""", "'[]'", "'null'"),
)
_DECLARED = (
    *(SqlType(TypeName.BOOLEAN), SqlType(TypeName.BIGINT), SqlType(TypeName.DOUBLE)),
    *(SqlType(TypeName.STRING), SqlType(TypeName.BYTES), SqlType(TypeName.DATE)),
    *(SqlType(TypeName.TIME, 6), SqlType(TypeName.TIMESTAMP, 6)),
)
_INT = SqlType(TypeName.BIGINT)
_SURROGATE = re.compile("[\ud800-\udfff]")
_EPOCH = date(1970, 1, 1)
_EPOCH_TIME = datetime.fromisoformat("1970-01-01")


def server_types(mariadb: MariaDb, schema: str) -> list[str]:
    """A way to declare each type that the server has, found by its own words."""
    found: dict[str, str] = {}
    with mariadb.connect(schema) as connection, connection.cursor() as cursor:
        cursor.execute(_WORDS)
        words = sorted({str(word) for (word,) in cursor.fetchall() if str(word).isidentifier()})
        for word in words:
            for form in _FORMS:
                kind = form.format(word)
                with contextlib.suppress(pymysql.MySQLError):
                    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE typed (v {kind} NULL)")
                    cursor.execute("SHOW COLUMNS FROM typed")
                    found.setdefault(str((cursor.fetchone() or ("", ""))[1]), kind)
    return list(found.values())


def row_images(mariadb: MariaDb) -> list[str]:
    found = run_sql(
        mariadb,
        "SELECT ENUM_VALUE_LIST FROM information_schema.SYSTEM_VARIABLES"
        " WHERE VARIABLE_NAME = 'binlog_row_image'",
    )
    return str(found[0][0]).split(",")


def character_sets(mariadb: MariaDb) -> list[tuple[str, int]]:
    """Each character set, and of how many bytes its characters are at the most."""
    found = run_sql(
        mariadb, "SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS"
    )
    return [(str(name), int(most)) for name, most in found]


@dataclass(frozen=True)
class Outcome:
    """What came of following a table.

    Attributes:
        rows: by `id`, as the source has them; None if it says why not.
        why: what it says.
        hint: what it says to do.
        statements: that were carried out in between.
    """

    rows: Rows | None
    why: str = ""
    hint: str = ""
    statements: int = 0


class Watched:
    """A table `t(id, v, …)` of which `id` and `v` are captured, from where it is made on."""

    def __init__(self, mariadb: MariaDb, schema: str, *, name: str = "t") -> None:
        self.config = cdc_connection(mariadb, schema, name)
        self._mariadb, self._schema, self._name = mariadb, schema, name

    def captured(self) -> CapturedTable:
        """The table with `v` declared as its type allows.

        Raises:
            SourceError: it cannot be captured.
        """
        column = self._server_column()
        kinds = [kind for kind in _DECLARED if accepts(column, kind)]
        if column.encoding is Encoding.TIMESTAMP:
            kinds = [SqlType(TypeName.TIMESTAMP_LTZ, 6)]
        fields = (Field("id", _INT), Field("v", (kinds or [SqlType(TypeName.STRING)])[0]))
        return check_source(self.config, fields, ("id",))

    def _server_column(self) -> ServerColumn:
        found = run_sql(
            self._mariadb,
            "SELECT DATA_TYPE, COLUMN_TYPE, IFNULL(NUMERIC_PRECISION, 0), IFNULL(NUMERIC_SCALE, 0),"
            " CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'v'"
            f" AND TABLE_SCHEMA = '{self._schema}' AND TABLE_NAME = '{self._name}'",
        )
        return ServerColumn("v", *found[0])

    def low(self) -> BinlogMark:
        return take_high(self.config, 0)

    def copied(self, table: CapturedTable) -> Rows:
        """The rows of the copy."""
        found: Rows = {}
        for batch in read_chunk(self.config, table, Chunk(None, None)):
            ids, values = (batch.column(name).to_pylist() for name in ("id", "v"))
            found.update(zip(ids, map(_plain, values), strict=True))
        return found

    def followed(self, table: CapturedTable, low: BinlogMark, before: Rows) -> Outcome:
        """The rows of a copy at `low`, `before`, with what the binlog has had since."""
        high, held, statements = take_high(self.config, 0), dict(before), 0
        start = StreamStart(choose_server_id(self.config), low.file_name, low.position.pos)
        stream = BinlogStream(self.config, table, start)
        try:
            for event in stream.events():
                if isinstance(event, Statement):
                    statements += 1
                    require_followed(event, self.config, table)
                elif isinstance(event, RowImages):
                    _apply(held, event.changes(), table)
                elif isinstance(event, Boundary) and (event.file, event.pos) >= (
                    high.position.file,
                    high.position.pos,
                ):
                    break
        except (SnapshotNeededError, SourceError) as exc:
            return Outcome(None, exc.message, exc.hint, statements)
        finally:
            stream.close()
        return Outcome(held, statements=statements)

    def selected(self, table: CapturedTable) -> Rows:
        """The rows as a plain `SELECT` has them."""
        column = table.columns[1]
        expression, convert = _asked(column.captured.encoding, column.server.data_type)
        found = run_sql(
            self._mariadb,
            "SET SESSION sql_mode='', time_zone='+00:00'",
            f"SELECT id, {expression} FROM {self._name}",
            schema=self._schema,
        )
        return {int(key): None if value is None else convert(value) for key, value in found}


def _apply(
    held: Rows, changes: Sequence[tuple[Row | None, Row | None]], table: CapturedTable
) -> None:
    for before, after in changes:
        if before is not None:
            held.pop(before[0], None)
        if after is not None:
            wire = wire_rows([after], table)
            held[wire.column("id")[0].as_py()] = _plain(wire.column("v")[0].as_py())


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _asked(encoding: Encoding, data_type: str) -> tuple[str, Any]:
    """What to select, and how its value is written in records, as plainly as can be."""
    if encoding is Encoding.STRING:
        return "HEX(CONVERT(v USING utf8mb4))", _text_of_hex
    if encoding is Encoding.BYTES:
        if data_type == "bit":
            return "v", lambda value: base64.b64encode(value[::-1]).decode()
        return "HEX(v)", lambda value: base64.b64encode(bytes.fromhex(value)).decode()
    if encoding is Encoding.BOOLEAN:
        return "v + 0", bool
    if encoding in (Encoding.INTEGER, Encoding.UNSIGNED):
        return "v + 0", int
    if encoding in (Encoding.FLOAT, Encoding.DOUBLE):
        return "v * 1e0", float
    if encoding is Encoding.DECIMAL:
        return "CAST(v AS CHAR)", _decimal
    if encoding is Encoding.TIME:
        return "CAST(v AS CHAR)", _time_us
    if encoding is Encoding.DATE:
        return "CAST(v AS CHAR)", lambda text: _days(text)
    if encoding is Encoding.DATETIME:
        return "CAST(v AS CHAR)", _datetime_us
    assert encoding is Encoding.TIMESTAMP
    return "CAST(v AS CHAR)", lambda t: None if t.startswith("0000") else t.replace(" ", "T") + "Z"


def _decimal(text: str) -> str:
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, point, rest = digits.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{point}{rest}"


def _text_of_hex(value: str) -> str:
    text = bytes.fromhex(value).decode("utf-8", "surrogatepass")
    return _SURROGATE.sub("\ufffd", text)


def _days(text: str) -> int | None:
    try:
        return (date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        return None


def _datetime_us(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment - _EPOCH_TIME) // timedelta(microseconds=1)


def _time_us(text: str) -> int:
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    micros = ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000
    micros += int(fraction.ljust(6, "0") or 0)
    return -micros if text.startswith("-") else micros


def insert_each(mariadb: MariaDb, schema: str, statements: Sequence[str]) -> None:
    """Carry out each statement that the server takes, in a lenient session."""
    with mariadb.connect(schema) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode='', time_zone='+00:00'")
        connection.begin()
        for statement in statements:
            with contextlib.suppress(pymysql.MySQLError):
                cursor.execute(statement)
        connection.commit()


def texts_of(charset: str, most_bytes: int) -> Iterator[str]:
    """Literals that together have every code point, and every sequence that may be a character."""
    points = [point for point in range(1, 0x10000) if not 0xD800 <= point < 0xE000]
    for part in (points, range(0x1F300, 0x1F700)):
        for at in range(0, len(part), 256):
            text = "".join(map(chr, part[at : at + 256])).encode("utf-8").hex()
            yield f"CONVERT(_utf8mb4 x'{text}' USING {charset})"
    for byte in range(256):
        yield f"x'{byte:02x}'"
    if most_bytes > 1 and not charset.startswith("u"):
        for lead in range(0x80, 256):
            for tail in range(0, 256, 64):
                pairs = (f"{lead:02x}{byte:02x}" for byte in range(tail, tail + 64))
                yield (
                    "CONCAT("
                    + ", ".join(f"CONVERT(x'{pair}' USING {charset})" for pair in pairs)
                    + ")"
                )
    yield from (f"x'{raw}'" for raw in ("eda080", "d800", "d83dde00", "0000d800", "8f5f", "815f"))
