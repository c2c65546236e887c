"""What is wrong with the records of a batch: of each the first thing that was seen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from joins.kernels.debezium.changes import BadRecord, RecordFault

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Faults:
    """Faults by record; `sound` marks the records without one."""

    sound: Mask
    _records: dict[int, BadRecord] = field(default_factory=dict)

    @classmethod
    def of(cls, count: int) -> Self:
        return cls(np.ones(count, np.bool_))

    def add(self, fault: RecordFault, row: int, reason: str) -> None:
        if self.sound[row]:
            self.sound[row] = False
            self._records[row] = BadRecord(row, fault, reason)

    def add_all(self, fault: RecordFault, reasons: Mapping[int, str]) -> None:
        for row, reason in reasons.items():
            self.add(fault, row, reason)

    def where(self, fault: RecordFault, mask: Mask, reason: str) -> None:
        for row in np.flatnonzero(mask & self.sound).tolist():
            self.add(fault, row, reason)

    def records(self) -> tuple[BadRecord, ...]:
        return tuple(self._records[row] for row in sorted(self._records))
