"""What each commit of a fold tells, so that an index can be made of it and the commits behind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from joins.adapters.delta.log import DeltaLog
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.digest import ChangelogState

VERSION_KEY = "sluice.changelog_version"
_MARKS_KEY = "sluice.marks"
_HIGH_WATER_KEY = "sluice.high_water"
_RECORDS_KEY = "sluice.records"


@dataclass(frozen=True, slots=True)
class Folded:
    """What `current` equals.

    Attributes:
        records: of the changelog topic up to there.
        generation: the newest that they have.
    """

    records: int
    generation: int

    @classmethod
    def of(cls, state: ChangelogState) -> Self:
        return cls(sum(state.next_offsets.values()), state.generation)


@dataclass(frozen=True, slots=True)
class FoldedVersion:
    """A version of `current` that a fold has made.

    Attributes:
        table_version: of `current`.
        changelog_version: the one that it equals.
        progress: the watermark records up to there, and the floor.
        folded: how much of the changelog topic that is; None if the commit is of before and does
            not tell.
    """

    table_version: int
    changelog_version: int
    progress: Progress
    folded: Folded | None = None


def fold_metadata(version: int, state: ChangelogState) -> Mapping[str, Any]:
    """The metadata of the commit that makes `current` equal changelog version `version`.

    Args:
        version: for users, too.
        state: of the changelog at `version`.
    """
    folded = Folded.of(state)
    return {
        VERSION_KEY: version,
        _RECORDS_KEY: [folded.records, folded.generation],
        _MARKS_KEY: [[at, *mark] for at, mark in sorted(state.marks.items())],
        _HIGH_WATER_KEY: [[at, *position] for at, position in sorted(state.high_water.items())],
    }


def newest_fold(current: DeltaLog, version: int) -> FoldedVersion | None:
    """The newest fold that is not newer than changelog version `version`.

    None if there is none, if its commit is not in the log any more, or if it does not tell what it
    has forgotten, as those of before.

    Raises:
        SinkError: the log cannot be read.
    """
    committed = current.batches.newest_batch(version)
    metadata = current.batches.metadata_at(committed[0]) if committed is not None else None
    if committed is None or metadata is None or _HIGH_WATER_KEY not in metadata:
        return None
    marks = {(partition, generation): at for partition, generation, at in metadata[_MARKS_KEY]}
    floor = {at: (e, f, p, r) for at, e, f, p, r in metadata[_HIGH_WATER_KEY]}
    folded = Folded(*metadata[_RECORDS_KEY]) if _RECORDS_KEY in metadata else None
    return FoldedVersion(*committed, Progress(marks, floor), folded)
