"""A grammar of what other people do to a captured table: statements, and how they are written.

A template is words with spaces between them; a word behind `?` may be left out. `{t}` is the
captured table, `{o}` another one, `{odd}` one whose name looks like a comment, `{s}` their schema
and `{e}` another one.
"""

import re
from dataclasses import dataclass

from hypothesis import strategies as st

TABLE, OTHER, ODD = "items", "carts", "x -- y /* #"
_NAMES = {"{t}": TABLE, "{o}": OTHER, "{odd}": ODD}
_WORD = re.compile(r"(?:'[^']*'|[^\s'])+")
_KEYWORD = re.compile(r"[A-Z_]{2,}")
_GAPS = (
    "\n",
    "\t ",
    " /**/ ",
    "/* it's `odd */",
    "/* TRUNCATE carts */ ",
    " -- why `not'\n",
    " # 'tis a \" note\n",
    " --\n",
    "/*! */",
    " /*!50000 */",
)
_RUN_EVERYWHERE = ("/*! ", "/*!40000 ", "/*!50000 ", "/*!50699\n")
_RUN_SOMEWHERE = ("/*!100100 ", "/*M! ", "/*M!100100 ", "/*M!100100\n")
_OPENED = _RUN_EVERYWHERE + _RUN_SOMEWHERE
_IN_SCHEMA = re.compile(
    r"\b(?:moved|third|child|pp|tr|ev|sq|seen|emptying|items)\b|\{s\}|IF NOT EXISTS \{t\}"
)
_PREFIXES = (
    "SET STATEMENT max_statement_time=60 FOR ",
    "set statement lock_wait_timeout = 9, max_statement_time=(30 + 30) for\n",
    "SET STATEMENT max_statement_time=60 FOR SET STATEMENT lock_wait_timeout=50 FOR ",
)


@dataclass(frozen=True)
class Deed:
    """What somebody does in a session of his own: `before`, a statement, `after`."""

    template: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


_BY_STATEMENT = ("SET SESSION binlog_format=STATEMENT",)


def _deeds(*found: str | Deed) -> tuple[Deed, ...]:
    return tuple(Deed(one) if isinstance(one, str) else one for one in found)


def _logged_as_statements(*templates: str) -> tuple[Deed, ...]:
    return tuple(Deed(template, before=_BY_STATEMENT) for template in templates)


