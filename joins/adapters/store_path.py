"""Paths in an object store with the interface of `joins.kernels.table_path`."""

import io
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context  # a deadline holds for the racers, too
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import obstore
import obstore.exceptions as failures
import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from pydantic import PlainSerializer, PlainValidator

from joins.adapters.store_client import StoreAddress, client_of, store_errors
from joins.durable.codec import as_json, from_json
from joins.durable.stored import StoredFiles, all_stored, keep_stored
from joins.kernels.table_path import TablePath
from joins.plan.connections import StoreOptions, StoreTable
from joins.plan.errors import StoreRefusedError

_WHOLE_BYTES = 16 << 20
_READ_BYTES = 1 << 20


class _Ranges(io.RawIOBase):
    def __init__(self, store: StoreAddress, key: str) -> None:
        self._place = f"{store.url}/{key}"
        with store_errors(self._place):
            self._file = obstore.open_reader(client_of(store), key, buffer_size=_READ_BYTES)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        with store_errors(self._place):
            return self._file.seek(offset, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        with store_errors(self._place):
            return bytes(self._file.read(None if size is None or size < 0 else size))


def opened(store: StoreAddress, key: str) -> pa.NativeFile:
    """The object `key` at its beginning; a small one takes one request."""
    with store_errors(f"{store.url}/{key}"):
        answer = obstore.get(client_of(store), key)
        if answer.meta["size"] <= _WHOLE_BYTES:
            return pa.BufferReader(pa.py_buffer(answer.bytes()))
        del answer  # does not wait for the rest
    return pa.PythonFile(_Ranges(store, key), mode="r")


class StoreHandler(pa_fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """A read-only file system of named objects for Arrow's datasets."""

    # reads better long: Arrow's interface has this many methods, and most of them are of no use.

    def __init__(self, store: StoreAddress) -> None:
        self._store = store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreHandler) and other._store == self._store

    def __hash__(self) -> int:
        return hash(self._store)

    def get_type_name(self) -> str:
        return "store"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pa_fs.FileInfo]:
        return [pa_fs.FileInfo(path, pa_fs.FileType.File) for path in paths]

    def open_input_file(self, path: str) -> pa.NativeFile:
        return opened(self._store, path)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return opened(self._store, path)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:  # noqa: ANN401 (whatever Arrow passes)
        raise NotImplementedError("datasets only read")

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refuse
    delete_root_dir_contents = delete_file = move = copy_file = _refuse
    open_output_stream = open_append_stream = _refuse


