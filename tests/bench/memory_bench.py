"""`memory`: the size of the index files, and what workers that share them need together.

The index is built by the library from generated rows, as a runner builds it; the workers are
processes that map it and look up every key.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from joins.kernels.changelog.envelope import CapturedColumn, changelog_schema
from joins.kernels.index.dimension_index import read_manifest
from joins.kernels.index.index import IndexSpec, build
from joins.kernels.json.wire import Encoding
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place

DIM, WORKERS = 5_000_000, 4
_ROOT = Path(__file__).resolve().parents[2]
_BATCH = 131_072
_BIGINT, _STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.STRING)
COLUMNS = (
    CapturedColumn("user_id", _BIGINT, Encoding.INTEGER),
    CapturedColumn("gender", _STRING, Encoding.STRING),
    CapturedColumn("name", _STRING, Encoding.STRING),
)
SPEC = IndexSpec(
    ("user_id",), ("user_id",), tuple(Field(c.name, c.sql_type) for c in COLUMNS), partitions=1
)
SCHEMA = changelog_schema(COLUMNS)


def user_rows(ids: np.ndarray, op: str, *, pos: int, offset: int) -> pa.RecordBatch:
    """Changelog rows of these users, in the order given."""
    count = len(ids)
    whole = {
        "user_id": ids,
        "gender": np.where(ids % 2, "F", "M"),
        "name": np.char.add(np.char.add("user ", ids.astype(str)), f" {pos}"),
        "_row": np.arange(count),
        "_offset": np.arange(offset, offset + count),
    }
    same = {
        "_op": op,
        "_epoch": 0,
        "_file": 1,
        "_pos": pos,
        "_source_ts": 0,
        "_partition": 0,
        "_generation": 1,
    }
    columns = [
        pa.array(whole[field.name], field.type)
        if field.name in whole
        else pa.repeat(pa.scalar(same[field.name], field.type), count)
        for field in SCHEMA
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def complete(*, offset: int) -> pa.RecordBatch:
    row = {"_op": "w", "_epoch": 0, "_file": 1, "_pos": 0, "_row": -1, "_source_ts": 0}
    row |= {"_partition": 0, "_offset": offset, "_generation": 1}
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def snapshot_rows(dim: int) -> Iterator[pa.RecordBatch]:
    """Users 1 to `dim`, and that they are all."""
    for first in range(0, dim, _BATCH):
        ids = np.arange(first + 1, min(first + _BATCH, dim) + 1)
        yield user_rows(ids, "r", pos=0, offset=first)
    yield complete(offset=dim)


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """File bytes by Arrow bytes, and four workers against one."""
    dim = sizes.dim or DIM
    home = place.new("index")
    build(home, 1, SPEC, snapshot_rows(dim))
    manifest = read_manifest(home / SPEC.digest, 1)
    stored = sum(file.size for entry in manifest.segments for file in entry.all_files)
    arrow = sum(batch.select(SPEC.schema.names).nbytes for batch in snapshot_rows(dim))
    place.say(f"{stored >> 20} MiB of files, {arrow >> 20} MiB of Arrow data")
    one = [_growth(home, dim, 1) for _ in range(sizes.runs)]
    many = [_growth(home, dim, WORKERS) for _ in range(sizes.runs)]
    size, full = f"{dim:,} rows", dim >= DIM
    return [
        Measure(
            "index files by Arrow data",
            "MiB",
            size,
            full,
            [stored / 2**20],
            [arrow / 2**20],
            Bar(Sense.RATIO_AT_MOST, 1.5),
        ),
        Measure(
            f"PSS of {WORKERS} workers together against that of one",
            "MiB",
            size,
            full,
            many,
            one,
            Bar(Sense.RATIO_AT_MOST, 1.5),
        ),
    ]


def _growth(home: Path, dim: int, workers: int) -> float:
    """By how many MiB the PSS of so many workers grows together when they use the index."""
    with ExitStack() as stack:
        programs = [stack.enter_context(_worker(home, dim)) for _ in range(workers)]
        before = sum(_pss(program) for program in programs)
        for program in programs:  # one after the other, so that all are measured at rest
            _tell(program)
        after = sum(_pss(program) for program in programs)
        for program in programs:
            assert program.stdin is not None
            program.stdin.close()
    return (after - before) / 2**20


def _worker(home: Path, dim: int) -> "subprocess.Popen[str]":
    config = json.dumps({"index": str(home), "version": 1, "rows": dim})
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.index_worker", config],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _await(program)
    return program


def _tell(program: "subprocess.Popen[str]") -> None:
    assert program.stdin is not None
    program.stdin.write("go\n")
    program.stdin.flush()
    _await(program)


def _await(program: "subprocess.Popen[str]") -> None:
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n", "a worker has failed"


def _pss(program: "subprocess.Popen[str]") -> int:
    return int(psutil.Process(program.pid).memory_full_info().pss)