_MIXED = ("BEGIN", "SAVEPOINT s", "INSERT INTO plain VALUES (1)")
_UNDONE = ("CREATE TEMPORARY TABLE kept (id INT)", "ROLLBACK")
# One statement, after which the rows are others or may be.
CONCERNING = _deeds(
    "TRUNCATE ?TABLE {t}",
    "TRUNCATE ?TABLE {t} NOWAIT",
    "RENAME TABLE {t} TO moved",
    "RENAME TABLES {t} TO moved , {o} TO {t}",
    "RENAME TABLE IF EXISTS {o} WAIT 3 TO third , {t} TO {o} , third TO {t}",
    "DROP TABLE {t}",
    "DROP TABLES IF EXISTS {o} , {t}",
    "DROP TABLE {odd} , {t}",
    "CREATE OR REPLACE TABLE {t} (id BIGINT PRIMARY KEY, v VARCHAR(50), n INT)",
    "CREATE OR REPLACE TABLE {t} LIKE {o}",
    "CREATE OR REPLACE TABLE {t} AS SELECT id , v , n FROM {o}",
    "CREATE OR REPLACE SEQUENCE {t}",
    "DROP DATABASE {s}",
    "DROP SCHEMA IF EXISTS {s}",
    "CREATE OR REPLACE DATABASE {s}",
    "ALTER TABLE {t} DROP COLUMN n , ADD COLUMN n INT DEFAULT 7",
    "ALTER TABLE {t} DROP n",
    "ALTER TABLE {t} RENAME COLUMN v TO w , ADD COLUMN v VARCHAR(50)",
    "ALTER TABLE {t} CHANGE n n DECIMAL(9,1)",
    "ALTER TABLE {t} MODIFY COLUMN v CHAR(9)",
    "ALTER TABLE {t} RENAME ?TO moved",
    "ALTER TABLE {t} CONVERT TO CHARACTER SET latin1",
    "ALTER TABLE {t} MODIFY n INT ZEROFILL",
    "ALTER TABLE {t} COMMENT='odd' ENGINE=Aria",
    "ALTER TABLE {t} ADD SYSTEM VERSIONING",
    "ALTER IGNORE TABLE {t} ADD UNIQUE (n)",
    "ALTER ONLINE TABLE IF EXISTS {t} WAIT 5 DROP COLUMN n",
    "REPAIR TABLE {t}",
    "SET STATEMENT sql_mode='' FOR ALTER TABLE {t} MODIFY v VARCHAR(2)",
    "CALL emptying()",
    "EXECUTE IMMEDIATE 'TRUNCATE TABLE items'",
    Deed("ALTER TABLE {t} MODIFY v VARCHAR(2)", before=("SET SESSION sql_mode=''",)),
    Deed(  # spaces at the end go with a note only
        "ALTER TABLE {t} MODIFY v VARCHAR(2)",
        before=("ALTER TABLE items MODIFY v LONGTEXT", "UPDATE items SET v = 'v  '"),
    ),
    "ALTER TABLE {t} MODIFY v TINYTEXT",
    *_logged_as_statements(
        "UPDATE {t} SET v = 'unlogged'",
        "DELETE FROM {t}",
        "ANALYZE DELETE FROM {t} WHERE id > 3",
        "REPLACE INTO {t} (id, v) VALUES (1, 'unlogged')",
        "UPDATE seen SET v = 'through a view'",
        "SELECT emptied()",
        "INSERT INTO {o} (id, n) VALUES (77, emptied())",
        "CREATE TABLE third AS SELECT emptied() AS n",
        "INSERT INTO watched VALUES (5)",
    ),
)
# Rows that are in the binlog, and undone.
UNDONE = (
    Deed("INSERT INTO {t} (id, v) VALUES (501, 'undone')", before=_MIXED, after=_UNDONE),
    Deed("DELETE FROM {t}", before=_MIXED, after=("ROLLBACK TO s", "COMMIT")),
    Deed(
        "UPDATE {t} SET v = 'undone'",
        before=("BEGIN", "INSERT INTO plain VALUES (2)", "SAVEPOINT s"),
        after=("INSERT INTO plain VALUES (3)", "ROLLBACK TO s", "COMMIT"),
    ),
)
# Daily work, after which nothing is copied again.
ROUTINE = _deeds(
    "ANALYZE TABLE {t}",
    "ANALYZE LOCAL TABLE {t} , {o}",
    "ANALYZE TABLE {t} PERSISTENT FOR ALL",
    "OPTIMIZE TABLE {t}",
    "OPTIMIZE NO_WRITE_TO_BINLOG TABLES {o} , {t}",
    "CHECK TABLE {t}",
    "FLUSH TABLES {t}",
    "FLUSH PRIVILEGES",
    "GRANT SELECT ON {t} TO cdc@'127.0.0.1'",
    "GRANT UPDATE (v) , INSERT ON {t} TO cdc@'127.0.0.1'",
    "CREATE USER IF NOT EXISTS items@'127.0.0.1' IDENTIFIED BY 'x'",
    "DROP USER IF EXISTS items@'127.0.0.1'",
    "CREATE INDEX added ON {t} (n)",
    "CREATE UNIQUE INDEX IF NOT EXISTS added ON {t} (id, n) COMMENT 'x'",
    "DROP INDEX by_n ON {t}",
    "ALTER TABLE {t} ADD INDEX added (v, n) , DROP KEY by_n",
    "ALTER TABLE {t} ADD COLUMN IF NOT EXISTS x INT DEFAULT 3 AFTER id",
    "ALTER TABLE {t} ADD x VARCHAR(9) DEFAULT 'n, v' , ADD ?COLUMN y INT",
    "ALTER TABLE {t} DROP COLUMN spare",
    "ALTER TABLE {t} RENAME COLUMN spare TO other_spare",
    "ALTER TABLE {t} MODIFY spare VARCHAR(99)",
    "ALTER TABLE {t} FORCE",
    "ALTER TABLE {t} ENGINE=InnoDB COMMENT='DROP COLUMN n' AUTO_INCREMENT = 900",
    "ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 'd'",
    "ALTER TABLE IF EXISTS {t} MODIFY v LONGTEXT , ALGORITHM=COPY",
    "ALTER TABLE {t} PARTITION BY HASH(id) PARTITIONS 3",
    "ALTER TABLE {o} ADD items INT , DROP COLUMN n",
    "ALTER TABLE {o} RENAME TO third , COMMENT='items'",
    "ALTER DATABASE {s} CHARACTER SET utf8mb4",
    "CREATE TABLE third (id BIGINT PRIMARY KEY, items INT)",
    "CREATE TABLE third LIKE {t}",
    "CREATE TABLE third AS SELECT * FROM {t}",
    "CREATE OR REPLACE TABLE {o} AS SELECT id , v , n FROM {t}",
    "CREATE TABLE IF NOT EXISTS {t} (id INT)",
    "CREATE TEMPORARY TABLE {t} (a INT)",
    "CREATE TABLE child (id BIGINT PRIMARY KEY, FOREIGN KEY (id) REFERENCES {t} (id))",
    "TRUNCATE ?TABLE {o}",
    "TRUNCATE {e}.items",
    "DROP TABLE {o}",
    "DROP TABLE IF EXISTS {odd} , {o}",
    "DROP TABLE IF EXISTS {e}.items , {e}.nothing",
    "RENAME TABLE {o} TO third , {odd} TO {o}",
    "RENAME TABLE {o} TO {e}.third",
    "CREATE OR REPLACE DATABASE {e}",
    "DROP DATABASE IF EXISTS {e}",
    "CREATE OR REPLACE VIEW seen AS SELECT * FROM {t}",
    "DROP VIEW seen",
    "CREATE DEFINER=root@localhost PROCEDURE pp() BEGIN TRUNCATE TABLE {t} ; DROP TABLE {t} ; END",
    "CREATE TRIGGER tr BEFORE INSERT ON {t} FOR EACH ROW SET NEW.n = 5",
    "CREATE EVENT ev ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO TRUNCATE TABLE {t}",
    "CREATE SEQUENCE sq START WITH 5",
    "INSERT INTO {o} SELECT id + 9000 , v , n FROM {t}",
    Deed(
        "REVOKE INSERT ON {t} FROM cdc@'127.0.0.1'",
        before=("GRANT INSERT ON items TO cdc@'127.0.0.1'",),
    ),
    Deed("UPDATE {t} SET n = n + 1", before=("BEGIN", "SAVEPOINT s"), after=("COMMIT",)),
    Deed(
        "DELETE FROM {t}",
        before=("BEGIN", "UPDATE items SET v = 'kept'", "SAVEPOINT s"),
        after=("ROLLBACK TO s", "COMMIT"),
    ),
    Deed(
        "INSERT INTO {o} (id) VALUES (901)",
        before=("XA START 'x'",),
        after=("XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"),
    ),
    Deed("DROP TABLE {t}", before=("CREATE TEMPORARY TABLE items (a INT)",)),
)


