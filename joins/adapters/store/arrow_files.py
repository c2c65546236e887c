"""Objects of a store as files that Arrow reads: small ones whole, of others what is asked for."""

import io
from typing import Any, NoReturn

import obstore
import pyarrow as pa
import pyarrow.fs as pa_fs

from joins.adapters.store.client import StoreAddress, client_of, store_errors

_WHOLE_BYTES = 16 << 20
_READ_BYTES = 1 << 20


class _Ranges(io.RawIOBase):
    """A large object, read in ranges."""

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
    """The object `key`, at its beginning; a small one takes one request.

    Raises:
        OSError: as `store_errors`.
    """
    with store_errors(f"{store.url}/{key}"):
        answer = obstore.get(client_of(store), key)
        if answer.meta["size"] <= _WHOLE_BYTES:
            return pa.BufferReader(pa.py_buffer(answer.bytes()))
        del answer  # its rest is not waited for
    return pa.PythonFile(_Ranges(store, key), mode="r")


class StoreHandler(pa_fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """What a dataset asks of a file system: that named files can be opened."""

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