_PART_BYTES = 16 << 20
_FOOTER_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Metadata of an object, named as in `os.stat_result`."""

    st_size: int
    st_mtime: float

    @property
    def st_mtime_ns(self) -> int:
        return int(self.st_mtime * 1_000_000_000)

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> "StoredObject":
        put_at: datetime = meta["last_modified"]
        return cls(int(meta["size"]), put_at.timestamp())


@dataclass(frozen=True, slots=True)
class StorePath:
    """A path in an object store; raises as `store_errors`. `listed` is a listing's metadata."""

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
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def stat(self) -> StoredObject:
        """The object's metadata, of a listed one that of the listing."""
        if self.listed is not None:
            return self.listed
        with store_errors(self):
            return StoredObject.of(obstore.head(client_of(self.store), self.key))

    def read_bytes(self) -> bytes:
        with store_errors(self):
            return bytes(obstore.get(client_of(self.store), self.key).bytes())

    def iterdir(self) -> Iterator["StorePath"]:
        """The objects directly below, by name."""
        with store_errors(self):
            listing = obstore.list_with_delimiter(client_of(self.store), self.key)
        for meta in listing["objects"]:
            yield StorePath(self.store, meta["path"], StoredObject.of(meta))

    def below(self) -> Iterator["StorePath"]:
        """All objects below, by name."""
        with store_errors(self):
            for chunk in obstore.list(client_of(self.store), self.key):
                for meta in chunk:
                    yield StorePath(self.store, meta["path"], StoredObject.of(meta))

    def unlink(self, missing_ok: bool = False) -> None:
        """S3 does not report whether the object existed."""
        try:
            with store_errors(self):
                obstore.delete(client_of(self.store), self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def unlink_all(self, others: Sequence["StorePath"]) -> None:
        """Remove objects of the same store by few requests; missing ones are ignored."""
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
            # obstore takes other objects with a length for a stream
            view = memoryview(content).cast("B")
            obstore.put(client_of(self.store), self.key, view, chunk_size=_PART_BYTES)

    def create(self, content: bytes) -> bool:
        """Create the object with `content` unless it exists; True if this call created it.

        After a lost answer the client repeats the put and meets its own object.
        """
        with store_errors(self):
            try:
                obstore.put(client_of(self.store), self.key, content, mode="create")
                return True
            except (failures.AlreadyExistsError, failures.PreconditionError):
                pass
        try:
            return self.read_bytes() == content
        except FileNotFoundError:  # the object is gone again
            return False

    def open_input(self) -> pa.NativeFile:
        return opened(self.store, self.key)

    def in_arrow(self) -> tuple[pa_fs.FileSystem, str]:
        return pa_fs.PyFileSystem(StoreHandler(self.store)), self.key


def size_and_rows(path: StorePath, size: int) -> tuple[int, int]:
    """Size and row count, usually by one request; rows only if the size is as expected."""
    end_only: Any = {"range": (max(0, size - _FOOTER_BYTES), size)}
    with store_errors(path):
        try:
            answer = obstore.get(client_of(path.store), path.key, options=end_only)
            there, end = int(answer.meta["size"]), bytes(answer.bytes())
        except failures.NotFoundError:
            raise
        except failures.BaseError:  # the object may be too short for the range
            there, end = path.stat().st_size, b""
            if there == size:
                raise
    if there != size:
        return there, 0
    try:
        return there, int(pq.read_metadata(pa.BufferReader(pa.py_buffer(end))).num_rows)
    except pa.ArrowException:  # the metadata of many columns exceeds the range
        return there, int(pq.read_metadata(path.open_input()).num_rows)


def path_as_json(path: TablePath) -> Any:  # noqa: ANN401 (a value of JSON)
    if isinstance(path, StorePath):
        return {"store": as_json(path.store), "key": path.key}
    return str(path)


def path_from_json(value: str | Mapping[str, Any]) -> TablePath:
    if isinstance(value, str):
        return Path(value)
    return StorePath(from_json(StoreAddress, value["store"]), value["key"])


DocumentPath = Annotated[TablePath, PlainValidator(path_from_json), PlainSerializer(path_as_json)]
"""A `TablePath` as a field of a document."""


def stored_as_json() -> list[dict[str, Any]]:
    return [
        {
            "directory": str(files.directory),
            "place": path_as_json(files.place),
            "epoch": files.epoch,
        }
        for files in all_stored()
    ]


def store_alike(documents: Iterable[Mapping[str, Any]]) -> None:
    """Store the files that `stored_as_json` described, from now on."""
    for each in documents:
        place = path_from_json(each["place"])
        assert not isinstance(place, Path), "what is stored is in a store"
        keep_stored(StoredFiles(Path(each["directory"]), place, each["epoch"]))


_RACERS = 12
_ROUNDS = 32
_KEPT_S = 600.0
_HINT = (
    "Use a store with conditional writes (Amazon S3, Azure Blob Storage, MinIO, Cloudflare R2), or "
    "a directory."
)
_proven: dict[StoreAddress, float] = {}


def prove_conditional_puts(root: StorePath) -> None:
    """Test the store of `root` by racing puts, at most every ten minutes.

    Test objects go beside the table's files and are removed. StoreRefusedError if the store does
    not keep conditional puts, has no such bucket, or denies access.
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
        with suppress(OSError):  # an earlier error says more
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
