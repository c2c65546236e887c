"""A check's result, and the job that the doctor's checks examine."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joins.durable.checkpoint import Checkpoint, JobMeta, job_app_id, output_app_id
from joins.kernels.table_path import TablePath
from joins.plan.plan import DeltaSink, JoinPlan
from service.config import Settings
from service.jobs.store.layout import JobLayout
from service.security.resolution import output_path
from watermark.errors import SluiceError, redacted


@dataclass(frozen=True, slots=True)
class DeltaOutput:
    """A Delta output of one INSERT, with that INSERT's plan."""

    name: str
    path: TablePath
    app_id: str
    plan: JoinPlan


@dataclass(frozen=True, slots=True)
class Patient:
    """A job under examination."""

    layout: JobLayout
    settings: Settings
    plan: JoinPlan  # with secrets resolved
    checkpoint: Checkpoint
    meta: JobMeta | None  # None before the first start
    running: bool  # a runner is alive, so files may change between two reads

    @property
    def app_id(self) -> str:
        if self.meta is None:
            return ""
        return job_app_id(self.layout.job_dir.name, self.meta.incarnation)

    @property
    def outputs(self) -> tuple[DeltaOutput, ...]:
        inserts = self.plan.inserts
        return tuple(
            DeltaOutput(
                "output" if len(inserts) == 1 else f"output of INSERT {number + 1}",
                output_path(insert.sink, self.settings),
                output_app_id(self.app_id, number),
                insert,
            )
            for number, insert in enumerate(inserts)
            if isinstance(insert.sink, DeltaSink)
        )

    @property
    def output_directories(self) -> dict[str, Path]:
        """Directories of Delta outputs and late records that are not in an object store."""
        places: dict[str, TablePath] = {output.name: output.path for output in self.outputs}
        late = self.plan.probe.late_records
        if late is not None:
            places["late records"] = output_path(late, self.settings)
        return {name: path for name, path in places.items() if isinstance(path, Path)}

    def changelog(self, dimension: str) -> TablePath:
        declared = next(each for each in self.plan.dimensions if each.name == dimension)
        return self.layout.table(declared) / "changelog"


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check; `ok` is None if it could not be judged, `hint` is set if it is False."""

    name: str
    ok: bool | None
    detail: str
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "hint": self.hint}


def good(name: str, detail: str) -> Check:
    return Check(name, True, redacted(detail))


def bad(name: str, detail: str, hint: str) -> Check:
    return Check(name, False, redacted(detail), redacted(hint))


def unknown(name: str, detail: str) -> Check:
    return Check(name, None, redacted(detail))


def made(name: str, look: Callable[[], Iterable[Check]]) -> list[Check]:
    """The checks of `look`; an error becomes the failed check `name`."""
    try:
        return list(look())
    except SluiceError as exc:
        return [bad(name, exc.message, exc.hint)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        hint = "Restore the file or table that the check is about from a backup."
        return [bad(name, f"cannot be looked at: {type(exc).__name__}: {exc}", hint)]


def steady(look: Callable[[], Sequence[Check]], *, changing: bool) -> list[Check]:
    """The checks of `look`; while files are `changing`, faults are checked up to three times."""
    checks = list(look())
    for _ in range(2 if changing else 0):
        if all(check.ok is not False for check in checks):
            break
        checks = list(look())
    return checks
