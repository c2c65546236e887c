"""Forms of Flink's that are not there, told apart so that the error says what to write instead."""

from service.sql.grammar.cursor import TokenCursor
from service.sql.text.dialect import SqlTokenKind

_TO_UNIT = ("FLOOR", "CEIL", "CEILING")
_PATTERNS = {
    "ILIKE": "Write LOWER(x) LIKE 'a%'.",
    "REGEXP": "Use LIKE or STARTSWITH; regular expressions have no bound on their cost.",
    "RLIKE": "Use LIKE or STARTSWITH; regular expressions have no bound on their cost.",
    "SIMILAR": "Use LIKE or STARTSWITH; regular expressions have no bound on their cost.",
}


def refuse_unit(cursor: TokenCursor, word: str) -> None:
    """See that no `TO unit` follows the argument of a function, as in FLOOR(x TO HOUR).

    Raises:
        SqlError: one does.
    """
    if word in _TO_UNIT and cursor.at_words("TO"):
        raise cursor.script.error(
            cursor.at,
            f"{word}(x TO unit) is not supported",
            hint="Write CAST(x AS DATE) for its day, DATE_FORMAT(x, 'yyyy-MM-dd HH:00') for its "
            "hour as text; to count by it, use a TUMBLE window.",
        )


def refuse_pattern(cursor: TokenCursor) -> None:
    """See that no other match of patterns than LIKE follows an operand; the word may be an alias.

    Raises:
        SqlError: one does.
    """
    first = 1 if cursor.at_words("NOT") else 0
    word, follows = cursor.ahead(first), cursor.ahead(first + 1)
    name = word.text.upper()
    is_word = word.kind is SqlTokenKind.WORD and name in _PATTERNS
    if is_word and (follows.kind is SqlTokenKind.STRING or follows.text.upper() == "TO"):
        whole = "SIMILAR TO" if name == "SIMILAR" else name
        raise cursor.script.error(word.start, f"{whole} is not supported", hint=_PATTERNS[name])
