"""Masks possible credentials in excerpts, messages and comments of a script.

A refused script was not parsed, so a password may stand anywhere: without quotes, in a URL, in a
comment, behind a mistyped option. The rule therefore works on text: behind a word such as
`password`, everything up to the next comma, closing parenthesis or semicolon is masked, and the
login of a URL too.
"""

import re
from collections.abc import Collection, Iterable, Iterator

_CREDENTIAL = re.compile(
    r"passw|pwd|secret|token|credential|jaas|api.?key|access.?key|account.?key|private.?key|ssl.?key",
    re.IGNORECASE,
)
_NEAR_CREDENTIAL = re.compile(r"key|ssl|kerberos|java|opts", re.IGNORECASE)
"""Names of settings whose values often hold a credential."""
_COMMENT = r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
_REST = (
    r"|(?P<string>'(?:[^']|'')*'?|\"[^\"\n]*\"?|`[^`]*`?)"
    r"|(?P<blank>\s+)|(?P<joint>==?|=>|:=?)|(?P<end>[,);])"
    r"|[\w.$-]+?(?=--|/\*|[^\w.$-]|\Z)|."
)
_LEXEME = re.compile(_COMMENT + _REST, re.DOTALL)
_LEXEME_OF_COMMENT = re.compile(r"(?P<comment>(?!))" + _REST, re.DOTALL)
_STRING_OR_COMMENT = re.compile(_COMMENT + r"|'(?:[^']|'')*'?|`(?:[^`]|``)*`?", re.DOTALL)
_PAIR = re.compile(
    rf"(?:{_CREDENTIAL.pattern})[\w.-]{{0,64}}[\"']?\s{{0,8}}[=:]\s{{0,8}}(?P<hidden>[^\s&;,]+)",
    re.IGNORECASE,
)
_CONTAINER = r"//[a-z0-9$-]{1,63}@[a-z0-9]{3,24}\.dfs\.core\.windows\.net"  # not a login
_LOGIN = re.compile(r":(?!" + _CONTAINER + r")(?P<hidden>[^\s'\"`,@]{1,256})@")
_REFERENCE = re.compile(r"\$\{secret:[\w.-]{1,128}\}")
_QUOTES = "'\"`"
_LEAST_FRAGMENT = 4


def may_be_credential(name: str, value: str) -> bool:
    """True if a setting that nothing reads is better not stored with its value."""
    wide = _CREDENTIAL.search(name) or _NEAR_CREDENTIAL.search(name)
    return wide is not None or any(each.search(value) for each in (_PAIR, _LOGIN))


def masked(text: str) -> str:
    return _starred(text, _hidden(text, _LEXEME))


def masked_comments(text: str, known: Collection[str]) -> str:
    """`text` with `known` values and possible credentials in its comments masked; same length."""
    ranges: list[tuple[int, int]] = []
    for comment in _comments(text):
        ranges += _inside(comment)
        first, inner = _inner(comment)
        for value in known:
            matches = re.finditer(re.escape(value), inner) if value else ()
            ranges += ((first + f.start(), first + f.end()) for f in matches)
    return _starred(text, ranges)


def _comments(text: str) -> Iterator[re.Match[str]]:
    return (match for match in _STRING_OR_COMMENT.finditer(text) if match["comment"])


def hidden_fragments(script: str) -> tuple[str, ...]:
    """The possible credentials of a script, the longest first."""
    fragments = {script[start:end].strip(_QUOTES) for start, end in _hidden(script, _LEXEME)}
    return tuple(sorted(fragments, key=len, reverse=True))


def without_fragments(message: str, fragments: Iterable[str]) -> str:
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


def _inside(comment: re.Match[str]) -> Iterator[tuple[int, int]]:
    first, inner = _inner(comment)
    return ((first + a, first + b) for a, b in _hidden(inner, _LEXEME_OF_COMMENT))


def _inner(comment: re.Match[str]) -> tuple[int, str]:
    text = comment[0][2:]
    return comment.start() + 2, text if comment[0][0] == "-" else text.removesuffix("*/")


def _hidden(text: str, lexeme: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Ranges of `text` that may be credentials; secret references are not."""
    names_credential = is_value = False
    for match in lexeme.finditer(text):
        if match["comment"]:
            yield from _inside(match)
        elif match["blank"]:
            continue
        elif match["end"]:
            names_credential = is_value = False
        elif names_credential and match["joint"]:
            is_value = True
        elif is_value or (names_credential and match["string"]):
            is_value = True
            yield from _content(match[0], match.start())
        else:
            names_credential = _CREDENTIAL.search(match[0]) is not None
            yield from _embedded(match[0], match.start())


def _content(lexeme: str, at: int) -> Iterator[tuple[int, int]]:
    if _REFERENCE.fullmatch(lexeme.strip(_QUOTES)):
        return
    quote = lexeme[0] if lexeme[0] in _QUOTES else ""
    first = len(quote)
    last = len(lexeme) - (1 if quote and lexeme.endswith(quote, 1) else 0)
    yield at + first, at + last


def _embedded(lexeme: str, at: int) -> Iterator[tuple[int, int]]:
    for pattern in (_PAIR, _LOGIN):
        for match in pattern.finditer(lexeme):
            yield at + match.start("hidden"), at + match.end("hidden")
