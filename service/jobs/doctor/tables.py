"""The doctor's checks of a job's Delta tables and of its checkpoint."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise

from joins.adapters.delta.entries import has_log
from joins.adapters.delta.log import DeltaLog
from joins.durable.leases import leases_in, oldest_attached, oldest_leased
from joins.durable.pins import Pin, PinStore
from joins.durable.probe_lives import Life, life_of, read_lives
from joins.kernels.table_path import TablePath
from joins.plan.errors import FencedError, SinkError
from service.connectors.sinks import output_writer
from service.jobs.doctor.check import Check, DeltaOutput, Patient, bad, good, made, steady, unknown

_BACKUP = "Restore the checkpoint from a backup, or submit the job again."


def check_checkpoint(patient: Patient) -> list[Check]:
    if patient.meta is None:
        return [unknown("checkpoint", "the job was never started")]
    looks: dict[str, Callable[[], Iterable[Check]]] = {
        "checkpoint phase": lambda: [_phase(patient)],
        "checkpoint pins": lambda: _check_pins(patient),
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
        return good("checkpoint phase", "LOAD: the tables are not complete yet")
    return good("checkpoint phase", f"JOIN, opened with {_opened(phase['versions'])}")


def _opened(opened: Mapping[str, int]) -> str:
    return ", ".join(f"{name} at version {at}" for name, at in opened.items()) or "no table"


# Pins
# ----------------------------------------------------------------------------------------------


def _check_pins(patient: Patient) -> Iterator[Check]:
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
    of = "one incarnation" if len(lives) == 1 else f"{len(lives)} incarnations"
    yield good(
        "checkpoint pins",
        f"{len(pins)} pins, {numbers[0]} to {numbers[-1]}, in {of}, without holes",
    )


def _broken(before: Pin, after: Pin, lives: tuple[Life, ...]) -> Iterator[str]:
    life = life_of(lives, after.batch)
    gone = set() if life is None else set(life.abandoned)
    missing = set(range(before.batch + 1, after.batch)) - gone
    if missing:
        yield f"pin {min(missing)} is missing"
    # An updated job may join other tables than before.
    if any(after.versions.get(d, v) < v for d, v in before.versions.items()):
        yield f"versions go back from pin {before.batch} to {after.batch}"
    if after.epoch < before.epoch:
        yield f"epochs go back from pin {before.batch} to {after.batch}"
    same_life = life is not None and life.first_batch <= before.batch
    if not missing and same_life and not _follows(before, after):
        yield f"pin {after.batch} does not begin where {before.batch} ends"


def _follows(before: Pin, after: Pin) -> bool:
    return all(after.start_offsets.get(p, end) == end for p, end in before.end_offsets.items())


_FILES = "Restore the table's directory from a backup."
_SHOWN = 3


def check_tables(patient: Patient) -> list[Check]:
    if patient.meta is None:
        return []
    checks: list[Check] = []
    for name, path in _tables(patient).items():
        checks += made(f"table {name}", partial(_table, name, path))
    for output in patient.outputs:
        title = output.name.replace("output", "writer")
        checks += made(title, partial(_writer, patient, output, title))
    checks += made("transactions", lambda: [_transactions(patient)])
    checks += made("fence", lambda: [_fence(patient)])
    for dimension in patient.plan.dimensions:
        title = f"versions {dimension.name}"
        checks += made(title, partial(_versions, patient, dimension.name))
    return checks


def _tables(patient: Patient) -> dict[str, TablePath]:
    roots = {d.name: patient.layout.table(d) for d in patient.plan.dimensions}
    paths = {f"{n}/{part}": root / part for n, root in roots.items() for part in _PARTS}
    paths["dead_letters"] = patient.layout.dead_letters
    return paths | {output.name: output.path for output in patient.outputs}


_PARTS = ("changelog", "current")


def _table(name: str, path: TablePath) -> Iterator[Check]:
    title = f"table {name}"
    if not has_log(path):
        yield unknown(title, "it is not there yet")
        return
    log = DeltaLog(path, "")
    version = log.version()
    files = log.files.files_at(version)
    gone = [file.name for file in files if not file.exists()]
    if gone:
        shown = ", ".join(gone[:_SHOWN])
        detail = f"{len(gone)} of {len(files)} files of version {version} are gone: {shown}"
        yield bad(title, detail, _FILES)
        return
    yield good(title, f"version {version}, {len(files)} files")


def _writer(patient: Patient, output: DeltaOutput, title: str) -> Iterator[Check]:
    choice = output_writer(output.plan, patient.settings)
    writer = "none" if choice is None else choice.writer.value
    yield good(title, f"{writer}: {choice.reason}" if choice and choice.reason else writer)


def _transactions(patient: Patient) -> Check:
    """Progress and outputs in the order of what they have, the newest last."""
    note = patient.checkpoint.read_progress() or {}
    newest = [("progress", note.get("batch"))]
    for output in reversed(patient.outputs):
        newest.append((output.name, DeltaLog(output.path, output.app_id).batches.last_batch()))
    text = ", ".join(f"{name} {'none' if batch is None else batch}" for name, batch in newest)
    order = [-1 if batch is None else batch for _, batch in newest]
    if order != sorted(order):
        return bad(
            "transactions",
            f"newest batches are {text}; each must have what the one before has",
            "A table was restored to an older state or changed from outside; restore them together "
            "with the checkpoint.",
        )
    return good("transactions", f"newest batches are {text}")


def _fence(patient: Patient) -> Check:
    epoch = patient.meta.epoch if patient.meta is not None else 0
    places = [(output.path, output.app_id) for output in patient.outputs]
    try:
        for place, app_id in ((patient.layout.dead_letters, patient.app_id), *places):
            DeltaLog(place, app_id).batches.check_epoch(epoch)
    except FencedError as exc:
        return bad("fence", exc.message, "Two directories hold this job; run only the newest.")
    return good("fence", f"no table knows a newer epoch than {epoch}")


# Versions and leases
# ----------------------------------------------------------------------------------------------


def _versions(patient: Patient, dimension: str) -> Iterator[Check]:
    title = f"versions {dimension}"
    path = patient.changelog(dimension)
    if not has_log(path):
        yield unknown(title, "the changelog is not there yet")
        return
    log = DeltaLog(path, "")
    pinned = _pinned(patient, dimension)
    unreadable = [version for version in sorted(pinned) if not _is_readable(log, version)]
    if unreadable:
        yield bad(
            title,
            f"version {unreadable[0]} is pinned and cannot be read any more",
            "Restore the changelog's files from a backup; batches with this version cannot be "
            "replayed, and one that is not committed needs an acknowledgement.",
        )
    else:
        yield good(title, f"pinned versions {sorted(pinned) or 'none'} can be read")
    yield _lease(patient, dimension, log)


def _pinned(patient: Patient, dimension: str) -> set[int]:
    """Versions of the oldest and newest pin, else of the opening; empty for a shared table."""
    if patient.plan.shared_table is not None:
        return set()
    directory = patient.checkpoint.pins_directory
    names = sorted(p.stem for p in directory.glob("*.json")) if directory.is_dir() else []
    store = PinStore(directory)
    pins = [store.read(int(name)) for name in (*names[:1], *names[-1:])]
    met = [pin.versions for pin in pins if pin is not None]
    phase = patient.checkpoint.read_phase()
    opened = [phase["versions"]] if phase else []
    # A table that an update has added is in newer pins only.
    return {versions[dimension] for versions in met or opened if dimension in versions}


def _is_readable(log: DeltaLog, version: int) -> bool:
    try:
        return all(file.exists() for file in log.files.files_at(version))
    except SinkError:
        return False


def _lease(patient: Patient, dimension: str, log: DeltaLog) -> Check:
    title = f"leases {dimension}"
    leased = _leased(patient, dimension)
    oldest = log.versions.oldest_version()
    if leased is None:
        return unknown(title, f"nothing is leased yet; the log begins at version {oldest}")
    detail = f"versions from {leased} on are leased, the log begins at {oldest}"
    if oldest > leased:
        hint = "Restore the changelog's log from a backup, or lower SLUICE_REPLAY_BATCHES."
        return bad(title, detail, hint)
    return good(title, detail)


def _leased(patient: Patient, dimension: str) -> int | None:
    checkpoint = patient.checkpoint
    if patient.plan.shared_table is not None:
        return oldest_attached(leases_in(checkpoint.directory))
    opening = (checkpoint.read_phase() or {}).get("versions", {})
    kept = patient.settings.replay_batches
    return oldest_leased(checkpoint.pins_directory, kept, opening, {}).get(dimension)