@dataclass(frozen=True)
class Written:
    """A deed as one statement was written.

    Attributes:
        default: the session's schema, empty for none.
    """

    deed: Deed
    text: str
    default: str


def written(deed: Deed, schema: str, *, is_gated: bool = False) -> st.SearchStrategy[Written]:
    """Ways to write `deed` that mean the same to the server.

    Args:
        deed: what is done.
        schema: of the tables.
        is_gated: whether parts may be in comments that not every server carries out.
    """

    @st.composite
    def strategy(draw: st.DrawFn) -> Written:
        anywhere = not deed.before and not _IN_SCHEMA.search(deed.template)
        default = draw(st.sampled_from((schema, "information_schema"))) if anywhere else schema
        words = [w for w in _WORD.findall(deed.template) if w[0] != "?" or draw(st.booleans())]
        pieces = [draw(_piece(word.lstrip("?"), schema, default)) for word in words]
        return Written(deed, draw(_put_together(pieces, is_gated=is_gated)), default)

    return strategy()


def elsewhere(schema: str) -> str:
    return f"{schema}_e"


def _piece(word: str, schema: str, default: str) -> st.SearchStrategy[str]:
    if word == "{s}":
        return st.sampled_from((schema, f"`{schema}`"))
    if word in _NAMES:
        name = _NAMES[word]
        plain = [f"`{name}`", *([name] if name.isidentifier() else [])]
        full = [f"{s}{dot}{n}" for s in (schema, f"`{schema}`") for dot in _DOTS for n in plain]
        return st.sampled_from(plain + full if default == schema else full)
    if _KEYWORD.fullmatch(word):
        return st.sampled_from((word, word, word.lower(), word.capitalize()))
    return st.just(word.replace("{t}", TABLE).replace("{e}", elsewhere(schema)))


_DOTS = (".", ".", " . ", "./* . */")


@st.composite
def _put_together(draw: st.DrawFn, pieces: list[str], *, is_gated: bool) -> str:
    gap = st.one_of(st.just(" "), st.just(" "), st.sampled_from(_GAPS))
    spaced = [piece + draw(gap) for piece in pieces]
    if not is_gated or not draw(st.booleans()):
        return draw(_around("".join(spaced), _RUN_EVERYWHERE if not is_gated else _OPENED))
    first = draw(st.integers(0, len(pieces) - 1))
    last = draw(st.integers(first, len(pieces) - 1))
    inside = f"{draw(st.sampled_from(_OPENED))}{' '.join(pieces[first : last + 1])} */ "
    return "".join([*spaced[:first], inside, *spaced[last + 1 :]])


@st.composite
def _around(draw: st.DrawFn, statement: str, opened: tuple[str, ...]) -> str:
    how = draw(st.integers(0, 5))
    if how == 3 and "SET STATEMENT" not in statement.upper():
        return draw(st.sampled_from(_PREFIXES)) + statement
    if how == 1 and not re.search(r"[/\-#]", statement):
        return f"{draw(st.sampled_from(opened))}{statement} */"
    if how == 2:
        return draw(st.sampled_from(_GAPS)) + statement
    return statement
