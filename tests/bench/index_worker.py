"""A worker that maps an index and looks up each of its keys: `python -m` of this module."""

import json
import sys
from pathlib import Path

import pyarrow as pa

from joins.kernels.index.index import DimensionIndex
from tests.bench.memory_bench import SPEC

_CHUNK = 65_536


def main() -> None:
    """Say `ready`, use the index when a line comes, say `ready`, end when no more come."""
    config = json.loads(sys.argv[1])
    _warm_up()
    _ready()
    sys.stdin.readline()
    index = DimensionIndex.attach(Path(config["index"]), config["version"], SPEC)
    found = 0
    for first in range(1, config["rows"] + 1, _CHUNK):
        keys = pa.array(range(first, min(first + _CHUNK, config["rows"] + 1)), pa.int64())
        _, rows = index.lookup([keys])
        found += index.take(rows, SPEC.schema.names).num_rows
    if found != config["rows"]:
        raise RuntimeError(f"{found} of {config['rows']} rows are found")
    pa.default_memory_pool().release_unused()
    _ready()
    sys.stdin.read()


def _warm_up() -> None:
    pa.array(range(_CHUNK), pa.int64()).take(pa.array(range(_CHUNK), pa.int64()))


def _ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
