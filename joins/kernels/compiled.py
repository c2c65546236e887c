"""NumPy functions as native code, compiled once a node and cached for later processes.

Only this user can write to the cache: its code runs as this user.
"""

import hashlib
import inspect
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import UserProvidedCacheLocator

from joins.kernels.local_files import give_lock_up, take_lock

_Function = TypeVar("_Function", bound=Callable[..., Any])
_LOCK = "lock"


def _private(directory: Path) -> bool:
    """True if `directory` exists or can be made, and only this user can write to it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
    except OSError:
        return False
    mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return mine and not status.st_mode & 0o022 and os.access(directory, os.W_OK)


def kept_in() -> Path:
    """The directory of compiled code, of this user alone.

    `NUMBA_CACHE_DIR` if it is set; else below the first writable of `XDG_CACHE_HOME`, the home and
    the temporary directory; else one of this process, which compiles everything.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    cache = os.environ.get("XDG_CACHE_HOME")
    home = os.environ.get("HOME")
    places = [
        Path(named) if named else None,
        Path(cache, "sluice", "compiled") if cache else None,
        Path(home, ".cache", "sluice", "compiled") if home else None,
        Path(tempfile.gettempdir(), f"sluice-{os.getuid()}"),
    ]
    kept = (place for place in places if place is not None and _private(place))
    return next(kept, None) or Path(tempfile.mkdtemp(prefix="sluice-"))


class Locator(UserProvidedCacheLocator):
    """Where numba keeps a function: by its package, independent of the package's location.

    Executors unpack the package into a directory of each run, and must not compile it each time.
    """

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        return Path(py_file).parent.name


_KEPT_IN = kept_in()
_config: Any = numba.config
_config.CACHE_LOCATOR_CLASSES = f"{Locator.__module__}.{Locator.__qualname__}"
# Without `_nrt` arrays are not reference-counted, which took three quarters of the time of JSON.
_OPTIONS: Any = {"cache": True, "nogil": True, "_nrt": False}


def _files_of(function: Callable[..., Any]) -> set[str]:
    own, files = inspect.getfile(function), {inspect.getfile(function)}
    for value in function.__globals__.values():
        called = getattr(value, "py_func", None)
        if called is not None and inspect.getfile(called) != own:
            files |= _files_of(called)
    return files


def compiled(function: _Function) -> _Function:
    """`function` as native code, made at its first call or read from the directory.

    Its tuples are defined in its module: code is cached under the digest of that file, of the files
    whose compiled functions it imports, and of this file, so that no version loads the code of
    another. It makes no arrays.
    """
    names = sorted({__file__, *_files_of(function)})
    source = b"".join(Path(name).read_bytes() for name in names)
    _config.CACHE_DIR = str(_KEPT_IN / hashlib.sha256(source).hexdigest()[:16])
    return cast(_Function, numba.njit(**_OPTIONS)(function))


def inlined(function: _Function) -> _Function:
    """`function` inlined into its callers: a call with arrays costs more than a short body."""
    return cast(_Function, numba.njit(inline="always")(function))


_WAITS_UNTIL = time.monotonic() + 120.0  # in the first minutes of a process


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """The node's other processes wait while this one calls functions for the first time.

    They do not wait for ever: a process that has halted may have the lock, and without it a
    function is only compiled twice.
    """
    descriptor = os.open(_KEPT_IN / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not take_lock(descriptor) and time.monotonic() < _WAITS_UNTIL:
            time.sleep(0.01)
        yield
    finally:
        give_lock_up(descriptor)
