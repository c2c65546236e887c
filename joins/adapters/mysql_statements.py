"""What a statement in the binlog means for the captured table."""

import re
from enum import Enum

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


class Effect(Enum):
    """What the statement does to the captured table."""

    NONE = "nothing"
    UNLOGGED = "its rows were changed without row events"
    REPLACED = "it was emptied, removed or replaced"
    ALTERED = "its definition was changed"


def effect_of(schema: str, text: str, *, database: str, table: str) -> Effect:
    """The effect of `text`, run with default database `schema`, on `database.table`."""
    statement = _COMMENT.sub(" ", text).strip()
    if _DROPS_DATABASE.match(statement):
        named = re.search(_name(database), statement)
        return Effect.REPLACED if named else Effect.NONE
    if _TEMPORARY.match(statement) or not _mentions(statement, schema, database, table):
        return Effect.NONE
    if _REMOVES.match(statement):
        return Effect.REPLACED
    if _CHANGES.match(statement):
        return Effect.UNLOGGED
    if _ALTERS.match(statement):
        return Effect.REPLACED if _ALTERS_ROWS.search(statement) else Effect.ALTERED
    return Effect.NONE


def _mentions(statement: str, schema: str, database: str, table: str) -> bool:
    qualified = rf"{_name(database)}\s*\.\s*{_name(table)}"
    if re.search(qualified, statement):
        return True
    return schema == database and bool(re.search(rf"(?<!\.){_name(table)}(?!\s*\.)", statement))


def _name(name: str) -> str:
    plain = rf"(?<![\w$`]){re.escape(name)}(?![\w$`])"
    return f"(?:{re.escape('`' + name.replace('`', '``') + '`')}|{plain})"
