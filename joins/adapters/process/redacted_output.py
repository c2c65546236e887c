"""What our processes say on standard error goes into logs, which have no secrets."""

import sys
from io import TextIOBase
from typing import TextIO

from watermark.errors import redacted


class _Redacted(TextIOBase):
    """Passes whole lines on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._stream.write(redacted("\n".join(lines)) + "\n")
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        if self._rest:
            self._stream.write(redacted(self._rest))
            self._rest = ""
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


def redact_standard_error() -> None:
    sys.stderr = _Redacted(sys.stderr)
