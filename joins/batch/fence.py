"""Whether a newer runner has taken the job over, as one looks before each pin and once a second."""

from joins.adapters.delta.log import DeltaLog
from joins.durable.pins import PinStore


def check_fence(pins: PinStore, log: DeltaLog, epoch: int) -> None:
    """See that no newer runner has taken over.

    Args:
        pins: of the job; where they are stored, so are the claims of runners.
        log: of a table that each runner fences at its start.
        epoch: of this runner.

    Raises:
        FencedError: one has.
        SourceUnavailableError: a store does not answer.
    """
    stored = pins.stored
    if stored is None:
        log.batches.check_epoch(epoch)
    else:
        stored.check_epoch()
