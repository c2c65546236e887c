"""What a doctor's check says, and how one that fails in its own work is told."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from watermark.errors import SluiceError, redacted


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        ok: None where it could not be looked at, or where nothing is there yet.
        hint: what to do; None unless `ok` is False.
    """

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
    """The checks of `look`; what keeps it from looking is the check `name`, which has failed."""
    try:
        return list(look())
    except SluiceError as exc:
        return [bad(name, exc.message, exc.hint)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        hint = "Restore the file or table that the check is about from a backup."
        return [bad(name, f"cannot be looked at: {type(exc).__name__}: {exc}", hint)]


def steady(look: Callable[[], Sequence[Check]], *, changing: bool) -> list[Check]:
    """The checks of `look`; where files are `changing` under it, only a fault that stays counts."""
    checks = list(look())
    for _ in range(2 if changing else 0):
        if all(check.ok is not False for check in checks):
            break
        checks = list(look())
    return checks
