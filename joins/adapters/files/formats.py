"""The files of a table: what can be known before they are read, and their rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from joins.adapters.files.listing import list_files
from joins.adapters.files.parquet import check_parquet, parquet_rows
from joins.adapters.files.texts import check_texts, text_rows
from joins.plan.plan import Field, FileFormat, FileSource

_LOOKED_AT = 100  # files; the process looks at all of them


def check_files(root: Path, source: FileSource, fields: Sequence[Field]) -> int:
    """See that the files are there and the first ones fit; how many files there are.

    Raises:
        SourceUnavailableError: there is no file now.
        SourceError: one cannot be read.
        DefinitionError: one has not what is declared.
    """
    files = list_files(root)
    for file in files[:_LOOKED_AT]:
        if source.format is FileFormat.PARQUET:
            check_parquet(root / file.path, fields)
        else:
            check_texts(root / file.path, source.of_rows, fields)
    return len(files)


def read_file(file: Path, source: FileSource, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """The rows of one file as wire columns, in their order.

    Raises:
        SourceUnavailableError: the file is gone.
        SourceError: it cannot be read.
        DefinitionError: it has not what is declared.
    """
    if source.format is FileFormat.PARQUET:
        return parquet_rows(file, fields)
    return text_rows(file, source.of_rows, fields)
