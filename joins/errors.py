"""Errors of the data path.

| error | fault |
|---|---|
| `JoinError` | root of this package |
| `SourceError` | a database, topic or table that we read is missing, refused us or cannot be used |
| `SourceUnavailableError` | the same, but waiting may help: the job is STALLED and goes on |
| `SnapshotNeededError` | the binlog cannot be followed on, a new snapshot can |
| `SinkError` | an output that we write is missing, refused us or does not fit |
| `CheckpointError` | the job's durable files are damaged or of another format |
| `CheckpointInUseError` | another runner holds the checkpoint |
| `FencedError` | a newer runner of the same job has taken over |
| `StoppingError` | a batch was not begun, because the job is being stopped |
| `IndexBuildError` | the lookup index cannot be built or read |
| `ExpressionError` | an expression cannot be evaluated in Arrow |
"""

from watermark.errors import SluiceError


class JoinError(SluiceError):
    """A fault of the data path."""


class SourceError(JoinError):
    """A source cannot be used as it is; waiting does not help."""


class SourceUnavailableError(SourceError):
    """A source cannot be reached now; the job waits and goes on when it is back."""


class SnapshotNeededError(SourceError):
    """What happened is not in the binlog row by row: the table must be copied again."""


class SinkError(JoinError):
    """An output cannot be written."""


class CheckpointError(JoinError):
    """The job's durable files cannot be used."""


class CheckpointInUseError(CheckpointError):
    """Another runner of the same job is alive."""


class FencedError(JoinError):
    """A newer runner owns the job."""


class StoppingError(JoinError):
    """The job is being stopped; the batch is run after the next start."""


class IndexBuildError(JoinError):
    """The lookup index of a dimension version cannot be built or read."""


class ExpressionError(JoinError):
    """An expression cannot be compiled or evaluated."""
