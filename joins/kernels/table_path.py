"""Where the files of a table are: in a directory, or in an object store.

A path of either has the same names, and raises `FileNotFoundError` for a missing file.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq

if TYPE_CHECKING:
    import pyarrow.dataset as ds


class ObjectStatus(Protocol):
    """Status of an object in a store; named as in `os.stat_result`."""

    @property
    def st_size(self) -> int:
        """Size in bytes."""

    @property
    def st_mtime(self) -> float:
        """Time of the upload, in seconds since the epoch."""

    @property
    def st_mtime_ns(self) -> int:
        """Time of the upload, in nanoseconds."""


class ObjectPath(Protocol):
    """A path in an object store, picklable and hashable; as text it is an address."""

    # reads better long: it has what a path has.

    @property
    def name(self) -> str:
        """The last part."""

    @property
    def parent(self) -> Self:
        """The path without the last part."""

    def __truediv__(self, other: str) -> Self:
        """The path of a child."""

    def exists(self) -> bool:
        """True if there is an object at this path."""

    def stat(self) -> ObjectStatus:
        """Status of the object."""

    def read_bytes(self) -> bytes:
        """The object's content."""

    def iterdir(self) -> Iterator[Self]:
        """The objects directly below; none if there are none."""

    def below(self) -> Iterator[Self]:
        """All objects below, at any depth."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the object."""

    def unlink_all(self, others: Sequence[Self]) -> None:
        """Remove objects of the same store in few requests; missing ones are skipped."""

    def clear(self) -> None:
        """Remove all objects below."""

    def put(self, content: pa.Buffer | bytes) -> None:
        """Write the object, atomically and durably."""

    def create(self, content: bytes) -> bool:
        """Write the object unless it exists; returns True if this call's content is there."""

    def open_input(self) -> pa.NativeFile:
        """Open the object for random reads."""

    def in_arrow(self) -> tuple[pa_fs.FileSystem, str]:
        """Arrow's view of the store, and the object's name in it."""


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


def batch_rows(
    file: pq.ParquetFile, columns: Sequence[str], most_rows: int, most_bytes: int
) -> int:
    """Rows of a batch whose `columns` have about `most_bytes`, by the file's footer."""
    footer, most, names = file.metadata, most_rows, tuple(f"{name}." for name in columns)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        parts = (group.column(at) for at in range(group.num_columns))
        read = [part for part in parts if f"{part.path_in_schema}.".startswith(names)]
        size = sum(part.total_uncompressed_size for part in read)
        most = min(most, most_bytes * group.num_rows // max(1, size))
    return max(1, most)


def value_bounds(file: pq.ParquetFile, column: str) -> tuple[Any, Any]:
    """Least and greatest value of a column, by the footer if it has them; None without values."""
    footer, number = file.metadata, -1
    paths = [file.schema.column(at).path for at in range(len(file.schema))]
    if column in paths:
        number = paths.index(column)
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    known = [None if number < 0 else group.column(number).statistics for group in groups]
    if number >= 0 and all(each is not None and each.has_min_max for each in known):
        least = [each.min for each in known if each is not None]
        greatest = [each.max for each in known if each is not None]
        return min(least, default=None), max(greatest, default=None)
    both = pc.min_max(file.read(columns=[column]).column(column))
    return both["min"].as_py(), both["max"].as_py()


def remove_below(place: TablePath) -> None:
    """Remove the files below `place` that can be removed now."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
        return
    with suppress(OSError):
        place.clear()


def dataset_of(files: Sequence[TablePath], schema: pa.Schema) -> "ds.Dataset":
    """The rows of Parquet files, all of them in one place."""
    import pyarrow.dataset as ds  # 3 MB that a control plane does not use

    first = next(iter(files), None)
    if first is None or isinstance(first, Path):
        return ds.dataset([str(file) for file in files], schema, format="parquet")
    keys = [file.in_arrow()[1] for file in files if not isinstance(file, Path)]
    return ds.dataset(keys, schema, format="parquet", filesystem=first.in_arrow()[0])
