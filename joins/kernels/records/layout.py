"""The layout of a record batch, format v2 (magic 2): its header around finished records.

Source: Kafka's documentation, "Record Batch" and "Record".
"""

import struct
from dataclasses import dataclass

import crc32c

from joins.plan.plan import Compression

_MAGIC = 2
_BEFORE_CRC = struct.Struct(">qiib")
_CRC = struct.Struct(">I")
_BEHIND_CRC = struct.Struct(">hiqqqhii")
_UNCOUNTED = struct.calcsize(">qi")  # base offset and the length itself
HEADER_BYTES = _BEFORE_CRC.size + _CRC.size + _BEHIND_CRC.size


_CODECS = {kind: number for number, kind in enumerate(Compression)}  # in the attributes


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """Whose a record batch is, and which: the broker tells repeats from news by it.

    Attributes:
        producer_id: of the idempotent producer.
        producer_epoch: of that.
        sequence: number of the batch's first record in its partition, of this producer.
    """

    producer_id: int
    producer_epoch: int
    sequence: int


def record_batch(
    body: bytes, records: int, compression: Compression, at_ms: int, origin: BatchOrigin
) -> bytes:
    """A whole batch.

    Args:
        body: its records; the delta of each record's time is 0.
        records: how many.
        compression: of `body`.
        at_ms: time of all records, epoch milliseconds.
        origin: of the batch.
    """
    who = (origin.producer_id, origin.producer_epoch, origin.sequence)
    behind = _BEHIND_CRC.pack(_CODECS[compression], records - 1, at_ms, at_ms, *who, records)
    length = HEADER_BYTES - _UNCOUNTED + len(body)
    checksum = crc32c.crc32c(body, crc32c.crc32c(behind))
    before = _BEFORE_CRC.pack(0, length, -1, _MAGIC)
    return b"".join((before, _CRC.pack(checksum), behind, body))
