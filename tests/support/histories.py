"""Random histories of a changelog: generations, deletes, late snapshot rows, changed keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.support.changelog import record, watermark

PARTITIONS = 2
KEYS = 6
Commit = list[dict[str, Any]]


@dataclass
class Writer:
    """What a build side appends: offsets and positions grow, the row of a key stays in its channel.

    Steps are (what, key, number); what a step cannot do in its state it leaves out.

    Attributes:
        new_epochs: each copy begins an epoch, as the product's do; else positions go on.
        lows: generation → epoch, file and position of its LOW.
    """

    new_epochs: bool = False
    generation: int = 1
    epoch: int = 0
    position: int = 10
    file: int = 1
    lows: dict[int, tuple[int, int, int]] = field(default_factory=lambda: {1: (0, 1, 10)})
    offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    marked: set[int] = field(default_factory=set)
    commits: list[Commit] = field(default_factory=lambda: [[]])

    def write(self, steps: Sequence[tuple[str, int, int]]) -> list[Commit]:
        for what, key, number in steps:
            getattr(self, f"_{what}")(key, number)
        return self.commits

    def _row(self, op: str, key: int, **more: Any) -> None:
        partition = key % PARTITIONS
        place = {"partition": partition, "generation": self.generation}
        place |= {"epoch": self.epoch, "file": self.file}
        row = record(op, key, more.pop("pos"), self._offset(partition), **{**place, **more})
        self.commits[-1].append(row)

    def _offset(self, partition: int) -> int:
        self.offsets[partition] += 1
        return self.offsets[partition] - 1

    def _read(self, key: int, number: int) -> None:
        generation = max(1, self.generation - number % 2)
        epoch, file, pos = self.lows[generation]
        self._row("r", key, pos=pos, row=-1, file=file, epoch=epoch, generation=generation)

    def _change(self, key: int, number: int) -> None:
        self.position += 1 + number
        self._row("cud"[number % 3], key, pos=self.position)

    def _move(self, key: int, number: int) -> None:
        self.position += 1
        self._row("d", key, pos=self.position, row=0)
        self._row("c", (key + 1 + number) % KEYS, pos=self.position, row=1)

    def _rotate(self, key: int, number: int) -> None:
        self.file += 1
        self.position = 10

    def _mark(self, key: int, number: int) -> None:
        for partition in range(PARTITIONS):
            offset = self._offset(partition)
            row = watermark(offset, partition=partition, generation=self.generation)
            self.commits[-1].append(row)
            self.marked.add(self.generation)

    def _restart(self, key: int, number: int) -> None:
        """The table is copied anew."""
        if number == 0:
            self.generation += 1
            if self.new_epochs:
                self.epoch, self.file, self.position = self.epoch + 1, 1, 10
            self.lows[self.generation] = (self.epoch, self.file, self.position)

    def _commit(self, key: int, number: int) -> None:
        self.commits.append([])


_WEIGHTED = ["read"] * 5 + ["change"] * 8 + ["commit"] * 6 + ["move", "mark", "mark", "rotate"]
steps = st.lists(
    st.tuples(
        st.sampled_from([*_WEIGHTED, "restart"]),
        st.integers(0, KEYS - 1),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=70,
)
histories = steps.map(lambda found: Writer().write(found))
copied_histories = steps.map(lambda found: Writer(new_epochs=True).write(found))
