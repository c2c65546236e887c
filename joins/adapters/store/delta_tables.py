"""What delta-rs is told of a store, and what it says of one."""

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    TableNotFoundError,
)

from joins.adapters.store.client import plain
from joins.adapters.store.path import StorePath
from joins.kernels.table_path import TablePath
from joins.plan.errors import StoreUnavailableError

_OF_THE_TABLE = (CommitFailedError, DeltaProtocolError, TableNotFoundError)


def delta_options(path: TablePath) -> dict[str, str] | None:
    return path.store.for_delta() if isinstance(path, StorePath) else None


@contextmanager
def store_faults(path: TablePath) -> Iterator[None]:
    """What delta-rs raises where the store of `path` is at fault, in our words.

    Raises:
        StoreUnavailableError: requests have failed; waiting, or other credentials, may help.
    """
    try:
        yield
    except (DeltaError, OSError) as exc:
        if not isinstance(path, StorePath) or isinstance(
            exc, (*_OF_THE_TABLE, StoreUnavailableError)
        ):
            raise
        raise StoreUnavailableError(
            f'store does not serve delta table "{path}": {plain(str(exc))}',
            hint="It is tried again; see that the store's server answers and that the credentials "
            "are valid now.",
        ) from None
