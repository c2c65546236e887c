"""What keeps a job from going on, by part; a job with an entry is STALLED and says why."""

import threading
from dataclasses import dataclass

from watermark.errors import SluiceError


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as it is shown.

    Attributes:
        type: stable name, kebab case of the error's class without `Error`.
    """

    type: str
    message: str
    hint: str

    @staticmethod
    def of(error: SluiceError) -> "Fault":
        """The fault that `error` describes."""
        name = type(error).__name__.removesuffix("Error")
        kebab = "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")
        return Fault(kebab, error.message, error.hint)


class Stalls:
    """Faults by part (`source user_info`, `build user_info`, `probe`); thread-safe."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._lock = threading.Lock()

    def note(self, part: str, error: SluiceError) -> None:
        """`part` cannot go on because of `error`."""
        with self._lock:
            self._faults[part] = Fault.of(error)

    def clear(self, part: str) -> None:
        """`part` goes on."""
        with self._lock:
            self._faults.pop(part, None)

    def first(self) -> tuple[str, Fault] | None:
        """The oldest fault and its part."""
        with self._lock:
            return next(iter(self._faults.items()), None)
