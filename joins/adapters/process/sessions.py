"""A source's process from its first line to its end: sessions, with back-off between them."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from joins.adapters.process.protocol import SourceProtocol, bind_to_parent
from joins.adapters.process.redacted_output import redact_standard_error
from joins.adapters.store.hand_over import store_alike
from watermark.errors import SluiceError

_BACKOFF_S = (0.2, 5.0)
_GOOD_S = 30.0


def run_process(
    protocol: SourceProtocol, run: Callable[[Mapping[str, Any]], int], *quiet: str
) -> int:
    """Hear the configuration and run with it; the exit code, 0 if standard input ended before.

    Args:
        protocol: of the process.
        run: is given the `config` of the first line; its exit code is that of the process.
        quiet: libraries that warn of what we handle or measure.
    """
    bind_to_parent()
    redact_standard_error()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    for library in ("kafka.net.selector", *quiet):
        logging.getLogger(library).setLevel(logging.ERROR)
    value = protocol.first_line()
    if value is None:
        return 0
    store_alike(value.get("stored", ()))
    threading.Thread(target=protocol.listen, name="commands", daemon=True).start()
    return run(value["config"])


def run_sessions(
    protocol: SourceProtocol,
    session: Callable[[], None],
    retried: tuple[type[SluiceError], ...],
) -> int:
    """Sessions with back-off between them until the protocol says stop; the exit code.

    What a session raises is told. After an error of a type in `retried` another one follows, any
    other one of ours ends the process with 1.
    """
    wait_s = _BACKOFF_S[0]
    while not protocol.stopped.is_set():
        began_at_s = time.monotonic()
        try:
            session()
        except retried as error:
            protocol.tell_error(error, retry=True)
        except SluiceError as error:
            protocol.tell_error(error, retry=False)
            return 1
        if time.monotonic() - began_at_s > _GOOD_S:
            wait_s = _BACKOFF_S[0]
        protocol.stopped.wait(wait_s)
        wait_s = min(wait_s * 2, _BACKOFF_S[1])
    return 0
