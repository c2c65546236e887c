"""The doctor's look at a job's checkpoint: pins, phase and lives."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise

from joins.durable.pins import Pin, PinStore
from joins.durable.probe_lives import Life, life_of, read_lives
from service.jobs.doctor.check import Check, bad, good, made, steady, unknown
from service.jobs.doctor.patient import Patient

_BACKUP = "Restore the checkpoint from a backup, or submit the job anew."


def check_checkpoint(patient: Patient) -> list[Check]:
    """All that is below `checkpoint/`."""
    if patient.meta is None:
        return [unknown("checkpoint", "the job was never started")]
    looks: dict[str, Callable[[], Iterable[Check]]] = {
        "checkpoint phase": lambda: [_phase(patient)],
        "checkpoint pins": lambda: _pins(patient),
    }
    return [
        check
        for title, look in looks.items()
        for check in steady(partial(made, title, look), changing=patient.running)
    ]


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
