"""Forms of Flink's that are not there, told apart so that the error says what to write instead."""

from service.sql.grammar.cursor import TokenCursor
from service.sql.text.dialect import SqlTokenKind

_PATTERNS = {
    "ILIKE": "Write LOWER(x) LIKE 'a%'.",
    "RLIKE": "Write REGEXP(x, '^a').",
    "REGEXP": "Write REGEXP(x, '^a').",
}


def refuse_pattern(cursor: TokenCursor) -> None:
    """See that no match of patterns that Flink does not have follows; the word may be an alias.

    Raises:
        SqlError: one does.
    """
    first = 1 if cursor.at_words("NOT") else 0
    word, follows = cursor.ahead(first), cursor.ahead(first + 1)
    name = word.text.upper()
    is_word = word.kind is SqlTokenKind.WORD and name in _PATTERNS
    if is_word and follows.kind is SqlTokenKind.STRING:
        raise cursor.script.error(word.start, f"{name} is not supported", hint=_PATTERNS[name])
