"""Owner of the data directory: one control plane, or all on one PostgreSQL store."""

import os
import uuid
from pathlib import Path

from joins.durable.checkpoint import create_json_once, read_json
from joins.kernels.local_files import take_lock
from service.errors import ControlPlaneError
from service.jobs.store.store import JobStore

_LOCK = "control-plane.lock"
_ID = "job-store.json"


def lock_directory(data_dir: Path, *, shared: bool) -> int:
    """Create and lock the directory; returns the descriptor for `give_lock_up`.

    Control planes on one PostgreSQL store share it; one on SQLite has it alone. Raises
    ControlPlaneError if it cannot be used or is in use.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = data_dir / _LOCK
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise ControlPlaneError(
            f'data directory "{data_dir}" cannot be used: {exc.strerror}',
            hint="Set SLUICE_DATA_DIR to a directory that this user can write.",
        ) from exc
    if not take_lock(descriptor, shared=shared):
        os.close(descriptor)
        raise ControlPlaneError(
            f'data directory "{data_dir}" is in use by another control plane',
            hint="Use that one, stop it, or set SLUICE_DATA_DIR to another directory.",
        )
    return descriptor


def bind_directory(store: JobStore, data_dir: Path, warehouse: str | None) -> None:
    """Ensure that control planes on one store use one data directory, or one warehouse.

    With a warehouse, each control plane has copies of the jobs in its directory, and the store has
    the rest. The first control plane decides. Raises ControlPlaneError if this one differs.
    """
    path = data_dir / _ID
    bound = store.bind(None)
    of_warehouse = None if warehouse is None else str(uuid.uuid5(uuid.NAMESPACE_URL, warehouse))
    if bound is None and of_warehouse is not None and not path.exists():
        bound = store.bind(of_warehouse)
    if bound is not None and bound == of_warehouse:
        store.keep_all()
        return
    if bound is None:
        create_json_once(path, {"data_dir_id": str(uuid.uuid4())})
    content = read_json(path)
    own = None if content is None else str(content["data_dir_id"])
    if own is None or store.bind(own) != own:
        has = "no job store" if own is None else "another job store"
        raise ControlPlaneError(
            f'data directory "{data_dir}" belongs to {has}, not to that of SLUICE_DATABASE_URL',
            hint="Mount the directory that the other control planes of this store have, and set "
            "SLUICE_DATA_DIR to it; or set SLUICE_WAREHOUSE to theirs, if they have one.",
        )
