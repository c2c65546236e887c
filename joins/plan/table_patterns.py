"""Names of captured tables: one table, or all whose names match regular expressions.

The rules are Flink CDC's: an expression matches a whole name, without regard to case.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

_SPECIAL = frozenset("\\*+?|()[]{}^,")
_SYSTEM = frozenset({"mysql", "sys", "information_schema", "performance_schema"})


def is_pattern(name: str) -> bool:
    """True if a name in a script is a regular expression; a name with `.` or `$` is not."""
    return not _SPECIAL.isdisjoint(name)


def why_unusable(pattern: str) -> str | None:
    """What is wrong with an expression, None if nothing is.

    Flink CDC puts both expressions into one and its Debezium splits a list at commas: outside of
    parentheses and braces a `|` or a comma means something else there.
    """
    depth, is_escaped = 0, False
    for character in pattern:
        if is_escaped:
            is_escaped = False
            continue
        is_escaped = character == "\\"
        depth += (character in "([{") - (character in ")]}")
        if character in "|," and depth == 0:
            return f'it has "{character}" outside of parentheses'
    try:
        _compiled(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else "invalid"
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    return None


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:  # noqa: ANN401 (re2 has no types)
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    return re2.compile(pattern if is_pattern(pattern) else re2.escape(pattern), options)


@dataclass(frozen=True, slots=True)
class TablePattern:
    """All tables of a server whose database and table match; system databases never do."""

    database: str
    table: str

    @property
    def is_one(self) -> bool:
        """True if it names one table."""
        return not (is_pattern(self.database) or is_pattern(self.table))

    def has(self, database: str, table: str) -> bool:
        return self.has_database(database) and self.has_table(table)

    def has_database(self, name: str) -> bool:
        is_system = name.lower() in _SYSTEM
        return not is_system and _compiled(self.database).fullmatch(name) is not None

    def has_table(self, name: str) -> bool:
        return _compiled(self.table).fullmatch(name) is not None
