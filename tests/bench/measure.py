"""What a benchmark measures: values of several runs, beside a reference and against a bar."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

RUNS = 3


class Sense(Enum):
    """What the bar is for, and on which side of it is good."""

    RATIO_AT_LEAST = "ratio >="
    RATIO_AT_MOST = "ratio <="
    VALUE_AT_LEAST = "value >="
    VALUE_AT_MOST = "value <="

    def met(self, value: float, ratio: float | None, bar: float) -> bool:
        """Whether the bar is reached; a ratio that is not there reaches none."""
        judged = ratio if self in (Sense.RATIO_AT_LEAST, Sense.RATIO_AT_MOST) else value
        if judged is None:
            return False
        at_least = self in (Sense.RATIO_AT_LEAST, Sense.VALUE_AT_LEAST)
        return judged >= bar if at_least else judged <= bar


@dataclass(frozen=True, slots=True)
class Bar:
    """What must be reached."""

    sense: Sense
    limit: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the command line asks for; None leaves it to the benchmark.

    Attributes:
        records: of the stream, or changes of the table.
        dim: rows of the dimension.
        runs: how often each side runs; the median counts.
    """

    records: int | None = None
    dim: int | None = None
    runs: int = RUNS


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Attributes:
        size: how much it was measured with, in words.
        full: whether that is the size that the bar is for.
        values: ours, one a run.
        references: what they are compared with, one a run.
        bar: None where a number is told only.
        facts: what else is worth knowing, JSON values.
    """

    name: str
    unit: str
    size: str
    full: bool
    values: Sequence[float]
    references: Sequence[float] = ()
    bar: Bar | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float:
        return statistics.median(self.values)

    @property
    def reference(self) -> float | None:
        return statistics.median(self.references) if self.references else None

    @property
    def ratio(self) -> float | None:
        return self.value / self.reference if self.reference else None

    @property
    def ok(self) -> bool:
        return self.bar is None or self.bar.sense.met(self.value, self.ratio, self.bar.limit)

    def as_json(self) -> dict[str, Any]:
        return {
            "measure": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "reference": rounded(self.reference),
            "ratio": rounded(self.ratio),
            "bar": None if self.bar is None else self.bar.limit,
            "judged": None if self.bar is None else self.bar.sense.value,
            "ok": self.ok,
            "runs": len(self.values),
            "spread": rounded(spread(self.values)),
            "reference_spread": rounded(spread(self.references)) if self.references else None,
            "size": self.size,
            "full_size": self.full,
            **self.facts,
        }


def cpu_measure(
    of: str, size: str, cpu_s: Sequence[float], at_most: float, *, full: bool
) -> Measure:
    bar = Bar(Sense.VALUE_AT_MOST, at_most)
    return Measure(f"CPU of a million records: {of}", "s", size, full, cpu_s, (), bar)


def spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def as_json(bench: str, measures: Sequence[Measure]) -> dict[str, Any]:
    first, *others = measures
    return {
        "bench": bench,
        **first.as_json(),
        "ok": all(measure.ok for measure in measures),
        "met": first.ok,
        "parts": [measure.as_json() for measure in others],
    }
