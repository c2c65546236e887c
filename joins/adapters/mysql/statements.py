"""The effect of a statement; it is harmless only if it is known to change no captured value."""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from joins.adapters.mysql.tokens import (
    END,
    Effect,
    Kind,
    Modes,
    Parser,
    Reading,
    TableName,
    Target,
    folded,
    readings,
    require,
)

_KEYS = ("UNIQUE", "FULLTEXT", "SPATIAL", "INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT")
_VERBS = ("ADD", "DROP", "MODIFY", "CHANGE", "RENAME", "ALTER")
# Forms that keep every value; the check of the table finds what they forbid.
_KEEPS_VALUES = (
    ("ADD", "PARTITION"),
    *((verb, "PARTITION") for verb in ("REORGANIZE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK")),
    ("COALESCE", "PARTITION"),
    ("PARTITION", "BY"),
    ("REMOVE", "PARTITIONING"),
    ("ORDER", "BY"),
)
_WHOLE = (("FORCE",), ("ENABLE", "KEYS"), ("DISABLE", "KEYS"), ("NOWAIT",))
_OPTIONS = frozenset(
    [
        "ALGORITHM",
        "LOCK",
        "WAIT",
        "AUTO_INCREMENT",
        "COMMENT",
        "ROW_FORMAT",
        "KEY_BLOCK_SIZE",
        "AVG_ROW_LENGTH",
        "MAX_ROWS",
        "MIN_ROWS",
        "CHECKSUM",
        "TABLE_CHECKSUM",
        "DELAY_KEY_WRITE",
        "PACK_KEYS",
        "STATS_PERSISTENT",
        "STATS_AUTO_RECALC",
        "STATS_SAMPLE_PAGES",
        "CHARSET",
        "COLLATE",
    ]
)
_REMOVES_ROWS = (
    *((verb, "PARTITION") for verb in ("DROP", "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT")),
    ("CONVERT", "PARTITION"),
    ("CONVERT", "TABLE"),
    ("DISCARD", "TABLESPACE"),
    ("IMPORT", "TABLESPACE"),
)
# In a strict session these conversions keep every value or fail. Conversions to shorter texts are
# not among them: trailing spaces are cut with only a note.
_EXACT_OR_FAILS = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "MEDIUMINT",
        "INT",
        "INTEGER",
        "BIGINT",
        "VARBINARY",
        "LONGTEXT",
        "TINYBLOB",
        "BLOB",
        "MEDIUMBLOB",
        "LONGBLOB",
    ]
)
# They renumber rows, pad numbers, or compute the values.
_INEXACT = frozenset({"AUTO_INCREMENT", "ZEROFILL", "AS", "GENERATED"})


def effect_of_parts(parts: list[Reading], target: Target, *, strict: bool, ignore: bool) -> Effect:
    """What an ALTER TABLE of the captured table did to it.

    `parts` are the text behind the table's name, split at its commas. A `strict` session refuses
    values that do not fit; `ignore` removes rows that violate a new unique key.
    """
    order = list(Effect)
    effects = [_effect_of_part(part, target, strict) for part in parts]
    return max([*effects, Effect.CONVERTED if ignore else Effect.ALTERED], key=order.index)


def moves_other_tables(part: Reading) -> bool:
    """True if a part of an ALTER TABLE may change another table that it names."""
    parser = Parser(part)
    verb = parser.accept_any(*_VERBS)
    if verb == "RENAME":
        return not parser.accept_any("COLUMN", "INDEX", "KEY")
    return not verb


def _effect_of_part(part: Reading, target: Target, strict: bool) -> Effect:
    words = _words(part)
    if words[:2] in _REMOVES_ROWS:
        return Effect.REPLACED
    if words[:2] in _KEEPS_VALUES or words in _WHOLE or _are_options(part):
        return Effect.ALTERED
    parser = Parser(part)
    verb = parser.accept_any(*_VERBS)
    if verb == "RENAME" and words[1:2] not in (("COLUMN",), ("INDEX",), ("KEY",)):
        return Effect.REPLACED
    if verb == "DROP" and any(t.is_name and folded(t.text) == "primary" for t in part):
        return Effect.CONVERTED  # until the next primary key there may be rows of one key
    if verb in ("ADD", "DROP", "RENAME", "ALTER") and parser.accept_any(*_KEYS, "CHECK"):
        return Effect.ALTERED
    kept = bool(verb) and _column_keeps(verb, parser, target, strict)
    return Effect.ALTERED if kept else Effect.CONVERTED


