"""What the service asks of a kind of source or sink; `service.connectors.registry` lists them.

The control plane imports all kinds: what loads Spark or compiled kernels is imported by the methods
that need it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow.compute as pc

from joins.adapters.delta.source import captured_columns
from joins.adapters.kafka.pool import OpenClusters
from joins.durable.failpoints import Failpoints
from joins.kernels.changelog.comparison import Place
from joins.kernels.changelog.envelope import CapturedColumn
from joins.plan.errors import VerificationError
from joins.plan.plan import Dimension, JoinPlan
from joins.source.coordinator import SourceCoordinator
from service.config import Settings
from service.jobs.doctor.check import Check, Patient
from service.jobs.supervise.runner_process import RunnerLog
from service.security.secrets import SecretResolver

if TYPE_CHECKING:  # they load Spark
    from pyspark.sql import SparkSession

    from joins.adapters.delta.log import DeltaLog
    from joins.dimension.changelog_scan import DimensionStates
    from joins.dimension.dimension import DimensionRuntime
    from joins.durable.requests import Stalls
    from joins.lookback.letter_rows import LetterWriter
    from joins.sinks.port import BatchWriter
    from service.wiring.context import JobContext
    from service.wiring.sinks import InsertSink

S = TypeVar("S")
T = TypeVar("T")
Copy = tuple[int, int]
"""Epoch and generation of a copy; another pair is another copy."""


@dataclass(frozen=True, slots=True)
class Freshest:
    """What keeps a copy behind its source: the pause between two questions, answers, the way.

    `lower` is the setting or option of that pause.
    """

    asked_ms: int
    answer_ms: int = 0
    on_its_way_ms: int = 0
    lower: str = "SLUICE_FRESHNESS_INTERVAL_S."


def settings_ms(settings: Settings) -> int:
    return round(settings.freshness_interval_s * 1000)


@dataclass(frozen=True, slots=True)
class SourceParts:
    """What the coordinator of a source is made of."""

    job: "JobContext"
    spark: "SparkSession"
    runtime: "DimensionRuntime"
    stalls: "Stalls"


@dataclass(frozen=True, slots=True)
class SinkParts:
    """What the writers of an INSERT's sink are made of."""

    insert: "InsertSink"
    spark: "SparkSession"
    log: RunnerLog
    failpoints: Failpoints


@dataclass(frozen=True, slots=True)
class Compared:
    """A dimension whose copy is compared; a proof that all has arrived may take `proof_s`.

    At most `rows_per_s` rows of the source are read in a second; None for no limit.
    """

    job: "JobContext"
    dimension: Dimension
    states: "DimensionStates"
    proof_s: float
    rows_per_s: int | None


@dataclass(frozen=True, slots=True)
class SecondRead:
    """A second read of a source; `proven` is None if the runner's report is the proof.

    `is_paced` is true if the source is read already, at its pace, and `rows` are in a file.
    """

    rows: Any
    proven: Callable[[], Place | None] | None = None
    counted: pc.Expression | None = None  # what takes part of the changelog; None for all
    is_paced: bool = False


class SourceConnector(ABC, Generic[S, T]):
    """One kind of source of dimensions, whose copy has a state T.

    Secrets are resolved but in the first two methods.
    """

    @abstractmethod
    def check_allowed(self, table: str, source: S, settings: Settings) -> None:
        """Raise NotAllowedError for a place that the operator's lists do not have."""

    def with_logins(self, source: S, secrets: SecretResolver) -> S:
        return source

    @abstractmethod
    def check(self, dimension: Dimension, source: S, settings: Settings) -> None:
        """Raise SluiceError if the source cannot be read as declared; at submission."""

    def advice(self, dimension: Dimension, with_logins: Callable[[], S]) -> Iterable[str]:
        """Warnings about a source that `check` accepts; the dimension is without logins."""
        return ()

    def with_position(
        self, held: Dimension, dimension: Dimension, settings: Settings, clusters: OpenClusters
    ) -> Dimension:
        """`held` with offsets, ids and versions of now; `dimension` is the same with logins."""
        return held

    def freshest(self, source: S, settings: Settings) -> Freshest | None:
        """None if the copy is as fresh as it ever can be."""
        return Freshest(settings_ms(settings))

    @abstractmethod
    def examine(self, patient: Patient, dimension: Dimension, source: S) -> Iterator[Check]:
        """The doctor's checks; what they raise becomes a failed check."""

    def captured(
        self, job: "JobContext", dimension: Dimension, source: S
    ) -> tuple[CapturedColumn, ...]:
        """The columns of the dimension's changelog. Raises SluiceError."""
        return captured_columns(dimension.fields)

    @abstractmethod
    def coordinator(self, parts: SourceParts, source: S) -> SourceCoordinator: ...

    def copied(self, dimension: Dimension, state_file: Path) -> tuple[T, Copy] | None:
        """The stored state of a complete copy, for `read_again`; None while it is being copied."""
        raise VerificationError(
            f'table "{dimension.name}" has a source that cannot be read a second time',
            hint="Compare it by a query of the source.",
        )

    def read_again(self, of: Compared, source: S, state: T) -> AbstractContextManager[SecondRead]:
        """The source's rows of now, to compare the copy with."""
        raise NotImplementedError


class SinkConnector(ABC, Generic[S]):
    """One kind of sink; secrets are resolved but in the first two methods."""

    @abstractmethod
    def check_allowed(self, table: str, sink: S, settings: Settings) -> None:
        """Raise NotAllowedError for a place that the operator's lists do not have."""

    def with_logins(self, sink: S, secrets: SecretResolver) -> S:
        return sink

    def checked(self, plan: JoinPlan, sink: S, settings: Settings, clusters: OpenClusters) -> S:
        """The sink of `plan`, one INSERT, with its cluster's id; raises what refuses it."""
        return sink

    def examine(self, title: str, sink: S) -> Iterator[Check]:
        """The doctor's checks of what is not a Delta table."""
        return iter(())

    def prepare(self, insert: "InsertSink", sink: S) -> None:
        """Check or create the output before a JVM starts. Raises SluiceError."""

    @abstractmethod
    def writer(self, parts: SinkParts, sink: S) -> tuple["BatchWriter", tuple["DeltaLog", ...]]:
        """The writer of batches, and the logs of its tables for upkeep."""

    @abstractmethod
    def letter_writer(self, parts: SinkParts, sink: S) -> "LetterWriter":
        """The writer of rows of dead letters that are joined again."""
