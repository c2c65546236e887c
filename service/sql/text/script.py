"""The text of a script: positions, excerpts, errors that point into it, masked credentials.

Parser and planner raise their errors through `Script.error`. Masking works on text that may not
parse, so it looks at pieces of the text instead of tokens.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from joins.plan.errors import NameHint, nearest, suggestion
from service.errors import ServiceError

__all__ = ["SqlError", "nearest", "not_too_deep", "printable", "suggestion"]

# Names of settings whose values are credentials, and names whose values often hold one.
_CREDENTIAL = re.compile(
    r"passw|pwd|secret|token|credential|jaas|api.?key|access.?key|account.?key|private.?key|ssl.?key",
    re.IGNORECASE,
)
_NEAR_CREDENTIAL = re.compile(r"key|ssl|kerberos|java|opts", re.IGNORECASE)
# The pieces of a script; `assign` stands between the name of a setting and its value.
_COMMENT = r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
_REST = (
    r"|(?P<string>'(?:[^']|'')*'?|\"[^\"\n]*\"?|`[^`]*`?)"
    r"|(?P<blank>\s+)|(?P<assign>==?|=>|:=?)|(?P<end>[,);])"
    r"|[\w.$-]+?(?=--|/\*|[^\w.$-]|\Z)|."
)
_LEXEME = re.compile(_COMMENT + _REST, re.DOTALL)
_LEXEME_OF_COMMENT = re.compile(r"(?P<comment>(?!))" + _REST, re.DOTALL)  # has no comments inside
_STRING_OR_COMMENT = re.compile(_COMMENT + r"|'(?:[^']|'')*'?|`(?:[^`]|``)*`?", re.DOTALL)
# Credentials within a piece, such as a URL or JAAS text: password=…, and user:…@host.
_PAIR = re.compile(
    rf"(?:{_CREDENTIAL.pattern})[\w.-]{{0,64}}[\"']?\s{{0,8}}[=:]\s{{0,8}}(?P<hidden>[^\s&;,]+)",
    re.IGNORECASE,
)
_CONTAINER = r"//[a-z0-9$-]{1,63}@[a-z0-9]{3,24}\.dfs\.core\.windows\.net"  # of Azure
_LOGIN = re.compile(r":(?!" + _CONTAINER + r")(?P<hidden>[^\s'\"`,@]{1,256})@")
_REFERENCE = re.compile(r"\$\{secret:[\w.-]{1,128}\}")
_QUOTES = "'\"`"
_LEAST_FRAGMENT = 4  # characters; a shorter credential is replaced only if it is quoted as a whole


def may_be_credential(name: str, value: str) -> bool:
    """True if the value of an ignored setting must not be stored with the script."""
    wide = _CREDENTIAL.search(name) or _NEAR_CREDENTIAL.search(name)
    return wide is not None or any(each.search(value) for each in (_PAIR, _LOGIN))


def masked(text: str) -> str:
    """`text` with possible credentials as asterisks; same length, same lines."""
    return _starred(text, _credentials(text, _LEXEME))


def masked_comments(text: str, known: Collection[str]) -> str:
    """`text` with `known` values and possible credentials in its comments masked; same length."""
    ranges: list[tuple[int, int]] = []
    for comment in _comments(text):
        ranges += _credentials_of_comment(comment)
        first, inner = _text_of_comment(comment)
        for value in known:
            matches = re.finditer(re.escape(value), inner) if value else ()
            ranges += ((first + f.start(), first + f.end()) for f in matches)
    return _starred(text, ranges)


def _comments(text: str) -> Iterator[re.Match[str]]:
    return (match for match in _STRING_OR_COMMENT.finditer(text) if match["comment"])


def credentials_in(script: str) -> tuple[str, ...]:
    """The texts that `masked` hides, longest first."""
    fragments = {script[start:end].strip(_QUOTES) for start, end in _credentials(script, _LEXEME)}
    return tuple(sorted(fragments, key=len, reverse=True))


def _without_credentials(message: str, fragments: Iterable[str]) -> str:
    for fragment in fragments:
        if len(fragment) >= _LEAST_FRAGMENT:
            message = message.replace(fragment, "***")
        elif fragment:
            message = message.replace(f'"{fragment}"', '"***"')
    return message


def _starred(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    shown = list(text)
    for start, end in ranges:
        shown[start:end] = ("\n" if char == "\n" else "*" for char in text[start:end])
    return "".join(shown)


def _credentials_of_comment(comment: re.Match[str]) -> Iterator[tuple[int, int]]:
    first, inner = _text_of_comment(comment)
    return ((first + a, first + b) for a, b in _credentials(inner, _LEXEME_OF_COMMENT))


def _text_of_comment(comment: re.Match[str]) -> tuple[int, str]:
    """The text between the comment's marks, and its position in the script."""
    text = comment[0][2:]
    return comment.start() + 2, text if comment[0][0] == "-" else text.removesuffix("*/")


