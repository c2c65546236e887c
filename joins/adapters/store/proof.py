"""Whether a store keeps what exactly once and fencing stand on, found out by racing it.

Of several puts at once that ask for a key's absence one succeeds, and what it has put stays and is
listed at once. A server that looks first and writes then lets several succeed now and then; one
that does not know the condition lets all.
"""

import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context  # a deadline holds for the racers, too

from joins.adapters.store.client import StoreAddress
from joins.adapters.store.path import StorePath
from joins.plan.errors import StoreRefusedError

_RACERS = 12
_ROUNDS = 32
_KEPT_S = 600.0
_HINT = (
    "Use a store with conditional writes (Amazon S3, Azure Blob Storage, MinIO, Cloudflare R2), or "
    "a directory."
)
_proven: dict[StoreAddress, float] = {}


def prove_conditional_puts(root: StorePath) -> None:
    """Race the store of `root` unless that was done in the last ten minutes.

    Objects are put below the root, beside a table's files, and removed again.

    Raises:
        StoreRefusedError: the store does not keep conditional puts, there is no such bucket, or it
            does not let us.
        StoreUnavailableError: it does not answer.
    """
    now = time.monotonic()
    if now - _proven.get(root.store, -_KEPT_S) < _KEPT_S:
        return
    place = root / f"_sluice_proof_{uuid.uuid4().hex}"
    with ThreadPoolExecutor(_RACERS) as racers:
        for number in range(_ROUNDS):
            _race(racers, place / f"{number:04d}")
    _proven[root.store] = now


def _race(racers: ThreadPoolExecutor, key: StorePath) -> None:
    contents = [f"{key.name} {racer}".encode() for racer in range(_RACERS)]
    start = threading.Barrier(_RACERS)

    def put(content: bytes) -> bool:
        start.wait()
        return key.create(content)

    try:
        futures = [racers.submit(copy_context().run, put, content) for content in contents]
        created = [future.result() for future in futures]
        _check(key, [content for content, is_in in zip(contents, created, strict=True) if is_in])
    except FileNotFoundError as exc:
        raise StoreRefusedError(
            f'store "{key.store.url}" takes no object "{key}"',
            hint="Create the bucket or container first, or correct the table's path.",
        ) from exc
    finally:
        with suppress(OSError):  # what went wrong before tells more
            key.unlink(missing_ok=True)


def _check(key: StorePath, winners: Sequence[bytes]) -> None:
    if len(winners) != 1 or key.create(b"late"):
        raise StoreRefusedError(
            f'store "{key.store.url}" does not keep conditional puts: of {_RACERS} writers of one '
            f"key {len(winners) if len(winners) != 1 else 'a late one'} succeeded, expected one",
            hint=_HINT,
        )
    if key.read_bytes() != winners[0] or key.name not in {
        each.name for each in key.parent.iterdir()
    }:
        raise StoreRefusedError(
            f'store "{key.store.url}" does not show at once what was put into it',
            hint=_HINT,
        )
