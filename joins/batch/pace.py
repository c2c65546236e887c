"""How fast batches go: what a status says of the last seconds."""

from dataclasses import dataclass

_WINDOW_S = 10.0
_LEAST_S = 1.0  # a shorter time says nothing


@dataclass(frozen=True, slots=True)
class _EndedBatch:
    begun_at_s: float
    ended_at_s: float
    records: int


class Pace:
    """Records a second and the time of a batch, from the batches that one runner has ended.

    Times are seconds of one clock that never goes back. One thread may tell it while another asks.
    """

    def __init__(self) -> None:
        self._begun_at_s: float | None = None
        self._ended: tuple[
            _EndedBatch, ...
        ] = ()  # a new one each time: whoever asks has a whole one

    def begin(self, now_s: float) -> None:
        """A batch begins, perhaps one that has begun before."""
        self._begun_at_s = now_s

    def end(self, now_s: float, records: int) -> None:
        """The batch that has begun is committed; one that this runner has not begun says nothing.

        Args:
            now_s: the time.
            records: that it has read.
        """
        if self._begun_at_s is None:
            return
        kept = (each for each in self._ended if now_s - each.ended_at_s <= _WINDOW_S)
        self._ended = (*kept, _EndedBatch(self._begun_at_s, now_s, records))
        self._begun_at_s = None

    @property
    def batch_ms(self) -> int | None:
        """Milliseconds from the pin of the newest batch to its commit; None before the first."""
        if not (ended := self._ended):
            return None
        return round(1000 * (ended[-1].ended_at_s - ended[-1].begun_at_s))

    def records_per_s(self, now_s: float) -> float | None:
        """Over about the last ten seconds, or over the newest batch if it took longer.

        A batch that runs does not lower it until it takes clearly longer than the one before.
        """
        if not (known := self._ended):
            return None
        until_s = self._until(known[-1], now_s)
        ended = [each for each in known if until_s - each.ended_at_s <= _WINDOW_S]
        if not ended:
            return 0.0
        span_s = max(_LEAST_S, until_s - ended[0].begun_at_s)
        return sum(each.records for each in ended) / span_s

    def _until(self, newest: _EndedBatch, now_s: float) -> float:
        begun_at_s = self._begun_at_s
        if begun_at_s is None:
            return now_s
        patience_s = _WINDOW_S + 2 * (newest.ended_at_s - newest.begun_at_s)
        return begun_at_s if now_s - begun_at_s <= patience_s else now_s
