"""What an `ALTER TABLE` may have done to the rows that we hold: the binlog has no rows of it."""

import re
from collections.abc import Collection, Iterator

_HEAD = re.compile(
    r"^ALTER\s+(?P<mode>(?:ONLINE\s+|IGNORE\s+)*)TABLE\s+(?:IF\s+EXISTS\s+)?"
    r"(?:`(?:[^`]|``)*`|\"[^\"]*\"|[^\s.`\"]+)(?:\s*\.\s*(?:`(?:[^`]|``)*`|\"[^\"]*\"|[^\s.`\"]+))?",
    re.IGNORECASE,
)
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)*)`|\"([^\"]*)\"|([^\s`\"(),]+))")
_OF_A_COLUMN = re.compile(
    r"^(?P<verb>ADD|DROP|MODIFY|CHANGE|RENAME)\s+(?:(?P<word>COLUMN)\s+)?"
    r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
# Parts that leave every value as it is; what they forbid, the check of the table finds.
_KEEPS_VALUES = re.compile(
    r"^(?:(?:ADD|DROP|RENAME|ALTER)\s+(?:UNIQUE|FULLTEXT|SPATIAL|INDEX|KEY|PRIMARY\s+KEY"
    r"|FOREIGN\s+KEY|CONSTRAINT|CHECK)\b"
    r"|ADD\s+PARTITION\b|ALTER\s+.*\b(?:SET|DROP)\s+DEFAULT\b"
    r"|(?:REORGANIZE|REBUILD|OPTIMIZE|ANALYZE|CHECK|COALESCE)\s+PARTITION\b"
    r"|PARTITION\s+BY\b|REMOVE\s+PARTITIONING\b|ORDER\s+BY\b|FORCE\b|(?:ENABLE|DISABLE)\s+KEYS\b"
    r"|(?:NOWAIT|WAIT|ALGORITHM|LOCK|AUTO_INCREMENT|COMMENT|ROW_FORMAT|KEY_BLOCK_SIZE)\b"
    r"|(?:STATS_\w+|AVG_ROW_LENGTH|MAX_ROWS|MIN_ROWS|CHECKSUM|DELAY_KEY_WRITE|PACK_KEYS)\b"
    r"|ENGINE\s*=?\s*InnoDB\b|(?:DEFAULT\s+)?(?:CHARACTER\s+SET|CHARSET|COLLATE)\b)",
    re.IGNORECASE | re.DOTALL,
)
# In a strict session these conversions keep every value or fail.
_EXACT_OR_FAILS = re.compile(
    r"^\s*(?:(?:TINY|SMALL|MEDIUM|BIG)?INT|INTEGER|VARCHAR|VARBINARY|(?:TINY|MEDIUM|LONG)?(?:TEXT|BLOB))\b",
    re.IGNORECASE,
)
_GENERATED = re.compile(r"\bAS\s*\(", re.IGNORECASE)
_QUOTES = "'\"`"


def keeps_values(statement: str, captured: Collection[str], *, strict: bool) -> bool:
    """Whether every value of the captured columns is surely what it was before `statement`.

    Args:
        statement: an ALTER TABLE without comments.
        captured: names of the captured columns.
        strict: whether its session refuses values that do not fit, instead of changing them.
    """
    head = _HEAD.match(statement)
    if head is None or "IGNORE" in head["mode"].upper():
        return False  # IGNORE removes rows that a new unique key forbids
    if "\\" in statement or any(statement.count(quote) % 2 for quote in _QUOTES):
        return False  # where texts end depends on the session's modes
    names = {name.casefold() for name in captured}
    return all(_part_keeps(part, names, strict) for part in _parts(statement[head.end() :]))


def _part_keeps(part: str, captured: set[str], strict: bool) -> bool:
    if not part or _KEEPS_VALUES.match(part):
        return True
    match = _OF_A_COLUMN.match(part)
    if match is None:
        return False
    verb, rest = match["verb"].upper(), match["rest"]
    if verb in ("CHANGE", "MODIFY"):
        return _conversion_keeps(rest, captured, strict, renames=verb == "CHANGE")
    if verb == "ADD" and rest.startswith("("):
        return not any(_named(one) in captured for one in _parts(rest.strip()[1:-1]))
    if verb == "RENAME":
        return match["word"] is not None and not captured & set(_renamed(rest))
    word = rest.split(None, 1)[0].upper() if rest.split() else ""
    if match["word"] is None and word in ("SYSTEM", "PARTITION", "PERIOD"):
        return False
    return _named(rest) not in captured


def _conversion_keeps(rest: str, captured: set[str], strict: bool, *, renames: bool) -> bool:
    name, definition = _split_name(rest)
    new_name = name
    if renames:
        new_name, definition = _split_name(definition)
    if name not in captured:
        return new_name not in captured
    exact = bool(_EXACT_OR_FAILS.match(definition)) and not _GENERATED.search(definition)
    return name == new_name and strict and exact


def _renamed(rest: str) -> Iterator[str]:
    old, rest = _split_name(rest)
    yield old
    yield _named(re.sub(r"^\s*TO\b", "", rest, flags=re.IGNORECASE))


def _named(text: str) -> str:
    return _split_name(text)[0]


def _split_name(text: str) -> tuple[str, str]:
    """The column's name at the beginning of `text`, folded, and what follows."""
    match = _NAME.match(text)
    if match is None:
        return "", text
    name = next(group for group in match.groups() if group is not None)
    return name.replace("``", "`").casefold(), text[match.end() :]


def _parts(text: str) -> Iterator[str]:
    """The parts between commas that are in no parentheses and no quotes."""
    depth, quote, start = 0, "", 0
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()
