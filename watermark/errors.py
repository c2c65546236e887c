"""The root of all our errors, and those of this package.

| error | fault |
|---|---|
| `SluiceError` | root: what happened, to which object, and what to do |
| `WatermarkError` | root of this package |
| `InvalidParameterError` | a size, gap, offset, bound or name that has no meaning |
| `UnknownChannelError` | a channel, input or partition that was never declared |
| `WatermarkRegressionError` | a lower time, or event time after processing time |
| `FutureWatermarkError` | processing time claimed before the clock is at the promised time |
| `MissingTimestampError` | event-time work on a record without a timestamp |
| `InvalidTransitionError` | a phase was asked for a step that its table does not have |
| `LostRecordsError` | retention has removed records that were held for the join |
| `StateFormatError` | a stored state cannot be restored |
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from watermark.redaction import redact, redacted


class SluiceError(Exception):
    """What happened to which object (`message`) and what the operator can do (`hint`).

    It has no secret's value, and takes it out of the error that it is made of.

    Attributes:
        message: lowercase fragment with the object's kind and quoted name, the value met and
            expected.
        hint: one full sentence that the operator can act on.
        detail: the text of a library or server behind it, for those who look closer; often empty.
        fault: the stable name of its class, which jobs and the API keep; never changed.
    """

    # reads better deep: whoever catches an error names its kind, and kinds have kinds.

    fault: ClassVar[str] = "sluice"

    def __init_subclass__(cls, *, fault: str) -> None:
        cls.fault = fault

    def __init__(self, message: str, *, hint: str, detail: str = "") -> None:
        super().__init__(redacted(message))
        self.message = redacted(message)
        self.hint = redacted(hint)
        self.detail = redacted(detail)
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
    """A phase was asked for a step that its table does not have; report it."""


class LostRecordsError(WatermarkError, fault="lost-records"):
    """Retention has removed records that were held for the join."""


class StateFormatError(WatermarkError, fault="state-format"):
    """A stored state cannot be restored."""


@contextmanager
def reading_state(what: str) -> Iterator[None]:
    """Turn what a damaged state makes Python raise into one error.

    Args:
        what: whose state, for the message.

    Raises:
        StateFormatError: the block could not make sense of the state.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, InvalidParameterError) as exc:
        raise StateFormatError(
            f"stored state of {what} is damaged or of another format",
            hint="Restore from another checkpoint, or start without state.",
        ) from exc
