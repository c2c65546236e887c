"""The files of a table: what can be known before they are read, and their rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from joins.adapters.files.json_lines import check_json, json_rows
from joins.adapters.files.listing import list_files
from joins.adapters.files.parquet import check_parquet, parquet_rows
from joins.plan.plan import Field, FileFormat

_LOOKED_AT = 100  # files; the process looks at all of them


def check_files(root: Path, format_: FileFormat, fields: Sequence[Field]) -> int:
    """See that the files are there and the first ones fit; how many files there are.

    Raises:
        SourceUnavailableError: there is no file now.
        SourceError: one cannot be read.
        DefinitionError: one has not what is declared.
    """
    files = list_files(root)
    check = check_parquet if format_ is FileFormat.PARQUET else check_json
    for file in files[:_LOOKED_AT]:
        check(root / file.path, fields)
    return len(files)


def read_file(file: Path, format_: FileFormat, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """The rows of one file as wire columns, in their order.

    Raises:
        SourceUnavailableError: the file is gone.
        SourceError: it cannot be read.
        DefinitionError: it has not what is declared.
    """
    rows = parquet_rows if format_ is FileFormat.PARQUET else json_rows
    return rows(file, fields)
