"""What an `ALTER TABLE` may have done to the rows that we hold: the binlog has no rows of it."""

from collections.abc import Iterable

from joins.adapters.mysql.parser import Effect, Parser, Target
from joins.adapters.mysql.tokens import Kind, Reading, folded

_KEYS = ("UNIQUE", "FULLTEXT", "SPATIAL", "INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT")
_VERBS = ("ADD", "DROP", "MODIFY", "CHANGE", "RENAME", "ALTER")
# Forms that leave every value as it is; what they forbid, the check of the table finds.
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
# In a strict session these conversions keep every value or fail. Not those to shorter texts: spaces
# at the end are cut with a note only.
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
# They number rows anew, pad numbers, or compute the values.
_INEXACT = frozenset({"AUTO_INCREMENT", "ZEROFILL", "AS", "GENERATED"})


def effect_of_parts(parts: list[Reading], target: Target, *, strict: bool, ignore: bool) -> Effect:
    """What an ALTER TABLE of our table did to it.

    Args:
        parts: what follows the table's name, cut at its commas.
        target: our table.
        strict: whether its session refuses values that do not fit, instead of changing them.
        ignore: whether it removes rows that a new unique key forbids.
    """
    order = list(Effect)
    effects = [_effect_of_part(part, target, strict) for part in parts]
    return max([*effects, Effect.CONVERTED if ignore else Effect.ALTERED], key=order.index)


def moves_other_tables(part: Reading) -> bool:
    """Whether a part of an ALTER TABLE may do something to a table that it names beside its own."""
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
    if verb in ("ADD", "DROP", "RENAME", "ALTER") and parser.accept_any(*_KEYS, "CHECK"):
        return Effect.ALTERED
    kept = bool(verb) and _column_keeps(verb, parser, target, strict)
    return Effect.ALTERED if kept else Effect.CONVERTED


def _words(part: Reading) -> tuple[str, ...]:
    return tuple(token.word for token in part)


def _are_options(part: Reading) -> bool:
    """Whether they are options of the table, however many, that no value depends on."""
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
    """Whether a change of a column surely leaves all values of the captured ones."""
    captured = _all_folded(target.columns)
    if not parser.accept("COLUMN") and parser.accept_any("SYSTEM", "PERIOD"):
        return False
    if parser.accept("IF"):
        parser.accept("NOT")
        Parser.require(parser.accept("EXISTS"))
    if verb in ("MODIFY", "CHANGE"):
        return _conversion_keeps(verb, parser, target, strict)
    if verb == "ADD" and parser.symbol("("):
        return not any(part and folded(part[0].text) in captured for part in parser.parts())
    name = folded(parser.name())
    if verb == "ALTER":
        return parser.accept_any("SET", "DROP") != "" and parser.accept("DEFAULT")
    if verb == "RENAME":
        Parser.require(parser.accept("TO"))
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
