"""Where the files of a table are: in a directory, or in an object store.

A path of a store goes where a `Path` goes: what both have has one name, and a file that is missing
is a `FileNotFoundError` of either. What only directories have is asked of a `Path`.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq


class ObjectStatus(Protocol):
    """What a store tells of an object; named as in `os.stat_result`."""

    @property
    def st_size(self) -> int:
        """Its bytes."""
        ...

    @property
    def st_mtime(self) -> float:
        """When it was put, in seconds since the epoch."""
        ...

    @property
    def st_mtime_ns(self) -> int:
        """The same in nanoseconds."""
        ...


class ObjectPath(Protocol):
    """A path in an object store, picklable and a key of mappings; as text it is an address."""

    # reads better long: it has what a path has.

    @property
    def name(self) -> str:
        """The last part."""
        ...

    @property
    def parent(self) -> Self:
        """Without the last part."""
        ...

    def __truediv__(self, other: str) -> Self:
        """The path of what is below."""
        ...

    def exists(self) -> bool:
        """Whether an object is there."""
        ...

    def stat(self) -> ObjectStatus:
        """What the store tells of the object."""
        ...

    def read_bytes(self) -> bytes:
        """The object's content."""
        ...

    def iterdir(self) -> Iterator[Self]:
        """The objects that are directly below; none if there is nothing."""
        ...

    def below(self) -> Iterator[Self]:
        """All objects that are below."""
        ...

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the object."""
        ...

    def unlink_all(self, others: Sequence[Self]) -> None:
        """Remove objects of the same store, by few requests; some may be gone already."""
        ...

    def clear(self) -> None:
        """Remove all objects that are below."""
        ...

    def put(self, content: pa.Buffer | bytes) -> None:
        """Make `content` the object, at once and durably."""
        ...

    def create(self, content: bytes) -> bool:
        """Make `content` the object unless there is one; returns whether this call's is there."""
        ...

    def open_input(self) -> pa.NativeFile:
        """The object to be read at any place."""
        ...

    def in_arrow(self) -> tuple[pa_fs.FileSystem, str]:
        """Arrow's view of the store, and the object's name in it."""
        ...


TablePath = Path | ObjectPath
"""Of a table, or of a file of it."""


def readable(file: TablePath) -> Path | pa.NativeFile:
    """The input for Arrow's readers; raises OSError if a store lacks the file."""
    return file if isinstance(file, Path) else file.open_input()


def row_count(file: TablePath) -> int:
    """Rows of a Parquet file, from its footer; raises OSError or ArrowException."""
    # A name goes through Arrow's file systems, which takes seven times as long as the file.
    with pa.OSFile(str(file)) if isinstance(file, Path) else file.open_input() as opened:
        return int(pq.read_metadata(opened).num_rows)


def remove_below(place: TablePath) -> None:
    """Remove the files below `place` that can be removed now."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
        return
    with suppress(OSError):
        place.clear()


def dataset_of(files: Sequence[TablePath], schema: pa.Schema) -> ds.Dataset:
    """The rows of Parquet files, all of them in one place."""
    first = next(iter(files), None)
    if first is None or isinstance(first, Path):
        return ds.dataset([str(file) for file in files], schema, format="parquet")
    keys = [file.in_arrow()[1] for file in files if not isinstance(file, Path)]
    return ds.dataset(keys, schema, format="parquet", filesystem=first.in_arrow()[0])
