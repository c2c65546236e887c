"""`store`: what a batch of an output in an object store costs: requests and bytes.

The product's parts are driven directly, without Spark and Kafka: the look at the claims of runners,
the pin, a worker's file, the commit, and what is counted. The server is moto on this machine, so
that its time says nothing of a real store's: each request there waits for the network, one after
the other.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from joins.adapters.delta.log import DeltaLog, create_table
from joins.batch.batches import check_fence
from joins.durable.checkpoint import Checkpoint, write_json_atomically
from joins.durable.pins import Pin, PinStore
from joins.durable.stored import StoredFiles, keep_stored, stop_storing
from joins.durable.stored_directory import take_over
from joins.kernels.probe.files import FileOrigin
from joins.kernels.table_path import TablePath
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.support.object_store import ObjectStore, object_store

_RECORDS = 10_000
_BATCHES = 50
_SCHEMA = pa.schema([("user_id", pa.int64()), ("item_id", pa.int64()), ("name", pa.string())])


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """Requests, bytes and time of a batch; bytes against those of the same in a directory."""
    records = sizes.records or _RECORDS
    with object_store() as store:
        requests, put, seconds = zip(
            *(_run(store, n, records) for n in range(sizes.runs)), strict=True
        )
    local = [_run_here(place.new("local"), n, records) for n in range(sizes.runs)]
    size, full = f"{_BATCHES} batches of {records:,} records", records == _RECORDS
    methods = {"methods": dict(store.requests)}
    most, little = Bar(Sense.VALUE_AT_MOST, 12.0), Bar(Sense.RATIO_AT_MOST, 1.1)
    return [
        Measure("requests of a batch", "requests", size, full, requests, bar=most, facts=methods),
        Measure("bytes that are put, against a directory", "bytes", size, full, put, local, little),
        Measure("batch against moto on this machine", "s", size, full, seconds),
    ]


def _run(store: ObjectStore, number: int, records: int) -> tuple[float, float, float]:
    """Requests of a batch, bytes of all that is put, and seconds of a batch."""
    with tempfile.TemporaryDirectory() as directory:
        files = StoredFiles(Path(directory), store.path(f"bench/files-{number}"))
        take_over(files, 0)
        keep_stored(files)
        store.requests.clear()
        store.received = 0
        try:
            seconds = _batches(store.path(f"bench/{number}"), Path(directory), number, records)
        finally:
            stop_storing(files.directory)
    return store.requests.total() / _BATCHES, float(store.received), seconds


def _run_here(home: Path, number: int, records: int) -> float:
    (home / "job").mkdir(parents=True)
    _batches(home / "table", home / "job", number, records)
    return float(sum(path.stat().st_size for path in home.rglob("*") if path.is_file()))


def _batches(path: TablePath, job: Path, number: int, records: int) -> float:
    """Seconds of a batch of a job in the directory `job`, with its output at `path`."""
    checkpoint, random = Checkpoint(job / "checkpoint"), np.random.default_rng(number)
    pins = PinStore(checkpoint.pins_directory)
    create_table(path, _SCHEMA)
    log = DeltaLog(path, "bench")
    log.commit_epoch(1)
    began = time.monotonic()
    for batch in range(_BATCHES):
        check_fence(pins, log, 1)
        pins.create(Pin(batch, "clicks", {0: batch}, {0: batch + 1}, {}, 1_000, 1))
        ids = random.integers(0, 1_000_000, records)
        names = pa.array([f"user {each}" for each in ids.tolist()])
        with log.shared.stage(_SCHEMA, FileOrigin(1, batch, 0, 0)) as stage:
            stage.write(pa.record_batch([ids, ids % 1000, names], schema=_SCHEMA))
            file = stage.finish()
        assert file is not None
        log.commit(batch, 1, [file], {"batch": batch})
        write_json_atomically(checkpoint.progress_file, {"batch": batch}, lazily=True)
    return (time.monotonic() - began) / _BATCHES
