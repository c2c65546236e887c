"""The codecs of record batches: bodies compressed as every client of Kafka reads them."""

import gzip
from collections.abc import Callable, Mapping

import pyarrow as pa
from kafka import codec as kafka_codec

from joins.kernels.records.encode import BODIES
from joins.plan.plan import Compression


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=6, mtime=0)  # the time would make repeats differ


_COMPRESS: Mapping[Compression, Callable[[bytes], bytes]] = {
    Compression.GZIP: _gzip,
    Compression.SNAPPY: kafka_codec.snappy_encode,
    Compression.LZ4: kafka_codec.lz4_encode,
    Compression.ZSTD: kafka_codec.zstd_encode,
}


def compressed(bodies: pa.RecordBatch, compression: Compression) -> pa.RecordBatch:
    """`BODIES` with each body compressed by itself."""
    if compression is Compression.NONE:
        return bodies
    compress = _COMPRESS[compression]
    each = [compress(body.as_py()) for body in bodies.column("body")]
    return bodies.set_column(2, BODIES.field("body"), pa.array(each, pa.large_binary()))
