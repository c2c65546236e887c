"""Experiment `oracle-check`: does the oracle catch what it is there to catch?

`full` runs the product with each of 12 planted bugs (`planted_runner`), some with a crash that
brings the bug out, and once as it is. `small` takes the evidence of one run as it is and changes it
as each bug would have (`planted_evidence`).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.reliability.experiment import Lab
from tests.reliability.oracle import Verdict, audit
from tests.reliability.planted_evidence import EDITS, Recorded, recorded
from tests.reliability.planted_load import Load, inputs_of, loaded_job
from tests.reliability.planted_runner import PLANTS


@dataclass(frozen=True)
class Expectation:
    """What brings a bug out, and the faults that count as caught.

    Attributes:
        faults: one of these must be found.
    """

    faults: tuple[str, ...]
    failpoints: str = ""
    users: int = 90
    chunk_rows: int = 50_000


EXPECTED: Mapping[str, Expectation] = {
    "skip-pin-write": Expectation(("pin_regression",)),
    "pin-after-commit": Expectation(("pin_regression", "wrong_version"), failpoints="C8=kill@2"),
    "forget-dead-letters": Expectation(("dead_letter_mismatch",)),
    "offsets-before-output": Expectation(("lost",), failpoints="C6=kill@2"),
    "reused-app-id": Expectation(("lost",)),
    "stale-index": Expectation(("wrong_version",)),
    "range-off-by-one": Expectation(("lost",)),
    "drop-tombstone": Expectation(("wrong_version",)),
    "valve-opens-early": Expectation(("early",), users=3_000, chunk_rows=20),
    "primary-key-change-ignored": Expectation(("wrong_version",)),
    "last-partition-dropped": Expectation(("lost",)),
    "double-commit": Expectation(("duplicate",), failpoints="C8=kill@2"),
}


@dataclass
class Score:
    """What was caught, and what the oracle said of the run as it is."""

    caught: dict[str, dict[str, int]] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def judge(self, name: str, verdict: Verdict) -> None:
        """`name` must show one of its faults."""
        found = verdict.faults()
        if set(found) & set(EXPECTED[name].faults):
            self.caught[name] = found
        else:
            self.missed.append(name)


def planted_run(lab: Lab, name: str) -> Verdict:
    """The verdict on a real run with a planted bug."""
    expected = EXPECTED[name]
    load = Load(
        users=expected.users,
        chunk_rows=expected.chunk_rows,
        runner_command=(
            *(sys.executable, "-m", "tests.reliability.planted_runner"),
            *("--plant", name),
        ),
        settings={
            "snapshot_job_rows": expected.chunk_rows,
            **({"failpoints": expected.failpoints} if expected.failpoints else {}),
        },
    )
    with loaded_job(lab, name, load) as subject:
        return audit(inputs_of(subject))


def edited(run: Recorded, name: str) -> Verdict:
    with run.copy() as copy:
        EDITS[name](copy)
        return audit(copy.inputs, run.world)


def run(lab: Lab) -> dict[str, Any]:
    """All of them, and a run as it is, which must be right."""
    score = Score()
    names = list(PLANTS)[: lab.cases(len(PLANTS), len(PLANTS))]
    with recorded(lab, rounds=lab.size(2, 3)) as clean_run:
        clean = audit(clean_run.inputs, clean_run.world)
        lab.say(f"as it is: {clean.faults() or 'ok'}")
        for name in names:
            verdict = planted_run(lab, name) if lab.full else edited(clean_run, name)
            score.judge(name, verdict)
            lab.say(f"{name}: {score.caught.get(name, 'MISSED')}")
    return {
        "experiment": "oracle-check",
        "scale": lab.scale,
        "seed": lab.seed,
        "cases": len(names) + 1,
        "passed": len(score.caught) + clean.ok,
        **{name: getattr(clean, name) for name in ("lost", "duplicate", "wrong_version", "early")},
        "caught": score.caught,
        "missed": score.missed,
        "examples": clean.examples,
        "seconds": lab.seconds(),
        "ok": clean.ok and not score.missed,
    }
