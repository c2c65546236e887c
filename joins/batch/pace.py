"""How fast batches go: what a status says of the last seconds."""

from dataclasses import dataclass

_WINDOW_S = 10.0
_LEAST_S = 1.0  # a shorter time says nothing


@dataclass(frozen=True, slots=True)
class _EndedBatch:
    begun_at_s: float
    ended_at_s: float
    records: int


@dataclass(frozen=True, slots=True)
class _Times:
    """When the running batch has begun, None between batches; and the newest that have ended."""

    begun_at_s: float | None = None
    ended: tuple[_EndedBatch, ...] = ()


class Pace:
    """Records a second and the time of a batch, from the batches that one runner has ended.

    Times are seconds of one clock that never goes back. One thread may tell it while another asks.
    """

    def __init__(self) -> None:
        self._times = _Times()  # replaced as a whole, so that another thread reads a whole one

    def begin(self, now_s: float) -> None:
        self._times = _Times(now_s, self._times.ended)

    def end(self, now_s: float, records: int) -> None:
        """The batch that has begun is committed; one that this runner has not begun says nothing.

        Args:
            now_s: the time.
            records: that it has read.
        """
        times = self._times
        if times.begun_at_s is None:
            return
        kept = (each for each in times.ended if now_s - each.ended_at_s <= _WINDOW_S)
        self._times = _Times(None, (*kept, _EndedBatch(times.begun_at_s, now_s, records)))

    @property
    def batch_ms(self) -> int | None:
        """Milliseconds from the pin of the newest batch to its commit; None before the first."""
        if not (ended := self._times.ended):
            return None
        return round(1000 * (ended[-1].ended_at_s - ended[-1].begun_at_s))

    def records_per_s(self, now_s: float) -> float | None:
        """Over about the last ten seconds, or over the newest batch if it took longer.

        A batch that runs does not lower it until it takes clearly longer than the one before.
        """
        times = self._times
        if not (known := times.ended):
            return None
        until_s = _until(times.begun_at_s, known[-1], now_s)
        ended = [each for each in known if until_s - each.ended_at_s <= _WINDOW_S]
        if not ended:
            return 0.0
        span_s = max(_LEAST_S, until_s - ended[0].begun_at_s)
        return sum(each.records for each in ended) / span_s


def _until(begun_at_s: float | None, newest: _EndedBatch, now_s: float) -> float:
    if begun_at_s is None:
        return now_s
    patience_s = _WINDOW_S + 2 * (newest.ended_at_s - newest.begun_at_s)
    return begun_at_s if now_s - begun_at_s <= patience_s else now_s
