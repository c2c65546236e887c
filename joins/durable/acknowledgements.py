"""What an operator has acknowledged: the record that is kept of it, and the list for people."""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from joins.durable.requests import Request
from joins.durable.stored import stored_files
from joins.plan.errors import RequestError


def reason_of(request: Request) -> str:
    """Why it is right to go on, as the operator says.

    Raises:
        RequestError: the request does not say.
    """
    reason = request.body.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise RequestError("acknowledgement has no reason", hint="Say why it is right to go on.")
    return reason


def record_of(
    request: Request,
    *,
    choice: object,
    message: str,
    gaps: Sequence[Mapping[str, int]] = (),
) -> dict[str, Any]:
    """What is kept of a request that is granted now.

    Args:
        request: it has a reason.
        choice: how it goes on.
        message: what was acknowledged.
        gaps: what is left out of the stream.
    """
    return {
        "id": request.id,
        "at_ms": time.time_ns() // 1_000_000,
        "by": request.by,
        "cause": request.body.get("cause"),
        "choice": choice,
        "reason": reason_of(request),
        "message": message,
        "gaps": list(gaps),
    }


def append_missing(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Append to the list in `path` those of `records` that it does not have; durable then."""
    known = path.read_text() if path.exists() else ""
    missing = [each for each in records if f'"id":"{each["id"]}"' not in known]
    if not missing:
        return
    begin = "" if known.endswith("\n") or not known else "\n"
    text = begin + "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in missing)
    stored = stored_files(path)
    if stored is not None:
        stored.put(path, (known + text).encode())
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
