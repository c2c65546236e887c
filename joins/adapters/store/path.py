"""A path in an object store, as `joins.kernels.table_path` has it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import obstore
import obstore.exceptions as failures
import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq

from joins.adapters.store.arrow_files import StoreHandler, opened
from joins.adapters.store.client import StoreAddress, client_of, store_errors
from joins.kernels.table_path import TablePath
from joins.plan.connections import StoreOptions, StoreTable

_PART_BYTES = 16 << 20
_FOOTER_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What a store tells of an object; named as in `os.stat_result`."""

    st_size: int
    st_mtime: float

    @property
    def st_mtime_ns(self) -> int:
        """Its time in nanoseconds."""
        return int(self.st_mtime * 1_000_000_000)

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> "StoredObject":
        put_at: datetime = meta["last_modified"]
        return cls(int(meta["size"]), put_at.timestamp())


@dataclass(frozen=True, slots=True)
class StorePath:
    """A path in an object store; its errors are those of `store_errors`.

    Attributes:
        store: where it is.
        key: without slashes at its ends.
        listed: what a listing said of the object.
    """

    # reads better long: it has what a path has.

    store: StoreAddress
    key: str
    listed: StoredObject | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, path: str, options: StoreOptions) -> "StorePath":
        table = StoreTable.of(path)
        return cls(StoreAddress.of(table, options), table.key)

    def __str__(self) -> str:
        return f"{self.store.url}/{self.key}"

    def __truediv__(self, other: str) -> "StorePath":
        return StorePath(self.store, "/".join(filter(None, (self.key, other.strip("/")))))

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "StorePath":
        return StorePath(self.store, self.key.rpartition("/")[0])

    def exists(self) -> bool:
        """Whether an object is there."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def stat(self) -> StoredObject:
        """What the store tells of the object; of one that was listed, what the listing told."""
        if self.listed is not None:
            return self.listed
        with store_errors(self):
            return StoredObject.of(obstore.head(client_of(self.store), self.key))

    def read_bytes(self) -> bytes:
        with store_errors(self):
            return bytes(obstore.get(client_of(self.store), self.key).bytes())

    def size_and_rows(self, size: int) -> tuple[int, int]:
        """What a Parquet file that should have `size` bytes has, mostly by one request for its end.

        Rows are counted of a file of that size only.
        """
        end_only: Any = {"range": (max(0, size - _FOOTER_BYTES), size)}
        with store_errors(self):
            try:
                answer = obstore.get(client_of(self.store), self.key, options=end_only)
                there, end = int(answer.meta["size"]), bytes(answer.bytes())
            except failures.NotFoundError:
                raise
            except failures.BaseError:  # it may be too short for the range
                there, end = self.stat().st_size, b""
                if there == size:
                    raise
        if there != size:
            return there, 0
        try:
            return there, int(pq.read_metadata(pa.BufferReader(pa.py_buffer(end))).num_rows)
        except pa.ArrowException:  # there are more columns than fit
            return there, int(pq.read_metadata(self.open_input()).num_rows)

    def iterdir(self) -> Iterator["StorePath"]:
        """The objects that are directly below, by name."""
        with store_errors(self):
            listing = obstore.list_with_delimiter(client_of(self.store), self.key)
        for meta in listing["objects"]:
            yield StorePath(self.store, meta["path"], StoredObject.of(meta))

    def below(self) -> Iterator["StorePath"]:
        """All objects that are below, by name."""
        with store_errors(self):
            for chunk in obstore.list(client_of(self.store), self.key):
                for meta in chunk:
                    yield StorePath(self.store, meta["path"], StoredObject.of(meta))

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the object; S3 does not tell whether there was one."""
        try:
            with store_errors(self):
                obstore.delete(client_of(self.store), self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def unlink_all(self, others: Sequence["StorePath"]) -> None:
        """Remove objects of the same store, by few requests; some may be gone already."""
        if not others:
            return
        with suppress(FileNotFoundError), store_errors(self):
            obstore.delete(client_of(self.store), [each.key for each in others])

    def clear(self) -> None:
        with store_errors(self):
            for chunk in obstore.list(client_of(self.store), self.key):
                obstore.delete(client_of(self.store), [meta["path"] for meta in chunk])

    def put(self, content: pa.Buffer | bytes) -> None:
        with store_errors(self):
            view = memoryview(content).cast("B")  # what else has a length is taken for a stream
            obstore.put(client_of(self.store), self.key, view, chunk_size=_PART_BYTES)

    def create(self, content: bytes) -> bool:
        """Make `content` the object unless there is one; returns whether this call's is there.

        A put whose answer was lost is sent again by the client and meets its own object.

        Raises:
            FileNotFoundError: there is no such bucket.
        """
        with store_errors(self):
            try:
                obstore.put(client_of(self.store), self.key, content, mode="create")
                return True
            except (failures.AlreadyExistsError, failures.PreconditionError):
                pass
        try:
            return self.read_bytes() == content
        except FileNotFoundError:  # what was there is gone again
            return False

    def open_input(self) -> pa.NativeFile:
        return opened(self.store, self.key)

    def in_arrow(self) -> tuple[pa_fs.FileSystem, str]:
        return pa_fs.PyFileSystem(StoreHandler(self.store)), self.key


def path_as_json(path: TablePath) -> Any:  # noqa: ANN401 (a value of JSON)
    if isinstance(path, StorePath):
        return {"store": path.store.as_json(), "key": path.key}
    return str(path)


def path_from_json(value: str | Mapping[str, Any]) -> TablePath:
    if isinstance(value, str):
        return Path(value)
    return StorePath(StoreAddress.from_json(value["store"]), value["key"])
