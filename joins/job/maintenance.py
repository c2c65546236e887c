"""The maintenance of all tables of one job, a step at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from joins.adapters.delta.log import DeltaLog
from joins.dimension.dimension import DimensionRuntime
from joins.dimension.fold import folded_version
from joins.dimension.maintenance import (
    ChangelogMaintenance,
    CurrentMaintenance,
    DimensionKey,
    LetterMaintenance,
    OutputMaintenance,
    StateMaintenance,
    Upkeep,
    UpkeepSettings,
)
from joins.durable.leases import StateLease


@dataclass(frozen=True, slots=True)
class JobLogs:
    """The tables of a job beside those of its dimensions.

    Attributes:
        outputs: what users read.
        letters: the dead letters, None where nobody writes any.
        states: what event batches keep.
    """

    outputs: Sequence[DeltaLog] = ()
    letters: DeltaLog | None = None
    states: Sequence[DeltaLog] = ()


class Maintenance:
    """All tables of one job; one caller at a time."""

    def __init__(
        self,
        dimensions: Sequence[DimensionRuntime],
        logs: JobLogs,
        epoch: int,
        settings: UpkeepSettings,
    ) -> None:
        self._dimensions = dimensions
        self._states = [StateMaintenance(Upkeep(log, epoch, settings)) for log in logs.states]
        self._changelogs = {
            d.dimension.name: ChangelogMaintenance(
                Upkeep(d.changelog, epoch, settings),
                _key(d),
            )
            for d in dimensions
        }
        self._currents = {
            d.dimension.name: CurrentMaintenance(Upkeep(d.current, epoch, settings))
            for d in dimensions
        }
        self._outputs = [OutputMaintenance(Upkeep(log, epoch, settings)) for log in logs.outputs]
        self._letters = [
            LetterMaintenance(Upkeep(log, epoch, settings)) for log in (logs.letters,) if log
        ]

    def steps(
        self,
        leased: Mapping[str, int],
        states: Sequence[StateLease] = (),
        oldest_batch: int | None = None,
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        """What there is to do, by name: each may fail without keeping the others from going on.

        Args:
            leased: dimension → the oldest version that must stay readable.
            states: the same of each table of the state; none before the first batch.
            oldest_batch: the oldest one whose pin is kept.
        """
        for dimension in self._dimensions:
            name = dimension.dimension.name
            yield f"upkeep {name}", partial(self._changelog, dimension, leased.get(name))
            yield f"upkeep {name} current", self._currents[name].run
        for at, state in enumerate(self._states):
            step = partial(state.run, states[at] if states else None)
            yield f"upkeep state {at}", step
        for at, output in enumerate(self._outputs):
            yield f"upkeep output {at}", output.run
        for letters in self._letters:
            yield "upkeep dead letters", partial(letters.run_behind, oldest_batch)

    def _changelog(self, dimension: DimensionRuntime, leased: int | None) -> None:
        folded = folded_version(dimension.current)
        upkeep = self._changelogs[dimension.dimension.name]
        upkeep.run(leased, folded, dimension.needed_from_ms)


def _key(runtime: DimensionRuntime) -> DimensionKey:
    dimension = runtime.dimension
    rowtime = None if dimension.watermark is None else dimension.watermark.rowtime
    return DimensionKey(dimension.primary_key, runtime.places.partitions, rowtime)
