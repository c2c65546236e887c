"""Produces many records at little cost: record batches of our own making, one request a call.

kafka-python builds a record in about 20 µs, which is two minutes of a core for five million. Here a
record is a few concatenated bytes. Source: Kafka protocol guide, "Produce API", and the message
format of version 2. One call is one request, so that a reader sees all of it or (nearly) nothing.
"""

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Self

import crc32c

_PRODUCE, _VERSION = 0, 3
_HEAD = struct.Struct(">hiqqqhii")  # attributes … records, what the checksum covers first


def _varint(value: int) -> bytes:
    """`value` zig-zag encoded, as in a record."""
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_VARINTS = [_varint(value) for value in range(65_536)]


def _size(value: int) -> bytes:
    return _VARINTS[value] if value < len(_VARINTS) else _varint(value)


def record_batch(
    values: Sequence[bytes | None], at_ms: int, keys: Sequence[bytes] | None = None
) -> bytes:
    """One batch of records, all of the same time; None is a record without a value."""
    parts = []
    for delta, value in enumerate(values):
        key = b"\x01" if keys is None else _size(len(keys[delta])) + keys[delta]
        body = b"\0\0" + _size(delta) + key + (b"\x01" if value is None else _size(len(value)))
        data = value or b""
        parts += (_size(len(body) + len(data) + 1), body, data, b"\0")
    count = len(values)
    content = _HEAD.pack(0, count - 1, at_ms, at_ms, -1, -1, -1, count) + b"".join(parts)
    start = struct.pack(">ibI", -1, 2, crc32c.crc32c(content))
    return struct.pack(">qi", 0, len(start) + len(content)) + start + content


_NOT_LEADER = 6
_ELECTED_WITHIN_S = 30.0


class BulkProducer:
    """Appends to one topic of a broker that leads all its partitions; not for several threads."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        host, _, port = bootstrap_servers.partition(",")[0].rpartition(":")
        self._link = socket.create_connection((host, int(port)), timeout=60)
        self._answers = self._link.makefile("rb")
        self._topic = topic.encode()
        self._calls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._link.close()

    def send(
        self,
        values: Mapping[int, Sequence[bytes | None]],
        keys: Mapping[int, Sequence[bytes]] | None = None,
        at_ms: int | None = None,
    ) -> dict[int, int]:
        """Append `values` by partition, at most about 1 MB each; returns each first offset.

        Args:
            values: of each record, None for one without.
            keys: as many; None leaves them all out.
            at_ms: the records' time, None for now.
        """
        now_ms = int(time.time() * 1000) if at_ms is None else at_ms
        own = keys or {}
        batches = {p: record_batch(v, now_ms, own.get(p)) for p, v in values.items() if v}
        offsets = self._sent(batches)
        ends_at = time.monotonic() + _ELECTED_WITHIN_S
        while missing := batches.keys() - offsets.keys():  # of a topic that has just been made
            if time.monotonic() > ends_at:
                raise RuntimeError(f"the broker does not lead partitions {sorted(missing)}")
            time.sleep(0.05)
            offsets |= self._sent({p: batches[p] for p in missing})
        return offsets

    def _sent(self, batches: Mapping[int, bytes]) -> dict[int, int]:
        """The first offsets of the partitions that the broker leads."""
        self._calls += 1
        head = struct.pack(">hhih", _PRODUCE, _VERSION, self._calls, -1)
        body = struct.pack(">hhii", -1, -1, 60_000, 1) + _string(self._topic)
        parts = [struct.pack(">ii", p, len(batch)) + batch for p, batch in batches.items()]
        request = head + body + struct.pack(">i", len(parts)) + b"".join(parts)
        self._link.sendall(struct.pack(">i", len(request)) + request)
        return self._first_offsets()

    def _first_offsets(self) -> dict[int, int]:
        (size,) = struct.unpack(">i", self._answers.read(4))
        answer = self._answers.read(size)
        place = 4 + 4 + 2 + len(self._topic)
        (count,) = struct.unpack_from(">i", answer, place)
        found = {}
        for number in range(count):
            partition, error, offset, _ = struct.unpack_from(
                ">ihqq", answer, place + 4 + number * 22
            )
            if error == _NOT_LEADER:
                continue
            if error:
                raise RuntimeError(f"broker answered {error} for partition {partition}")
            found[partition] = offset
        return found


def _string(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value