def _credentials(text: str, lexeme: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Ranges of `text` that may be credentials; secret references are not.

    A name such as 'password' makes each piece up to the next `,`, `)` or `;` a credential.
    """
    names_credential = is_value = False
    for match in lexeme.finditer(text):
        if match["comment"]:
            yield from _credentials_of_comment(match)
        elif match["blank"]:
            continue
        elif match["end"]:
            names_credential = is_value = False
        elif names_credential and match["assign"]:
            is_value = True
        elif is_value or (names_credential and match["string"]):
            is_value = True
            yield from _whole_value(match[0], match.start())
        else:
            names_credential = _CREDENTIAL.search(match[0]) is not None
            yield from _parts_of_value(match[0], match.start())


def _whole_value(lexeme: str, at: int) -> Iterator[tuple[int, int]]:
    """The range of a value without its quotes, which may be unclosed."""
    if _REFERENCE.fullmatch(lexeme.strip(_QUOTES)):
        return
    quote = lexeme[0] if lexeme[0] in _QUOTES else ""
    first = len(quote)
    last = len(lexeme) - (1 if quote and lexeme.endswith(quote, 1) else 0)
    yield at + first, at + last


def _parts_of_value(lexeme: str, at: int) -> Iterator[tuple[int, int]]:
    if _REFERENCE.fullmatch(lexeme.strip(_QUOTES)):
        return
    for pattern in (_PAIR, _LOGIN):
        for match in pattern.finditer(lexeme):
            yield at + match.start("hidden"), at + match.end("hidden")


OUTSIDE = "This is outside of what a job does."
"""The hint of a refusal begins so if no other wording of the script is accepted."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a script that removes a fault: `text` replaces the range from `start` to `end`.

    Attributes:
        note: a full sentence about remaining work or consequences; may be empty.
        sure: False if the change is a guess or alters results: Sluice proposes it, but never
            applies it.
    """

    start: int
    end: int
    text: str
    note: str = ""
    sure: bool = True


class SqlError(ServiceError, fault="sql"):
    """A script cannot be planned; the error has line and column.

    Attributes:
        line: 1-based line of the script.
        column: 1-based column in characters.
        excerpt: the line of the script and a caret below it; secrets are masked.
        at: offset into the text of the script.
        edit: a change that removes the fault; None if none is known.
        more: further faults of the same statement.
        follows: True if another fault of the script causes this one; only the other is reported.
        findings: all faults of the script as JSON objects, set by who reports the refusal.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str,
        line: int = 1,
        column: int = 1,
        excerpt: str = "",
        at: int = 0,
        edit: Edit | None = None,
    ) -> None:
        super().__init__(
            f"line {line}, column {column}: {printable(message)}", hint=printable(hint)
        )
        self.line = line
        self.column = column
        self.excerpt = excerpt
        self.at = at
        self.edit = edit
        self.more: tuple[SqlError, ...] = ()
        self.follows = False
        self.findings: list[dict[str, object]] = []

    @property
    def outside(self) -> bool:
        """True if no other wording of the script is accepted."""
        return self.hint.startswith(OUTSIDE)

    @property
    def bare_message(self) -> str:
        """The message without line and column."""
        return self.message.removeprefix(f"line {self.line}, column {self.column}: ")


def printable(text: str) -> str:
    """`text` for one line of a terminal, with as many characters: a caret below it stays right."""
    text = text.replace("\t", " ")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Raise SqlError for a RecursionError of the block: parser and planner are recursive."""
    try:
        yield
    except RecursionError as exc:
        raise SqlError(
            "the script is nested too deeply", hint="Split the expression or flatten it."
        ) from exc


_EXCERPT_WIDTH = 120
_NAME = re.compile(r"'(?:[^']|'')*'|`[^`]*`|\w+")


@dataclass(frozen=True)
class Script:
    """User SQL as submitted. A position is an offset into `text`.

    Attributes:
        zone: session time zone, from SET.
        catalog: statements of the catalog that were appended to the user's; the end of `text`.
        coded_functions: names of CREATE FUNCTION in capitals; no job can call such code.
    """

    text: str
    zone: str = "UTC"
    catalog: str = ""
    coded_functions: frozenset[str] = frozenset()

    @cached_property
    def masked_text(self) -> str:
        return masked(self.text)

    @cached_property
    def _own_credentials(self) -> tuple[str, ...]:
        return credentials_in(self.text)

    def line_and_column(self, at: int) -> tuple[int, int]:
        start = self.text.rfind("\n", 0, at) + 1
        return self.text.count("\n", 0, at) + 1, at - start + 1

    def error(self, at: int, message: str, *, hint: str, edit: Edit | None = None) -> SqlError:
        """The SqlError of the fault at `at`, to raise.

        Credentials are removed from `message`, which may quote values. A hint quotes names only; a
        password such as "sluice" must not garble the command that the hint tells.
        """
        line, column = self.line_and_column(at)
        shown = _without_credentials(message, self._own_credentials)
        if self.catalog and at >= len(self.text) - len(self.catalog):  # not the user's text
            shown, line, column = f"as the catalog declares it, {shown}", 1, 1
            edit = None
        elif edit is None:
            edit = self._suggested(at, hint)
        excerpt = self.excerpt(at)
        return SqlError(
            shown, hint=hint, line=line, column=column, excerpt=excerpt, at=at, edit=edit
        )

    def _suggested(self, at: int, hint: str) -> Edit | None:
        """Replaces the name at `at` by the one that the hint proposes."""
        name = _NAME.match(self.text, at)
        if not isinstance(hint, NameHint) or name is None:
            return None
        quote = name[0][0] if name[0][0] in "'`" else ""
        return Edit(at, name.end(), quote + hint.meant + quote, sure=False)

    def shown(self, start: int, end: int) -> str:
        """A part of the text for a message, credentials masked."""
        return self.masked_text[start:end]

    def excerpt(self, at: int) -> str:
        """The line of the character at `at`, credentials masked, and a caret below it."""
        _, column = self.line_and_column(at)
        start = at - column + 1
        end = self.text.find("\n", at)
        line = self.masked_text[start : len(self.text) if end < 0 else end]
        first = max(0, column - 1 - _EXCERPT_WIDTH // 2)
        shown = printable(line[first : first + _EXCERPT_WIDTH])
        return f"{shown}\n{' ' * (column - 1 - first)}^"
