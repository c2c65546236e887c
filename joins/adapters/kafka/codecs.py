"""The codecs of record batches: bodies as every client of Kafka compresses and reads them."""

import gzip
from collections.abc import Callable, Mapping

import pyarrow as pa
from kafka import codec as kafka_codec

from joins.kernels.records.encode import BODIES
from joins.kernels.records.layout import RecordFormatError
from joins.plan.plan import Compression


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=6, mtime=0)  # the time would make repeats differ


_Codec = Callable[[bytes], bytes]
_COMPRESS: Mapping[Compression, _Codec] = {
    Compression.GZIP: _gzip,
    Compression.SNAPPY: kafka_codec.snappy_encode,
    Compression.LZ4: kafka_codec.lz4_encode,
    Compression.ZSTD: kafka_codec.zstd_encode,
}
_DECOMPRESS: Mapping[Compression, _Codec] = {
    Compression.GZIP: gzip.decompress,
    Compression.SNAPPY: kafka_codec.snappy_decode,
    Compression.LZ4: kafka_codec.lz4_decode,
    Compression.ZSTD: kafka_codec.zstd_decode,
}


def compressed(bodies: pa.RecordBatch, compression: Compression) -> pa.RecordBatch:
    """`BODIES` with each body compressed by itself."""
    if compression is Compression.NONE:
        return bodies
    compress = _COMPRESS[compression]
    each = [compress(body.as_py()) for body in bodies.column("body")]
    return bodies.set_column(2, BODIES.field("body"), pa.array(each, pa.large_binary()))


def decompressed(compression: Compression, body: bytes) -> bytes:
    """A body that is compressed.

    Raises:
        RecordFormatError: not in this way.
    """
    try:
        return _DECOMPRESS[compression](body)
    except Exception as exc:  # each library has errors of its own
        raise RecordFormatError(f"a batch is no {compression}: {exc}") from exc
