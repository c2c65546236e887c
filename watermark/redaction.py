"""Resolved secrets: where one is in a text that leaves this process, its reference stands instead.

Texts of foreign servers and libraries repeat what they were given: a refused login names its user.
So whoever resolves a secret makes a `Secret` of it, and as long as one lives in a process, no error
of ours has its value in its message, its hint or what caused it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Self
from urllib.parse import quote
from weakref import WeakValueDictionary

_WHOLE_BELOW = 4
_HEAD = 16
_living: "WeakValueDictionary[int, Secret]" = WeakValueDictionary()
_kept: "list[Secret]" = []


class Secret(str):
    """The value of a secret, a text like any other; copies and unpickled ones are secrets, too.

    Attributes:
        reference: what is shown in its place, such as `${secret:name}`.
        forms: the value as it is, and as JSON, Python, SQL and addresses write it.
    """

    reference: str
    forms: frozenset[str]

    def __new__(cls, value: str, reference: str) -> Self:
        """Remember the value for as long as it lives."""
        made = super().__new__(cls, value)
        made.reference = reference
        made.forms = frozenset(_forms(value)) - {""}
        _living[id(made)] = made
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (str(self), self.reference)

    def __repr__(self) -> str:
        return self.reference


def redacted(text: str) -> str:
    """`text` with references in place of the living secrets, also of such as it has cut short.

    A value below 4 characters is replaced where it is a whole word: all the letters of a text are
    no secret.
    """
    living = [reference() for reference in _living.valuerefs()]
    forms = {form: s.reference for s in living if s is not None for form in s.forms}
    for form in sorted(forms, key=len, reverse=True):
        text = _without(text, form, forms[form])
    return text


def redact(error: BaseException | None) -> None:
    """Redact what `error` and its causes tell; they are shown in tracebacks."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen and _living:
        seen.add(id(error))
        arguments = tuple(redacted(a) if isinstance(a, str) else a for a in error.args)
        if arguments != error.args:
            error.args = arguments
        if isinstance(error, OSError) and isinstance(error.strerror, str):
            error.strerror = redacted(error.strerror)
        error = error.__cause__ or error.__context__


def secrets_in(value: object) -> dict[str, str]:
    """Value → reference of the secrets in lists, tuples and mappings, for another process."""
    if isinstance(value, Secret):
        return {str(value): value.reference}
    inner: Iterator[object] = iter(())
    if isinstance(value, Mapping):
        inner = iter(value.values())
    elif isinstance(value, list | tuple):
        inner = iter(value)
    return {v: reference for each in inner for v, reference in secrets_in(each).items()}


def keep(secrets: Mapping[str, str]) -> None:
    _kept.extend(Secret(value, reference) for value, reference in secrets.items())


def _forms(value: str) -> set[str]:
    forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    forms |= {repr(value)[1:-1], repr(value.encode())[2:-1], quote(value, safe="")}
    return forms | {value.replace("'", "''"), value.replace("\\", "\\\\").replace("'", "\\'")}


def _without(text: str, form: str, reference: str) -> str:
    if len(form) < _WHOLE_BELOW:
        return re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", lambda _: reference, text)
    pieces: list[str] = []
    head, end = form[:_HEAD], 0
    while (at := text.find(head, end)) >= 0:
        pieces += (text[end:at], reference)
        end = at + len(head)
        while end < len(text) and end - at < len(form) and text[end] == form[end - at]:
            end += 1
    return "".join((*pieces, text[end:]))
