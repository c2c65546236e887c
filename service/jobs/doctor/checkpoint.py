"""The doctor's look at a job's checkpoint: Spark's logs, pins, phase and lives."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from joins.durable.pins import Pin, PinStore
from joins.durable.probe_lives import Life, life_of, read_lives
from service.jobs.doctor.check import Check, bad, good, made, steady, unknown
from service.jobs.doctor.patient import Patient

_BACKUP = "Restore the checkpoint from a backup, or submit the job anew."
_LOGS = "Stop the job and restore the missing files of Spark's log from a backup."


def check_checkpoint(patient: Patient) -> list[Check]:
    """All that is below `checkpoint/`."""
    if patient.meta is None:
        return [unknown("checkpoint", "the job was never started")]
    looks: dict[str, Callable[[], Iterable[Check]]] = {
        "checkpoint phase": lambda: [_phase(patient)],
        "checkpoint pins": lambda: _pins(patient),
    }
    for name in _queries(patient):
        path = patient.checkpoint.spark_directory(name)
        looks[f"checkpoint spark/{name}"] = partial(_spark_log, name, path)
    return [
        check
        for title, look in looks.items()
        for check in steady(partial(made, title, look), changing=patient.running)
    ]


def _queries(patient: Patient) -> list[str]:
    builds = [f"build-{d.name}" for d in patient.plan.dimensions]
    lives = read_lives(patient.checkpoint)
    return builds + [life.directory for life in lives[-1:]]


def _phase(patient: Patient) -> Check:
    phase = patient.checkpoint.read_phase()
    pins = any(patient.checkpoint.pins_directory.glob("*.json"))
    if phase is None and pins:
        return bad("checkpoint phase", "there are pins, but phase.json is gone", _BACKUP)
    if phase is None:
        return good("checkpoint phase", "LOAD: the gate has not opened")
    return good("checkpoint phase", f"JOIN, opened with {_versions(phase['versions'])}")


def _versions(opened: Mapping[str, int]) -> str:
    return ", ".join(f"{name} at version {at}" for name, at in opened.items()) or "no table"


# Spark's logs
# ----------------------------------------------------------------------------------------------


def _spark_log(name: str, path: Path) -> Iterator[Check]:
    """Offsets and commits without holes, the commits up to the last offsets or the ones before."""
    title = f"checkpoint spark/{name}"
    commits, offsets = _entries(path / "commits"), _entries(path / "offsets")
    if not offsets and not commits:
        yield unknown(title, "the query has not run yet")
        return
    holes = [f"{kind} {_missing(entries)}" for kind, entries in _holed(offsets, commits)]
    if holes:
        yield bad(title, f"entries are missing in Spark's log: {', '.join(holes)}", _LOGS)
        return
    last = offsets[-1] if offsets else -1
    done = commits[-1] if commits else -1
    if done > last or (commits and last - done > 1):
        yield bad(title, f"Spark has planned batch {last} and committed batch {done}", _LOGS)
        return
    if not (path / "metadata").is_file():
        yield bad(title, "Spark's file metadata is gone", _LOGS)
        return
    yield good(title, f"batches {offsets[0]} to {last}, committed to {done}, no holes")


def _entries(directory: Path) -> list[int]:
    """Batch numbers of a log, ascending."""
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def _holed(offsets: list[int], commits: list[int]) -> list[tuple[str, list[int]]]:
    logs = (("offsets", offsets), ("commits", commits))
    return [(kind, e) for kind, e in logs if e and e[-1] - e[0] + 1 != len(e)]


def _missing(entries: Sequence[int]) -> str:
    gaps = [(a + 1, b - 1) for a, b in pairwise(entries) if b - a > 1]
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in gaps[:5])


# Pins
# ----------------------------------------------------------------------------------------------


def _pins(patient: Patient) -> Iterator[Check]:
    """Readable, without holes, each where the one before ends, nothing going back."""
    directory = patient.checkpoint.pins_directory
    names = sorted(path.stem for path in directory.glob("*.json")) if directory.is_dir() else []
    numbers = [int(name) for name in names if name.isdigit()]
    if not numbers:
        yield unknown("checkpoint pins", "no batch was pinned yet")
        return
    store = PinStore(directory)
    pins = [pin for pin in map(store.read, numbers) if pin is not None]
    lives = read_lives(patient.checkpoint)
    epoch = patient.meta.epoch if patient.meta is not None else 0
    faults = [fault for a, b in pairwise(pins) for fault in _broken(a, b, lives)]
    faults += [f"pin {pin.batch} has epoch {pin.epoch}" for pin in pins if pin.epoch > epoch]
    if faults:
        shown = "; ".join(faults[:3])
        yield bad("checkpoint pins", f"{len(faults)} faults: {shown}", _BACKUP)
        return
    yield good(
        "checkpoint pins",
        f"{len(pins)} pins, {numbers[0]} to {numbers[-1]}, in {len(lives)} lives, without holes",
    )


def _broken(before: Pin, after: Pin, lives: tuple[Life, ...]) -> Iterator[str]:
    """What is wrong between two pins that follow one another."""
    life = life_of(lives, after.batch)
    gone = set() if life is None else set(life.abandoned)
    missing = set(range(before.batch + 1, after.batch)) - gone
    if missing:
        yield f"pin {min(missing)} is missing"
    if any(after.versions.get(d, -1) < v for d, v in before.versions.items()):
        yield f"versions go back from pin {before.batch} to {after.batch}"
    if after.epoch < before.epoch:
        yield f"epochs go back from pin {before.batch} to {after.batch}"
    same_life = life is not None and life.first_batch <= before.batch
    if not missing and same_life and not _follows(before, after):
        yield f"pin {after.batch} does not begin where {before.batch} ends"


def _follows(before: Pin, after: Pin) -> bool:
    return all(after.start_offsets.get(p, end) == end for p, end in before.end_offsets.items())