def _words(part: Reading) -> tuple[str, ...]:
    return tuple(token.word for token in part)


def _are_options(part: Reading) -> bool:
    """True if these are table options that no value depends on."""
    parser = Parser(part)
    while not parser.has_ended:
        parser.accept("DEFAULT")
        is_engine = parser.accept("ENGINE")
        if not (is_engine or parser.accept("CHARACTER", "SET") or parser.accept_any(*_OPTIONS)):
            return False
        parser.symbol("=")
        if parser.ahead.kind is Kind.SYMBOL:
            return False
        value = parser.next()
        if is_engine and folded(value.text.strip("'\"")) != "innodb":
            return False
    return True


def _column_keeps(verb: str, parser: Parser, target: Target, strict: bool) -> bool:
    """True if a change of a column surely keeps all values of the captured columns."""
    captured = _all_folded(target.columns)
    if not parser.accept("COLUMN") and parser.accept_any("SYSTEM", "PERIOD"):
        return False
    if parser.accept("IF"):
        parser.accept("NOT")
        require(parser.accept("EXISTS"))
    if verb in ("MODIFY", "CHANGE"):
        return _conversion_keeps(verb, parser, target, strict)
    if verb == "ADD" and parser.symbol("("):
        return not any(part and folded(part[0].text) in captured for part in parser.parts())
    name = folded(parser.name())
    if verb == "ALTER":
        return parser.accept_any("SET", "DROP") != "" and parser.accept("DEFAULT")
    if verb == "RENAME":
        require(parser.accept("TO"))
        return name not in captured and folded(parser.name()) not in captured
    return name not in captured


def _conversion_keeps(verb: str, parser: Parser, target: Target, strict: bool) -> bool:
    captured = _all_folded(target.columns)
    name = new_name = folded(parser.name())
    if verb == "CHANGE":
        new_name = folded(parser.name())
    if name in _all_folded(target.computed_from):
        return False
    if name not in captured:
        return new_name not in captured
    words = _words(parser.rest)
    is_exact = bool(words) and words[0] in _EXACT_OR_FAILS and not _INEXACT.intersection(words)
    return name == new_name and strict and is_exact


def _all_folded(names: Iterable[str]) -> set[str]:
    return set(map(folded, names))


_SYSTEM = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
# They are carried out later, and are then in the binlog themselves.
_PROGRAMS = ("PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE")
_NO_TABLES = ("VIEW", "USER", "ROLE", "SERVER")
_DATABASES = ("DATABASE", "SCHEMA")
_TABLES = ("TABLE", "TABLES")
_CLAUSES = ("VALUES", "VALUE", "WHERE")
_Judge = Callable[[Parser, Target, Modes], Effect]


def effect_of(schema: str, text: str, target: Target, modes: Modes | None = None) -> Effect:
    """What a statement did, or may have done, to the captured table.

    Names are compared ignoring case and accents, as a server may fold them; a needless new snapshot
    is harmless. `schema` is the default database; U+FFFD stands for undecodable bytes; `modes` are
    the session's, by default the server's.
    """
    modes = modes or Modes()
    order = list(Effect)
    effects = (_effect_of(reading, schema, target, modes) for reading in readings(text, modes))
    return max(effects, key=order.index, default=Effect.UNKNOWN)


def _effect_of(reading: Reading, schema: str, target: Target, modes: Modes) -> Effect:
    parser = Parser(reading, schema)
    try:
        modes = _without_prefixes(parser, modes)
        verb = parser.next().word
        if folded(target.database) in _SYSTEM or verb not in _JUDGES:
            return Effect.UNKNOWN
        if verb not in ("CREATE", "ALTER"):
            parser.require_single()
        return _JUDGES[verb](parser, target, modes)
    except ValueError:
        return Effect.UNKNOWN


def _without_prefixes(parser: Parser, modes: Modes) -> Modes:
    """Skip every `SET STATEMENT … FOR`; returns the modes behind it."""
    words, whole = [], parser.rest
    while parser.accept("SET", "STATEMENT"):
        depth = 0
        while depth or not parser.accept("FOR"):
            token = parser.next()
            depth += token.is_symbol("(") - token.is_symbol(")")
            words.append(token.text.upper())
    if "SQL_MODE" not in words:
        return modes
    # The binlog has the new modes, but the statement was parsed with the old ones.
    texts = "".join(token.text for token in whole if token.kind is not Kind.WORD)
    require(not modes.ansi_quotes and '"' not in texts and "\\" not in texts)
    return Modes(strict=False)


