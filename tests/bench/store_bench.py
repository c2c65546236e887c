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
from joins.batch.fence import check_fence
from joins.durable.checkpoint import Checkpoint, write_json_atomically
from joins.durable.pins import Pin, PinStore
from joins.durable.stored import StoredFiles, keep_stored, stop_storing
from joins.durable.stored_directory import take_over
from joins.kernels.probe.files import FileOrigin
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.support.object_store import ObjectStore, object_store

_RECORDS = 10_000
_BATCHES = 50
_SCHEMA = pa.schema([("user_id", pa.int64()), ("item_id", pa.int64()), ("name", pa.string())])


def measure(_: Place, sizes: Sizes) -> list[Measure]:
    """Requests, bytes and time of a batch."""
    records = sizes.records or _RECORDS
    with object_store() as store:
        requests, amplified, seconds = zip(
            *(_run(store, n, records) for n in range(sizes.runs)), strict=True
        )
    size, full = f"{_BATCHES} batches of {records:,} records", records == _RECORDS
    methods = {"methods": dict(store.requests)}
    most, little = Bar(Sense.VALUE_AT_MOST, 12.0), Bar(Sense.VALUE_AT_MOST, 1.5)
    return [
        Measure("requests of a batch", "requests", size, full, requests, bar=most, facts=methods),
        Measure("bytes on the wire for a byte of rows", "bytes", size, full, amplified, bar=little),
        Measure("batch against moto on this machine", "s", size, full, seconds),
    ]


def _run(store: ObjectStore, number: int, records: int) -> tuple[float, float, float]:
    """Requests, bytes a byte of data files, and seconds of a batch."""
    with tempfile.TemporaryDirectory() as directory:
        files = StoredFiles(Path(directory), store.path(f"bench/files-{number}"))
        take_over(files, 0)
        keep_stored(files)
        try:
            return _batches(store, number, records, Checkpoint(Path(directory) / "checkpoint"))
        finally:
            stop_storing(files.directory)


def _batches(
    store: ObjectStore, number: int, records: int, checkpoint: Checkpoint
) -> tuple[float, float, float]:
    pins = PinStore(checkpoint.pins_directory)
    path, random = store.path(f"bench/{number}"), np.random.default_rng(number)
    create_table(path, _SCHEMA)
    log = DeltaLog(path, "bench")
    log.commit_epoch(1)
    store.requests.clear()
    store.sent = store.received = written = 0
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
        written += file.size_bytes
    seconds = (time.monotonic() - began) / _BATCHES
    moved = store.sent + store.received
    return store.requests.total() / _BATCHES, moved / written, seconds
