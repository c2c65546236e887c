"""The time that the newest row of each key has: what a deletion has that brings no time itself.

A null value has none, nor needs a connector send the deleted row. The row that a deletion removes
is the last one that came of its key, whatever its time is, as in Flink, where the deleted row is
taken from the state of its key (`ChangelogNormalize`).
"""

import numpy as np
import numpy.typing as npt

from joins.kernels.index.hash_table import Hashes

Times = npt.NDArray[np.int64]

GONE = np.iinfo(np.int64).min
"""There is no row of the key."""
NO_TIME = GONE + 1
"""Its row has no time: the column is NULL."""
_KEPT = np.dtype([("hash", np.uint64), ("time", np.int64)])


class RowTimes:
    """Sorted runs of hashes, the older ones larger; of a hash in several the newest run counts.

    Two keys of one hash, of 2^64, count as one. 16 bytes a key, deleted ones too.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Hashes, Times]] = []

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _ in self._runs)

    def take(self, hashes: Hashes, times: Times) -> tuple[Times, bytes]:
        """Take changes, in their order.

        Args:
            hashes: of the keys.
            times: of the rows, or `NO_TIME`; `GONE` of deletions.

        Returns:
            What each key had before its change, `GONE` if nothing; and what `load` takes.
        """
        order = np.argsort(hashes, kind="stable")
        keys, of_key = hashes[order], times[order]
        first = np.ones(len(keys), dtype=np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        last = np.append(first[1:], True) if len(keys) else first
        before = np.empty(len(keys), np.int64)
        before[1:] = of_key[:-1]
        before[first] = self._known(keys[first])
        self._append(keys[last], of_key[last])
        back = np.empty_like(before)
        back[order] = before
        return back, _packed(keys[last], of_key[last])

    def load(self, data: bytes) -> None:
        kept = np.frombuffer(data, _KEPT)
        self._append(*_newest(kept["hash"], kept["time"]))

    def all(self) -> bytes:
        parts = [np.concatenate(each) for each in zip(*self._runs, strict=True)]
        return _packed(*_newest(*parts)) if parts else b""

    def _known(self, hashes: Hashes) -> Times:
        known = np.full(len(hashes), GONE)
        for run, times in self._runs:
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            is_there = run[places] == hashes
            known[is_there] = times[places[is_there]]
        return known

    def _append(self, hashes: Hashes, times: Times) -> None:
        if not len(hashes):
            return
        runs = self._runs
        runs.append((hashes, times))
        while len(runs) > 1 and len(runs[-2][0]) <= 2 * len(runs[-1][0]):
            later, earlier = runs.pop(), runs.pop()
            keys = np.concatenate([earlier[0], later[0]])
            runs.append(_newest(keys, np.concatenate([earlier[1], later[1]])))


def kept_size() -> int:
    """Bytes of a key in what `take` gives."""
    return _KEPT.itemsize


def _newest(hashes: Hashes, times: Times) -> tuple[Hashes, Times]:
    """The last of each hash, ascending."""
    order = np.argsort(hashes, kind="stable")
    hashes, times = hashes[order], times[order]
    last = np.ones(len(hashes), dtype=np.bool_)
    last[:-1] = hashes[1:] != hashes[:-1]
    return hashes[last], times[last]


def _packed(hashes: Hashes, times: Times) -> bytes:
    kept = np.empty(len(hashes), _KEPT)
    kept["hash"], kept["time"] = hashes, times
    return kept.tobytes()