def _harmless(_parser: Parser, _target: Target, _modes: Modes) -> Effect:
    return Effect.NONE


def _replaced(names: list[TableName], target: Target) -> Effect:
    return Effect.REPLACED if any(map(target.is_named, names)) else Effect.NONE


def _truncate(parser: Parser, target: Target, _modes: Modes) -> Effect:
    parser.accept("TABLE")
    names = [parser.table()]
    parser.wait()
    parser.end()
    return _replaced(names, target)


def _rename(parser: Parser, target: Target, _modes: Modes) -> Effect:
    if parser.accept("USER"):
        return Effect.NONE
    require(bool(parser.accept_any(*_TABLES)))
    return _replaced([name for pair in _renamed(parser) for name in pair], target)


def _renamed(parser: Parser) -> list[tuple[TableName, TableName]]:
    """Old and new names, in the order in which they change."""
    parser.accept("IF", "EXISTS")
    names, more = [], True
    while more:
        old = parser.table()
        parser.wait()
        require(parser.accept("TO"))
        names.append((old, parser.table()))
        more = parser.symbol(",")
    parser.end()
    return names


def _drop(parser: Parser, target: Target, _modes: Modes) -> Effect:
    is_temporary = parser.accept("TEMPORARY")
    parser.accept_any("ONLINE", "OFFLINE")
    what = parser.next().word
    if what in (*_PROGRAMS, *_NO_TABLES):
        return Effect.NONE
    if what == "INDEX":
        parser.accept("IF", "EXISTS")
        index = parser.name()
        require(parser.accept("ON"))
        is_key = folded(index) == "primary" and target.is_named(parser.table())
        return Effect.CONVERTED if is_key else Effect.NONE
    parser.accept("IF", "EXISTS")
    if what in _DATABASES:
        is_database = target.is_database(parser.name())
        parser.end()
        return Effect.REPLACED if is_database else Effect.NONE
    require(what in (*_TABLES, "SEQUENCE"))
    names = parser.tables()
    parser.wait()
    parser.accept_any("RESTRICT", "CASCADE")
    parser.end()
    return Effect.NONE if is_temporary else _replaced(names, target)


def _skip_modifiers(parser: Parser) -> set[str]:
    """Skip what may precede the kind of an object; returns the single words among it."""
    words: set[str] = set()
    while True:
        if parser.accept_any("ALGORITHM"):
            require(parser.symbol("="))
            parser.next()
        elif parser.accept("DEFINER"):
            require(parser.symbol("="))
            parser.account()
        elif parser.accept("SQL", "SECURITY"):
            parser.next()
        else:
            kinds = ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "AGGREGATE", "TEMPORARY")
            word = parser.accept_any(*kinds, "ONLINE", "OFFLINE", "IGNORE")
            if not word:
                return words
            words.add(word)


def _create(parser: Parser, target: Target, _modes: Modes) -> Effect:
    replaces = parser.accept("OR", "REPLACE")
    is_temporary = "TEMPORARY" in _skip_modifiers(parser)
    what = parser.next().word
    if what in _PROGRAMS:
        return Effect.NONE
    parser.require_single()
    if what in (*_NO_TABLES, "INDEX"):
        return Effect.NONE
    keeps = parser.accept("IF", "NOT", "EXISTS")
    if what in _DATABASES:
        return Effect.REPLACED if replaces and target.is_database(parser.name()) else Effect.NONE
    require(what in ("TABLE", "SEQUENCE"))
    is_ours = target.is_named(parser.table())
    if _selects(parser.rest):  # in a session that does not log rows; functions may do anything
        return Effect.UNLOGGED
    return Effect.REPLACED if is_ours and not keeps and not is_temporary else Effect.NONE


def created_empty(schema: str, text: str, modes: Modes) -> TableName | None:
    """The table that a statement surely creates without rows, None if there is none."""

    def created(parser: Parser) -> TableName | None:
        if not parser.accept("CREATE"):
            return None
        parser.accept("OR", "REPLACE")
        parser.require_single()
        if not parser.accept("TABLE") or parser.accept("IF"):  # there may be a table with rows
            return None
        name = parser.table()
        return None if _selects(parser.rest) else name

    return _in_every_reading(schema, text, modes, created)


