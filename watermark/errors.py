"""The root of all our errors, and those of this package."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import ClassVar, Self
from urllib.parse import quote
from weakref import WeakValueDictionary

_WHOLE_BELOW = 4
_HEAD = 16
_living: "WeakValueDictionary[int, Secret]" = WeakValueDictionary()
_kept: "list[Secret]" = []


class Secret(str):
    """The value of a secret, a text like any other; copies and unpickled ones are secrets, too."""

    reference: str  # what is shown in its place, such as `${secret:name}`
    forms: frozenset[str]  # the value as it is, and as JSON, Python, SQL and addresses write it

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
    """`text` with references in place of the living secrets, also of truncated ones.

    A secret below 4 characters is replaced only where it is a whole word.
    """
    living = [reference() for reference in _living.valuerefs()]
    forms = {form: s.reference for s in living if s is not None for form in s.forms}
    for form in sorted(forms, key=len, reverse=True):
        text = _without(text, form, forms[form])
    return text


def redact(error: BaseException | None) -> None:
    """Redact the texts of `error` and its causes, which tracebacks show."""
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
    """Value → reference of the secrets in collections and dataclasses, for another process."""
    if isinstance(value, Secret):
        return {str(value): value.reference}
    inner: Iterator[object] = iter(())
    if isinstance(value, Mapping):
        inner = iter(value.values())
    elif isinstance(value, list | tuple):
        inner = iter(value)
    elif is_dataclass(value):
        inner = (getattr(value, each.name) for each in fields(value))
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


def _shown(text: str) -> str:
    """`text` redacted; the bytes of a file's name that are no UTF-8 are shown by number."""
    return redacted(text).encode("utf-8", "backslashreplace").decode()


class SluiceError(Exception):
    """What happened to which object (`message`) and what the operator can do (`hint`).

    It has no secret's value, and takes it out of the error that it is made of.
    """

    # reads better deep: whoever catches an error names its kind, and kinds have kinds.

    # the stable name of its class, which jobs and the API keep; never changed
    fault: ClassVar[str] = "sluice"

    def __init_subclass__(cls, *, fault: str) -> None:
        cls.fault = fault

    def __init__(self, message: str, *, hint: str, detail: str = "") -> None:
        # lowercase fragment with the object's kind and quoted name, the value met and expected
        self.message = _shown(message)
        self.hint = _shown(hint)  # one full sentence that the operator can act on
        # the text of a library or server behind it, for those who look closer; often empty
        self.detail = _shown(detail)
        super().__init__(self.message)
        redact(sys.exc_info()[1])


class WatermarkError(SluiceError, fault="watermark"):
    """A rule about progress was broken."""


class InvalidParameterError(WatermarkError, fault="invalid-parameter"):
    """A size, gap, offset, bound or name has no meaning."""


class UnknownChannelError(WatermarkError, fault="unknown-channel"):
    """A channel, input or partition was never declared, or has been removed."""


class WatermarkRegressionError(WatermarkError, fault="watermark-regression"):
    """Progress was taken back: a lower time, or event time after processing time."""


class FutureWatermarkError(WatermarkError, fault="future-watermark"):
    """Processing time was claimed before the clock has reached the promised time."""


class MissingTimestampError(WatermarkError, fault="missing-timestamp"):
    """Event-time work met a record without a timestamp."""


class InvalidTransitionError(WatermarkError, fault="invalid-transition"):
    """A state machine was asked for a step that its table does not have; report it."""


class LostRecordsError(WatermarkError, fault="lost-records"):
    """Retention has removed records that were held for the join."""


class StateFormatError(WatermarkError, fault="state-format"):
    """A stored state cannot be restored."""


@contextmanager
def reading_state(what: str) -> Iterator[None]:
    """Turn what a damaged state of `what` makes Python raise into StateFormatError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, InvalidParameterError) as exc:
        raise StateFormatError(
            f"stored state of {what} is damaged or of another format",
            hint="Restore from another checkpoint, or start without state.",
        ) from exc
