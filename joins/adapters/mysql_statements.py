"""What a statement in the binlog means for the captured table."""

import re
from dataclasses import dataclass
from enum import Enum

from joins.adapters.mysql_alter import keeps_values

_COMMENT = re.compile(r"/\*(?![!M]).*?\*/|(?:--\s|#)[^\n]*", re.DOTALL)
_CHANGES = re.compile(r"^(?:INSERT|REPLACE|UPDATE|DELETE|LOAD|MERGE)\b", re.IGNORECASE)
_REMOVES = re.compile(
    r"^(?:TRUNCATE|RENAME\s+TABLE|DROP\s+(?:TEMPORARY\s+)?TABLES?|CREATE\s+OR\s+REPLACE\s+TABLE)\b",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(r"^(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?TEMPORARY\b", re.IGNORECASE)
_ALTERS = re.compile(r"^ALTER\s+(?:ONLINE\s+|IGNORE\s+)*TABLE\b", re.IGNORECASE)
_ALTERS_ROWS = re.compile(
    r"\b(?:(?:DROP|TRUNCATE|EXCHANGE|DISCARD|IMPORT|CONVERT)\s+PARTITION"
    r"|(?:DISCARD|IMPORT)\s+TABLESPACE|RENAME\s+(?:TO|AS)\b)",
    re.IGNORECASE,
)
_DROPS_DATABASE = re.compile(r"^DROP\s+(?:DATABASE|SCHEMA)\b", re.IGNORECASE)


_DROPS_KEY = re.compile(r"^DROP\s+INDEX\b.*\bPRIMARY\b", re.IGNORECASE | re.DOTALL)


class Effect(Enum):
    """What the statement does to the captured table."""

    NONE = "nothing"
    UNLOGGED = "its rows were changed without row events"
    REPLACED = "it was emptied, removed or replaced"
    CONVERTED = "the definition of captured columns was changed"
    ALTERED = "its definition was changed"


@dataclass(frozen=True, slots=True)
class Target:
    """The table that we follow.

    Attributes:
        columns: the server's names of the captured ones.
    """

    database: str
    table: str
    columns: tuple[str, ...]


def effect_of(schema: str, text: str, target: Target, *, strict: bool = True) -> Effect:
    """What a statement did to our table.

    Names are compared without case: a server may fold them, and a needless copy does no harm.

    Args:
        schema: its default database.
        text: the statement.
        target: our table.
        strict: whether its session refused values that do not fit.
    """
    statement = _COMMENT.sub(" ", text).strip()
    if _DROPS_DATABASE.match(statement):
        named = re.search(_name(target.database), statement, re.IGNORECASE)
        return Effect.REPLACED if named else Effect.NONE
    if _TEMPORARY.match(statement) or not _mentions(statement, schema, target):
        return Effect.NONE
    if _REMOVES.match(statement):
        return Effect.REPLACED
    if _CHANGES.match(statement):
        return Effect.UNLOGGED
    if _ALTERS.match(statement):
        return _effect_of_alter(statement, target, strict)
    return Effect.ALTERED if _DROPS_KEY.match(statement) else Effect.NONE


def _effect_of_alter(statement: str, target: Target, strict: bool) -> Effect:
    if _ALTERS_ROWS.search(statement):
        return Effect.REPLACED
    kept = keeps_values(statement, target.columns, strict=strict)
    return Effect.ALTERED if kept else Effect.CONVERTED


def _mentions(statement: str, schema: str, target: Target) -> bool:
    table = _name(target.table)
    if re.search(rf"{_name(target.database)}\s*\.\s*{table}", statement, re.IGNORECASE):
        return True
    here = schema.casefold() == target.database.casefold()
    return here and bool(re.search(rf"(?<!\.){table}(?!\s*\.)", statement, re.IGNORECASE))


def _name(name: str) -> str:
    plain = rf"(?<![\w$`]){re.escape(name)}(?![\w$`])"
    return f"(?:{re.escape('`' + name.replace('`', '``') + '`')}|{plain})"
