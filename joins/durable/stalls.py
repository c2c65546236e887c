"""What keeps a job from going on, by part; a job with an entry is STALLED and says why."""

import re
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from watermark.errors import SluiceError

SOURCE = "source "
"""What the part begins with that is a table's source; all others concern the stream, too."""
_UNAVAILABLE = "source-unavailable"
_UNREACHED = " cannot be reached"
_KAFKA = re.compile(r'^kafka (?:at )?"([^"]+)"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as it is shown.

    Attributes:
        type: stable name of the error's class.
        choices: what an operator's acknowledgement may choose; empty if none is needed.
        detail: the text of a library or server behind it; empty without one.
    """

    type: str
    message: str
    hint: str
    choices: tuple[str, ...] = ()
    detail: str = ""

    @staticmethod
    def of(error: SluiceError, since_s: float | None = None) -> "Fault":
        """The fault that `error` describes; of an unreachable server since when it is away."""
        choices, message = tuple(getattr(error, "choices", ())), error.message
        if since_s is not None and message.endswith(_UNREACHED):
            at = datetime.fromtimestamp(since_s, UTC)
            server = message.removesuffix(_UNREACHED)
            message = f"{server} has not answered since {at:%H:%M:%S} UTC"
        return Fault(error.fault, message, error.hint, choices, error.detail)


class Stalls:
    """Faults by part (`source user_info`, `build user_info`, `probe`); thread-safe."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._since: dict[str, tuple[str, float]] = {}
        self._is_closed = False
        self._lock = threading.Lock()

    def note(self, part: str, error: SluiceError) -> None:
        """`part` cannot go on because of `error`."""
        with self._lock:
            if self._is_closed:
                return
            known, since_s = self._since.get(part, ("", 0.0))
            if known != error.message:
                since_s = time.time()
                self._since[part] = error.message, since_s
            self._faults[part] = Fault.of(error, since_s)

    def close(self) -> None:
        self._is_closed = True  # without the lock, which the interrupted thread may hold

    def clear(self, part: str) -> None:
        with self._lock:
            self._faults.pop(part, None)
            self._since.pop(part, None)

    def first(self) -> tuple[str, Fault] | None:
        return next(iter(self.all()), None)

    def all(self) -> list[tuple[str, Fault]]:
        """Every fault and its part, in the order of `first`.

        One that several parts have is told once, and not of a table's source if the stream has it.
        """
        with self._lock:
            faults = sorted(self._faults.items(), key=lambda item: not item[1].choices)
        first_of: dict[tuple[str, ...], tuple[str, Fault]] = {}
        for part, fault in faults:
            older = first_of.setdefault(_cause(part, fault), (part, fault))
            if older[0].startswith(SOURCE) and not part.startswith(SOURCE):
                first_of[_cause(part, fault)] = part, fault
        return list(first_of.values())


def _cause(part: str, fault: Fault) -> tuple[str, ...]:
    """What several parts may be stalled by at once: a Kafka that does not answer is one fault."""
    server = _KAFKA.search(fault.message)
    if fault.type == _UNAVAILABLE and server is not None:
        return fault.type, server[1]
    return fault.type, fault.message, part
