"""Experiment `foreign-servers`: database servers that others have configured.

Each case is a real server: with options at its start, with other values of its own variables, as a
replica, with a table of another engine. There the source refuses the table, and its hint works when
it is followed, or the table is copied and followed. Then the rows of the changelog topic are those
of `SELECT`; where the source has said why it cannot follow, they are so after another copy.
The source is the product's own CDC session and snapshot reader, without Spark.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pymysql

from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from service.config import Settings
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache
from service.embedded.java import find_java
from service.embedded.process import LOOPBACK, ServerStartError
from service.embedded.server import DatabaseSettings
from tests.reliability.experiment import Lab, result
from tests.reliability.followed import Followed, Rows, as_text
from tests.support.sql import cdc_connection
from tests.support.topics import unique_name
from tests.support.wait import wait_until
from watermark.errors import SluiceError

TABLE = "goods"
_TEXT = SqlType(TypeName.STRING)
_FIELDS = (
    Field("id", SqlType(TypeName.BIGINT)),
    *(Field(name, _TEXT) for name in ("v", "n", "d", "e", "txt")),
    Field("bl", SqlType(TypeName.BYTES)),
    Field("dt", SqlType(TypeName.TIMESTAMP, 3)),
    Field("ts", SqlType(TypeName.TIMESTAMP_LTZ, 3)),
    Field("t", SqlType(TypeName.TIME, 3)),
)
_COLUMNS = (
    "id BIGINT PRIMARY KEY, spare VARCHAR(300), v VARCHAR(50), n INT, d DECIMAL(12,3),"
    " dt DATETIME(3) NULL, ts TIMESTAMP(3) NULL, t TIME(3), e ENUM('a', 'b''c'), bl VARBINARY(9),"
    " txt VARCHAR(50) CHARACTER SET latin1, more DATETIME NULL"
)
# As records have them, by the server's own functions.
_SELECT = (
    "SELECT id, v, n, d, e, txt, TO_BASE64(bl),"
    " CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', dt) AS CHAR),"
    " CONCAT(REPLACE(CAST(ts AS CHAR), ' ', 'T'), 'Z'), CAST(TIME_TO_SEC(t) * 1000000 AS SIGNED)"
    f" FROM {TABLE}"
)
_PLAIN_SESSION = (
    "SET SESSION sql_mode='', time_zone='+00:00', sql_select_limit=DEFAULT,"
    " sql_select_limit=18446744073709551615, system_versioning_asof=DEFAULT, max_statement_time=0"
)
_ROW = (
    "'{v}', {n}, {n} / 8, '2024-02-29 23:59:59.123', '2024-03-31 02:30:00.120', '13:14:15.5',"
    " 'b''c', x'00ff20', 'na\u00efve {n}', NULL"
)
_NAMES = "(id, v, n, d, dt, ts, t, e, bl, txt, more)"


def _row(number: int, text: str) -> str:
    return f"({number}, {_ROW.format(v=text, n=number)})"


_FIRST = "INSERT INTO {t} " + _NAMES + " VALUES " + ", ".join(_row(n, "old") for n in range(1, 10))
_WORK = (
    ("INSERT INTO {t} " + _NAMES + " VALUES " + ", ".join(_row(n, "new") for n in range(10, 60)),),
    ("UPDATE {t} SET v = CONCAT(v, '\u00e9'), dt = NULL WHERE id % 3 = 0",),
    ("DELETE FROM {t} WHERE id IN (2, 12)",),
    ("REPLACE INTO {t} " + _NAMES + " VALUES " + _row(3, "replaced"),),
    ("UPDATE {t} SET id = id + 1000 WHERE id IN (4, 14)",),
    ("INSERT INTO {t} " + _NAMES + " VALUES " + _row(5, "kept") + " ON DUPLICATE KEY UPDATE n=7",),
    (
        "BEGIN",
        "UPDATE {t} SET n = 1 WHERE id = 6",
        "SAVEPOINT s",
        "DELETE FROM {t}",
        "ROLLBACK TO s",
        "COMMIT",
    ),
    ("BEGIN", "DELETE FROM {t} WHERE id > 20", "ROLLBACK"),
    ("UPDATE {t} SET spare = REPEAT('x', 300), ts = '1999-12-31 12:00:00' WHERE id > 40",),
    ("USE elsewhere", "UPDATE {t} SET n = 8 WHERE id = 8"),
    ("ALTER TABLE {t} COMMENT 'worked on'",),
    ("INSERT INTO {t} " + _NAMES + " VALUES " + _row(61, "last"),),
)


@dataclass(frozen=True)
class Case:
    """One server.

    Attributes:
        options: it starts with these.
        values: of its variables, set before the table is made.
        engine: of the table.
        after: statements once the table is there, `{t}` for its name.
        names: how the script writes database and table: a function of the right ones.
        replicates: the rows come from another server, whose replica it is.
        meanwhile: statements that make the source's server another one while it is followed.
        meanwhile_options: it is started again with these while it is followed.
        must_refuse: it has to be refused once.
    """

    name: str
    options: Mapping[str, str | None] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    engine: str = "InnoDB"
    after: Sequence[str] = ()
    names: Callable[[str], str] = str
    replicates: bool = False
    meanwhile: Sequence[str] = ()
    meanwhile_options: Mapping[str, str | None] | None = None
    must_refuse: bool = False


@dataclass
class Tally:
    """What came out; `other` are servers that do not start or do not take their values."""

    cases: int = 0
    followed: int = 0
    copied: int = 0
    refused: int = 0
    other: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)


class Server:
    """A MariaDB that is started again with other options when it has to have them."""

    def __init__(self, lab: Lab, directory: Path, home: Path) -> None:
        self._lab, self._directory, self._home = lab, directory, home
        self._running: MariaDb | None = None
        self.options: dict[str, str | None] = {}

    def start(self, options: Mapping[str, str | None]) -> None:
        """Make it run with these options and no others.

        Raises:
            ServerStartError: it does not start with them.
        """
        if self._running is not None and dict(options) == self.options:
            return
        self.stop()
        database = MariaDb(
            self._directory, self._home, DatabaseSettings(options=options, ready_timeout_s=20)
        )
        database.start()
        self._running, self.options = database, dict(options)

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()
            self._running = None

    @property
    def database(self) -> MariaDb:
        assert self._running is not None
        return self._running

    def run(self, *statements: str, schema: str | None = None) -> list[Any]:
        """Carry statements out in one session, which is as the server makes sessions."""
        with self.database.connect() as connection, connection.cursor() as cursor:
            if schema is not None:
                cursor.execute(f"USE {schema}")
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())


class Place:
    """The servers, the source, and the case that is tried."""

    def __init__(self, lab: Lab, server: Server, primary: Server) -> None:
        self._lab = lab
        self._server, self._primary = server, primary
        self._source = Followed(lab, "foreign-servers", TABLE, _FIELDS)
        self._schema = "elsewhere"
        self._config: MysqlConnectionConfig | None = None
        self.tally = Tally()

    def close(self) -> None:
        self._source.close()

    def try_(self, case: Case) -> None:
        """Try one case, and clear up behind it."""
        try:
            self._server.start(case.options)
            usual = self._set(case.values)
        except (ServerStartError, pymysql.MySQLError) as exc:
            self.tally.other.append(f"{case.name}: {str(exc)[:200]}")
            self._lab.say(f"other: {case.name}: {str(exc)[:200]}")
            return
        self.tally.cases += 1
        try:
            self._judge(case)
        except (TimeoutError, SluiceError, pymysql.MySQLError, AssertionError) as exc:
            hint = getattr(exc, "hint", "")
            self._fail(self.tally.stuck, case, f"{type(exc).__name__}: {exc} {hint}")
        finally:
            self._source.end()
            self._clear(case, usual)

    def _set(self, values: Mapping[str, str]) -> dict[str, str]:
        """Set variables of the server; what they were."""
        usual = {}
        for name, value in values.items():
            ((usual[name],),) = self._server.run(f"SELECT @@GLOBAL.{name}")
            self._server.run(f"SET GLOBAL {name}={value}")
        return usual

    def _clear(self, case: Case, usual: Mapping[str, str]) -> None:
        for name, value in usual.items():
            literal = value if isinstance(value, int | float) else f"'{value}'"
            with contextlib.suppress(pymysql.MySQLError):
                self._server.run(f"SET GLOBAL {name}={literal}")
        if self._server.options != dict(case.options) or case.replicates or case.meanwhile:
            with contextlib.suppress(pymysql.MySQLError):
                self._server.run("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL gtid_slave_pos=''")
        self._server.run("SET sql_mode=''", f"DROP DATABASE IF EXISTS {self._schema}")
        if case.replicates:
            self._primary.run(f"DROP DATABASE IF EXISTS {self._schema}")

    def _fail(self, where: list[str], case: Case, what: str) -> None:
        where.append(f"{case.name}: {what}")
        self._lab.say(f"{'WRONG' if where is self.tally.wrong else 'STUCK'}: {where[-1]}")

    # One case
    # ----------------------------------------------------------------------------------------------

    def _judge(self, case: Case) -> None:
        self._schema = unique_name("srv").replace("-", "_").lower()
        names = case.names(self._schema), case.names(TABLE)
        self._config = cdc_connection(self._server.database, *names)
        self._make(case)
        was_refused = self._start(case)
        self._source.wait_until_it_follows()
        self._become_another(case)
        self._work(case)
        self._require_replicated(case)
        error = self._settled()
        if error is not None:
            if not (error["message"] and error["hint"]):
                raise AssertionError(f"an error without a hint: {error}")
            self._source.end()
            self._start(case)
            error = self._settled()
            if error is not None:
                raise AssertionError(f"copied again, and then {error}")
            self.tally.copied += 1
        if self._source.rows() != self._rows():
            mine, theirs = self._source.rows(), self._rows()
            other = {k: (mine.get(k), theirs.get(k)) for k in mine.keys() | theirs.keys()}
            shown = [f"{k}: {m} for {t}" for k, (m, t) in sorted(other.items()) if m != t][:2]
            self._fail(self.tally.wrong, case, f"{shown}")
        elif case.must_refuse and not was_refused and error is None and not case.meanwhile:
            self._fail(self.tally.wrong, case, "it was not refused")
        else:
            self.tally.followed += 1

    def _make(self, case: Case) -> None:
        """The table with its first rows, on the server that they come from."""
        name = f"{self._schema}.{TABLE}"
        made = self._primary if case.replicates else self._server
        if case.replicates:
            self._replicate()
        merged = case.engine == "MRG_MyISAM"
        parts = (f"CREATE TABLE part ({_COLUMNS}) ENGINE=MyISAM",) if merged else ()
        options = " UNION=(part) INSERT_METHOD=LAST" if merged else ""
        made.run(
            "CREATE DATABASE IF NOT EXISTS elsewhere",
            f"CREATE DATABASE {self._schema}",
            f"USE {self._schema}",
            *parts,
            f"CREATE TABLE {TABLE} ({_COLUMNS}) ENGINE={case.engine}{options}",
            "SET sql_mode='', time_zone='+00:00'",
            _FIRST.format(t=name),
            *(one.format(t=name) for one in case.after),
        )
        self._require_replicated(case)

    def _replicate(self) -> None:
        primary = self._primary.database
        ((file, place, *_),) = self._primary.run("SHOW MASTER STATUS")
        self._server.run(
            f"CHANGE MASTER TO MASTER_HOST='{LOOPBACK}', MASTER_PORT={primary.port},"
            f" MASTER_USER='{primary.cdc_user}', MASTER_PASSWORD='{primary.cdc_password}',"
            f" MASTER_USE_GTID=no, MASTER_LOG_FILE='{file}', MASTER_LOG_POS={place}, MASTER_SSL=0",
            "START SLAVE",
        )

    def _require_replicated(self, case: Case) -> None:
        if case.replicates:
            expected = self._rows(self._primary)
            wait_until(lambda: self._rows() == expected, deadline_s=30, what="the replica's rows")

    def _start(self, case: Case) -> bool:
        """Start the source; hints are followed until it starts. Whether there were any."""
        refusals: list[str] = []
        while True:
            assert self._config is not None
            try:
                self._source.start(self._config)
            except SourceUnavailableError as exc:
                raise AssertionError(f"not reached: {exc}") from exc
            except SourceError as exc:
                if exc.message in refusals or not self._follow(exc.hint):
                    raise
                refusals.append(exc.message)
                continue
            self.tally.refused += bool(refusals)
            return bool(refusals)

    def _settled(self) -> dict[str, Any] | None:
        assert self._config is not None
        return self._source.settled(self._config)

    def _become_another(self, case: Case) -> None:
        if case.meanwhile:
            self._server.run(*(one.format(t=f"{self._schema}.{TABLE}") for one in case.meanwhile))
        if case.meanwhile_options is not None:
            self._server.start(case.meanwhile_options)

    def _work(self, case: Case) -> None:
        """What applications do, each in sessions as the server makes them."""
        made = self._primary if case.replicates else self._server
        for statements in _WORK:
            with contextlib.suppress(pymysql.MySQLError):  # a mode may refuse one
                made.run(
                    *(one.format(t=f"{self._schema}.{TABLE}") for one in statements),
                    schema=self._schema,
                )

    def _rows(self, server: Server | None = None) -> Rows:
        """The rows of the server."""
        with (
            (server or self._server).database.connect() as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(_PLAIN_SESSION)
            try:
                cursor.execute(f"USE {self._schema}")
                cursor.execute(_SELECT)
            except pymysql.MySQLError:
                if server is None:
                    return {}
                raise
            found = cursor.fetchall()
        names = [one.name for one in _FIELDS]
        return as_text({(row[0],): dict(zip(names, row, strict=True)) for row in found})

    # Hints
    # ----------------------------------------------------------------------------------------------

    def _follow(self, hint: str) -> bool:
        """Do what the first way of a hint says that can be gone here; whether there is one."""
        assert self._config is not None
        user = f"{self._server.database.cdc_user}@'{LOOPBACK}'"
        steps = (
            (r"Run (SET GLOBAL [^,]+),", lambda m: self._server.run(m[1])),
            (r"Run (GRANT .+? ON .+? TO) that user", lambda m: self._server.run(f"{m[1]} {user}")),
            (r"(ALTER TABLE .+? (ENGINE=\w+|FORCE))\.", lambda m: self._server.run(m[1])),
            (r"Start the server without --([\w-]+)", lambda m: self._restart(m[1], is_on=False)),
            (r"Start the server with --([\w-]+)", lambda m: self._restart(m[1], is_on=True)),
            (r"'database-name' = '(.+)' and 'table-name' = '(.+)'", self._rename),
        )
        for way in hint.split(", or "):
            found = [(re.search(pattern, way), follow) for pattern, follow in steps]
            for match, follow in found:
                if match is not None:
                    self._lab.say(f"  followed: {match[0]}")
                    follow(match)
            if any(match for match, _ in found):
                return True
        return False

    def _restart(self, option: str, *, is_on: bool) -> None:
        others = {f"skip-{option}", option}
        options = {k: v for k, v in self._server.options.items() if k not in others}
        self._server.start(
            {**options, option: "binlog" if option == "log-bin" else "ON"} if is_on else options
        )

    def _rename(self, names: "re.Match[str]") -> None:
        assert self._config is not None
        self._config = replace(self._config, database=names[1], table=names[2])


# The servers
# --------------------------------------------------------------------------------------------------

_STARTED = (
    Case("as it comes"),
    Case("log everywhere else", {"log-bin": "elsewhere.of-logs"}),
    Case("no binlog", {"skip-log-bin": None}, must_refuse=True),
    Case("one database logged", {"binlog-do-db": "shop"}, must_refuse=True),
    Case("one database not logged", {"binlog-ignore-db": "shop"}, must_refuse=True),
    Case("names without case", {"lower-case-table-names": "1"}),
    Case(
        "names in upper case",
        {"lower-case-table-names": "1"},
        names=str.upper,
        must_refuse=True,
    ),
    Case("replica that logs", {"log-slave-updates": "ON"}, replicates=True),
    Case("replica that does not log", replicates=True, must_refuse=True),
    Case(
        "replica with triggers of its own",
        {"log-slave-updates": "ON", "slave-run-triggers-for-rbr": "YES"},
        replicates=True,
        must_refuse=True,
    ),
    Case("old temporal formats", {"mysql56-temporal-format": "OFF"}),
    Case("small row events", {"binlog-row-event-max-size": "256"}),
    Case("client's character set ignored", {"skip-character-set-client-handshake": None}),
    Case(
        "latin1 everywhere",
        {"character-set-server": "latin1", "character-set-filesystem": "latin1"},
    ),
    Case("sjis everywhere", {"character-set-server": "sjis"}),
    Case("utf16 everywhere", {"character-set-server": "utf16"}),
    Case(
        "sessions set up by the server",
        {"init-connect": "SET sql_mode='ANSI_QUOTES', sql_select_limit=1, time_zone='+09:00'"},
    ),
    Case("another engine by default", {"default-storage-engine": "Aria"}),
    Case("another domain", {"gtid-domain-id": "7", "server-id": "4294967295"}),
    Case("messages in another language", {"lc-messages": "ru_RU", "lc-time-names": "ja_JP"}),
    Case("encrypted binlog", {"encrypt-binlog": "ON"}),
    Case(
        "no checksums, no annotations",
        {"binlog-checksum": "NONE", "skip-binlog-annotate-row-events": None},
    ),
    Case("many small files", {"max-binlog-size": "4096"}),
    Case("a filter comes with a restart", meanwhile_options={"binlog-ignore-db": "shop"}),
    Case("two restarts", meanwhile_options={"binlog-checksum": "NONE"}),
)
_ENGINES = tuple(
    Case(f"engine {name}", engine=name, must_refuse=name not in ("InnoDB", "MyISAM", "Aria"))
    for name in ("InnoDB", "MyISAM", "Aria", "MEMORY", "MRG_MyISAM")
)
_MEANWHILE = (
    Case("another engine meanwhile", meanwhile=("ALTER TABLE {t} ENGINE=MEMORY",)),
    Case("minimal images meanwhile", meanwhile=("SET GLOBAL binlog_row_image=MINIMAL",)),
    Case("no metadata meanwhile", meanwhile=("SET GLOBAL binlog_row_metadata=NO_LOG",)),
    Case("statements meanwhile", meanwhile=("SET GLOBAL binlog_format=STATEMENT",)),
    Case("compression meanwhile", meanwhile=("SET GLOBAL log_bin_compress=ON",)),
    Case(
        "a replica meanwhile",
        meanwhile=(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='nobody'",
            "START SLAVE SQL_THREAD",
            "FLUSH BINARY LOGS",
        ),
    ),
)
# Those of which the server says what values they take, and whose names tell that they are about
# what is logged, read or compared; at full scale all of them.
_DRAWN = re.compile(
    r"binlog_|log_bin|mysql56|sql_mode|old_mode|transaction_isolation|sql_select|sql_quote|_case_"
)
_NOT_DRAWN = re.compile(
    r"^(read_only|event_scheduler|innodb_|wsrep_|general_log|.*rpl_semi|table_lock"
    r"|flush$|autocommit|completion_type|secure_auth|performance|aria_|server_audit"
    r"|require_secure_transport"  # the server here has no TLS
    r"|transaction_read_only|tx_read_only)"  # no statement of ours could write
)
_VALUES = {
    "sql_select_limit": ("1",),
    "time_zone": ("'+12:45'", "'-11:30'", "SYSTEM"),
    "system_versioning_asof": ("'2020-01-01 00:00:00'",),
    "max_statement_time": ("0.4",),
    "group_concat_max_len": ("4",),
    "div_precision_increment": ("0",),
    "default_week_format": ("3",),
    "lc_time_names": ("'ar_AE'",),
    "binlog_cache_size": ("4096",),
    "character_set_server": ("'ucs2'",),
    "collation_server": ("'utf8mb4_turkish_ci'",),
    "collation_connection": ("'utf8mb4_bin'",),
    "character_set_client": ("'latin1'",),
    "character_set_results": ("'latin1'",),
}


def drawn(lab: Lab, server: Server) -> Iterator[Case]:
    """Other values of the server's own variables, by what it says that they take."""
    found = server.run(
        "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, VARIABLE_TYPE, ENUM_VALUE_LIST"
        " FROM information_schema.SYSTEM_VARIABLES WHERE READ_ONLY='NO'"
        " AND VARIABLE_SCOPE <> 'SESSION ONLY' AND ENUM_VALUE_LIST IS NOT NULL ORDER BY 1"
    )
    for name, value, kind, listed in found:
        if _NOT_DRAWN.match(name) or not (lab.full or _DRAWN.search(name)):
            continue
        values = [one for one in str(listed).split(",") if one != value]
        if kind in ("SET", "FLAGSET") and not lab.full:
            values = lab.random(name).sample(values, min(6, len(values)))
        for one in values:
            if kind == "FLAGSET":
                one = f"{one}=on"
            if one != "MAXDB":  # it makes another table of our statement: TIMESTAMP is DATETIME
                yield Case(f"{name}={one}", values={name: f"'{one}'"})
    for name, values in _VALUES.items():
        for value in values:
            yield Case(f"{name}={value}", values={name: value})


