"""What a statement in the binlog means for the captured table.

Harmless is only what is proved to be: a statement that is known, and changes no value of the table.
What is not known, or cannot be read, may have changed it.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

from joins.adapters.mysql.alter import effect_of_parts, moves_other_tables
from joins.adapters.mysql.parser import END, Effect, Parser, TableName, Target
from joins.adapters.mysql.tokens import Kind, Modes, Reading, folded, readings

_SYSTEM = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
# What they say is carried out later, and then it is in the binlog by itself.
_PROGRAMS = ("PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE")
_NO_TABLES = ("VIEW", "USER", "ROLE", "SERVER")
_DATABASES = ("DATABASE", "SCHEMA")
_TABLES = ("TABLE", "TABLES")
_CLAUSES = ("VALUES", "VALUE", "WHERE")
_Judge = Callable[[Parser, Target, Modes], Effect]


def effect_of(schema: str, text: str, target: Target, modes: Modes | None = None) -> Effect:
    """What a statement did, or may have done, to our table.

    Names are compared without case and accents: a server may fold them, and a needless copy does
    no harm.

    Args:
        schema: its default database.
        text: the statement; U+FFFD stands for what could not be decoded.
        target: our table.
        modes: of its session; the server's default without.
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
        if folded(target.database) in _SYSTEM or verb not in _VERBS:
            return Effect.UNKNOWN
        if verb not in ("CREATE", "ALTER"):
            parser.require_single()
        return _VERBS[verb](parser, target, modes)
    except ValueError:
        return Effect.UNKNOWN


def _without_prefixes(parser: Parser, modes: Modes) -> Modes:
    """Read every `SET STATEMENT … FOR`; returns what is known of the modes behind it."""
    words, whole = [], parser.rest
    while parser.accept("SET", "STATEMENT"):
        depth = 0
        while depth or not parser.accept("FOR"):
            token = parser.next()
            depth += token.is_symbol("(") - token.is_symbol(")")
            words.append(token.text.upper())
    if "SQL_MODE" not in words:
        return modes
    # The binlog has the new modes, but the old ones were read by.
    texts = "".join(token.text for token in whole if token.kind is not Kind.WORD)
    parser.require(not modes.ansi_quotes and '"' not in texts and "\\" not in texts)
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
    parser.require(bool(parser.accept_any(*_TABLES)))
    parser.accept("IF", "EXISTS")
    names, more = [], True
    while more:
        names.append(parser.table())
        parser.wait()
        parser.require(parser.accept("TO"))
        names.append(parser.table())
        more = parser.symbol(",")
    parser.end()
    return _replaced(names, target)


def _drop(parser: Parser, target: Target, _modes: Modes) -> Effect:
    is_temporary = parser.accept("TEMPORARY")
    parser.accept_any("ONLINE", "OFFLINE")
    what = parser.next().word
    if what in (*_PROGRAMS, *_NO_TABLES):
        return Effect.NONE
    if what == "INDEX":
        return _drop_index(parser, target)
    parser.accept("IF", "EXISTS")
    if what in _DATABASES:
        is_database = target.is_database(parser.name())
        parser.end()
        return Effect.REPLACED if is_database else Effect.NONE
    parser.require(what in (*_TABLES, "SEQUENCE"))
    names = parser.tables()
    parser.wait()
    parser.accept_any("RESTRICT", "CASCADE")
    parser.end()
    return Effect.NONE if is_temporary else _replaced(names, target)


def _drop_index(parser: Parser, target: Target) -> Effect:
    parser.accept("IF", "EXISTS")
    index = parser.name()
    parser.require(parser.accept("ON"))
    is_key = folded(index) == "primary" and target.is_named(parser.table())
    return Effect.ALTERED if is_key else Effect.NONE


def _skip_modifiers(parser: Parser) -> set[str]:
    """Read what may stand before the kind of an object; returns those that are single words."""
    words: set[str] = set()
    while True:
        if parser.accept_any("ALGORITHM"):
            parser.require(parser.symbol("="))
            parser.next()
        elif parser.accept("DEFINER"):
            parser.require(parser.symbol("="))
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
    parser.require(what in ("TABLE", "SEQUENCE"))
    is_ours = target.is_named(parser.table())
    if _selects(parser.rest):  # of a session that does not log rows; functions may do anything
        return Effect.UNLOGGED
    return Effect.REPLACED if is_ours and not keeps and not is_temporary else Effect.NONE


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
    parser.require(what == "TABLE")
    parser.accept("IF", "EXISTS")
    table = parser.table()
    parser.wait()
    parts = parser.parts()
    if target.is_named(table):
        ignore = "IGNORE" in modifiers
        return effect_of_parts(parts, target, strict=modes.strict, ignore=ignore)
    moved = [part for part in parts if moves_other_tables(part) and _mentions(part, target)]
    return Effect.REPLACED if moved else Effect.NONE


def _mentions(tokens: Reading, target: Target) -> bool:
    return any(token.is_name and target.is_named(TableName("", token.text)) for token in tokens)


def _maintain(parser: Parser, _target: Target, _modes: Modes) -> Effect:
    parser.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    return Effect.NONE if parser.accept_any(*_TABLES) else Effect.UNLOGGED


def _repair(parser: Parser, target: Target, _modes: Modes) -> Effect:
    parser.accept_any("NO_WRITE_TO_BINLOG", "LOCAL")
    parser.require(bool(parser.accept_any(*_TABLES)))
    return Effect.UNKNOWN if any(map(target.is_named, parser.tables())) else Effect.NONE


def _set(parser: Parser, _target: Target, _modes: Modes) -> Effect:
    is_account = parser.accept_any("PASSWORD", "ROLE") or parser.accept("DEFAULT", "ROLE")
    return Effect.NONE if is_account else Effect.UNKNOWN


def _unlogged(_parser: Parser, _target: Target, _modes: Modes) -> Effect:
    return Effect.UNLOGGED


def _write(parser: Parser, _target: Target, _modes: Modes) -> Effect:
    """The same; tables of the server have none of them, and services write to them like that."""
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


_VERBS: Mapping[str, _Judge] = {
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
