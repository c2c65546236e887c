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


class SluiceError(Exception):
    """What happened to which object (`message`) and what the operator can do (`hint`).

    Attributes:
        message: lowercase fragment with the object's kind and quoted name, the value met and
            expected.
        hint: one full sentence that the operator can act on.
    """

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class WatermarkError(SluiceError):
    """A rule about progress was broken."""


class InvalidParameterError(WatermarkError):
    """A size, gap, offset, bound or name has no meaning."""


class UnknownChannelError(WatermarkError):
    """A channel, input or partition was never declared, or has been removed."""


class WatermarkRegressionError(WatermarkError):
    """Progress was taken back: a lower time, or event time after processing time."""


class FutureWatermarkError(WatermarkError):
    """Processing time was claimed before the clock has reached the promised time."""


class MissingTimestampError(WatermarkError):
    """Event-time work met a record without a timestamp."""


class InvalidTransitionError(WatermarkError):
    """A phase was asked for a step that its table does not have."""


class LostRecordsError(WatermarkError):
    """Retention has removed records that were held for the join."""


class StateFormatError(WatermarkError):
    """A stored state cannot be restored."""