def cases(lab: Lab, server: Server) -> list[Case]:
    """All servers, those with equal options one after the other; at small scale some are drawn."""
    values, first = [*drawn(lab, server)], [*_ENGINES, *_MEANWHILE, *_STARTED]
    if not lab.full:
        values = lab.random("values").sample(values, lab.cases(20, 0))
    return sorted([*values, *first], key=lambda case: sorted(map(str, case.options.items())))


def run(lab: Lab) -> dict[str, Any]:
    """Every server."""
    logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)  # warns of what we handle
    settings = Settings.load()
    home = JarCache(settings.cache_dir, find_java(settings.cache_dir)).database_home()
    server = Server(lab, lab.place("server"), home)
    primary = Server(lab, lab.place("primary"), home)
    try:
        server.start({})
        primary.start({"server-id": "2", "gtid-domain-id": "2"})
        chosen = cases(lab, server)
        lab.say(f"{len(chosen)} servers")
        with contextlib.closing(Place(lab, server, primary)) as place:
            for case in chosen:
                lab.say(case.name)
                place.try_(case)
    finally:
        server.stop()
        primary.stop()
    told = place.tally
    return result(
        lab,
        "foreign-servers",
        told.cases,
        told.followed,
        (),
        refused=told.refused,
        copied=told.copied,
        other=len(told.other),
        wrong=len(told.wrong),
        stuck=len(told.stuck),
        faults=[*told.wrong, *told.stuck],
        ok=not told.wrong and not told.stuck and told.cases >= 25,
    )