def put_in_place(schema: str, text: str, target: Target, modes: Modes) -> TableName | None:
    """The table that a RENAME TABLE surely gives the captured one's name, which it lays aside."""

    def put(parser: Parser) -> TableName | None:
        if not parser.accept("RENAME", "TABLE"):
            return None
        now: dict[TableName, TableName] = {}  # name → the table that has it
        for old, new in _renamed(parser):
            now[new] = now.pop(old, old)
        there = now.get(TableName(target.database, target.table))
        return None if there is None or target.is_named(there) else there

    return _in_every_reading(schema, text, modes, put)


def _in_every_reading(
    schema: str, text: str, modes: Modes, read: Callable[[Parser], TableName | None]
) -> TableName | None:
    try:
        names = {read(Parser(reading, schema)) for reading in readings(text, modes)}
    except ValueError:
        return None
    return names.pop() if len(names) == 1 else None


def _selects(tokens: Reading) -> bool:
    return any(
        one.word == "SELECT" or (one.word == "VALUES" and behind.word not in ("LESS", "IN"))
        for one, behind in pairwise((*tokens, END))
    )


def _alter(parser: Parser, target: Target, modes: Modes) -> Effect:
    modifiers = _skip_modifiers(parser)
    what = parser.next().word
    if what in _PROGRAMS:
        return Effect.NONE
    parser.require_single()
    if what in (*_NO_TABLES, *_DATABASES, "SEQUENCE", "INSTANCE"):
        return Effect.NONE
    require(what == "TABLE")
    parser.accept("IF", "EXISTS")
    table = parser.table()
    parser.wait()
    parts = parser.parts()
    if target.is_named(table):
        ignore = "IGNORE" in modifiers
        return effect_of_parts(parts, target, strict=modes.strict, ignore=ignore)
    moved = (token for part in parts if moves_other_tables(part) for token in part)
    is_ours = any(token.is_name and target.is_named(TableName("", token.text)) for token in moved)
    return Effect.REPLACED if is_ours else Effect.NONE


def _maintain(parser: Parser, _target: Target, _modes: Modes) -> Effect:
    parser.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    return Effect.NONE if parser.accept_any(*_TABLES) else Effect.UNLOGGED


def _repair(parser: Parser, target: Target, _modes: Modes) -> Effect:
    parser.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    require(bool(parser.accept_any(*_TABLES)))
    return Effect.UNKNOWN if any(map(target.is_named, parser.tables())) else Effect.NONE


def _set(parser: Parser, _target: Target, _modes: Modes) -> Effect:
    is_account = parser.accept_any("PASSWORD", "ROLE") or parser.accept("DEFAULT", "ROLE")
    return Effect.NONE if is_account else Effect.UNKNOWN


def _unlogged(_parser: Parser, _target: Target, _modes: Modes) -> Effect:
    return Effect.UNLOGGED


def _write(parser: Parser, _target: Target, _modes: Modes) -> Effect:
    """Server tables have no effect, since services write to them in this way."""
    parser.accept_any("IGNORE")
    parser.accept_any("INTO", "FROM")
    is_system = folded(parser.table().database) in _SYSTEM
    is_plain = parser.has_ended or parser.ahead.is_symbol("(") or parser.ahead.word in _CLAUSES
    asks = any(
        (behind.is_symbol("(") and one.is_name and one.word not in _CLAUSES)
        or one.word in ("SELECT", "TABLE", "WITH")
        for one, behind in pairwise((*parser.rest, END))
    )
    return Effect.NONE if is_system and is_plain and not asks else Effect.UNLOGGED


def _boundary(parser: Parser, _target: Target, _modes: Modes) -> Effect:
    parser.accept_any("WORK", "TRANSACTION", "SAVEPOINT")
    if not parser.has_ended:
        parser.name()
    parser.end()
    return Effect.NONE


_JUDGES: Mapping[str, _Judge] = {
    **dict.fromkeys(("GRANT", "REVOKE", "FLUSH", "CHECK", "CHECKSUM"), _harmless),
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "SAVEPOINT", "RELEASE"), _boundary),
    **dict.fromkeys(("ANALYZE", "OPTIMIZE"), _maintain),
    **dict.fromkeys(("INSERT", "REPLACE", "DELETE"), _write),
    **dict.fromkeys(("UPDATE", "LOAD", "MERGE", "WITH", "SELECT", "DO", "CALL"), _unlogged),
    "TRUNCATE": _truncate,
    "RENAME": _rename,
    "DROP": _drop,
    "CREATE": _create,
    "ALTER": _alter,
    "REPAIR": _repair,
    "SET": _set,
}
