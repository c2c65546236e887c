"""Compressed events of MariaDB and compressed transactions of MySQL, as the events inside.

Sources: MariaDB's documentation of `QUERY_COMPRESSED_EVENT` and of compressed row events; MySQL's
of `Transaction_payload_event`. Memory is limited by one event, whatever a transaction has.
"""

import struct
import zlib
from collections.abc import Iterator

from joins.adapters.mysql.events.row_events import COMPRESSED_ROWS, Bytes, images_at

PAYLOAD = 40
"""A MySQL transaction in one event."""

QUERY = 165
"""A MariaDB statement."""

MOST_EVENT_BYTES = 1 << 30
"""The largest `max_allowed_packet`: no server sends a larger event uncompressed."""

HEADER_BYTES = 19
_TYPE_AT, _EVENT_BYTES_AT = 4, 9  # in a header
_ORDINARY_QUERY = 2
_SCHEMA_LENGTH_AT, _STATUS_LENGTH_AT = 8, 11
_IS_COMPRESSED, _LENGTH_BITS, _ALGORITHM_BITS = 0x80, 0x07, 0x78
_MOST_LENGTH_BYTES = 4
_ZSTD, _NONE = 0, 255
_END, _SIZE, _ALGORITHM, _UNCOMPRESSED_SIZE = range(4)


def statement_event(header: bytes, body: bytes, header_bytes: int) -> bytes:
    """The ordinary event of a compressed statement, with its header; arguments as `rows_body`."""
    at = _text_at(body, header_bytes)
    plain = body[:at] + _inflated(body[at:])
    size = struct.pack("<I", HEADER_BYTES + len(plain))
    return header[:4] + bytes([_ORDINARY_QUERY]) + header[5:9] + size + header[13:] + plain


def rows_body(event_type: int, body: bytes, header_bytes: int) -> tuple[int, bytes]:
    """Type and body of the ordinary event of a compressed row event.

    `body` follows the event's common header, without checksum; `header_bytes` is the size of the
    event's fixed part. ValueError for invalid bytes or another algorithm.
    """
    ordinary = COMPRESSED_ROWS[event_type]
    at = images_at(ordinary, body, header_bytes)
    return ordinary, body[:at] + _inflated(body[at:])


def _text_at(body: bytes, header_bytes: int) -> int:
    fixed = Bytes(body[:header_bytes])
    fixed.take(_SCHEMA_LENGTH_AT)
    schema_bytes = fixed.number(1)
    fixed.take(_STATUS_LENGTH_AT - fixed.at)
    return header_bytes + fixed.number(2) + schema_bytes + 1


def _inflated(packed: bytes) -> bytes:
    data = Bytes(packed)
    first = data.number(1)
    length_bytes = first & _LENGTH_BITS
    if not first & _IS_COMPRESSED or not 1 <= length_bytes <= _MOST_LENGTH_BYTES:
        raise ValueError(f"a compressed event begins with 0x{first:02X}")
    if first & _ALGORITHM_BITS:
        raise ValueError(f"an event is compressed by algorithm {(first & _ALGORITHM_BITS) >> 4}")
    size = _limited(int.from_bytes(data.take(length_bytes), "big"))
    inflate = zlib.decompressobj()
    try:
        plain = inflate.decompress(data.rest(), size + 1)
    except zlib.error as exc:
        raise ValueError(f"an event cannot be uncompressed: {exc}") from exc
    if len(plain) != size or not inflate.eof:
        raise ValueError(f"a compressed event has not the {size} bytes that it declares")
    return plain


def type_of(event: bytes) -> int:
    return event[_TYPE_AT]


def payload_events(body: bytes) -> Iterator[bytes]:
    """The events of a compressed transaction, each with its header and without checksum.

    ValueError for invalid bytes or another algorithm, maybe after some events.
    """
    algorithm, size, payload = _payload(body)
    if algorithm == _NONE:
        parts = _Uncompressed(iter([payload]))
    elif algorithm == _ZSTD:
        parts = _Uncompressed(_zstd_parts(payload))
    else:
        raise ValueError(f"a transaction is compressed by algorithm {algorithm}")
    while not parts.have_ended:
        header = parts.take(HEADER_BYTES)
        (event_bytes,) = struct.unpack_from("<I", header, _EVENT_BYTES_AT)
        if event_bytes < HEADER_BYTES:
            raise ValueError(f"an event in a compressed transaction has {event_bytes} bytes")
        yield header + parts.take(_limited(event_bytes) - HEADER_BYTES)
    if size is not None and parts.taken != size:
        raise ValueError(f"a transaction of {size} bytes was uncompressed to {parts.taken}")


def _payload(body: bytes) -> tuple[int, int | None, bytes]:
    """Algorithm, uncompressed size if declared, and the compressed bytes."""
    data, fields = Bytes(body), dict[int, int]()
    while (kind := data.packed()) != _END:
        if kind not in (_SIZE, _ALGORITHM, _UNCOMPRESSED_SIZE) or kind in fields:
            raise ValueError(f"a compressed transaction has field {kind}, which is not known")
        value = Bytes(data.text())
        fields[kind] = value.packed()
        if value.left:
            raise ValueError(f"field {kind} of a compressed transaction is too long")
    if _SIZE not in fields or fields[_SIZE] != data.left:
        raise ValueError(
            f"a compressed transaction declares {fields.get(_SIZE, 'no')} bytes, and has "
            f"{data.left}"
        )
    return fields.get(_ALGORITHM, _NONE), fields.get(_UNCOMPRESSED_SIZE), data.rest()


_PART_BYTES = 1 << 20


def _zstd_parts(payload: bytes) -> Iterator[bytes]:
    import pyarrow as pa  # few servers compress

    try:
        with pa.CompressedInputStream(pa.BufferReader(payload), "zstd") as stream:
            while part := stream.read(_PART_BYTES):
                yield part
    except OSError as exc:  # also of Arrow; nothing is read from a file or a socket here
        raise ValueError(f"a transaction cannot be uncompressed: {exc}") from exc


class _Uncompressed:
    """Bytes that come in parts; `taken` of them were read."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._ahead = bytearray()
        self.taken = 0

    @property
    def have_ended(self) -> bool:
        return not self._has(1)

    def take(self, count: int) -> bytes:
        if not self._has(count):
            raise ValueError("a compressed transaction ends within an event")
        some = bytes(self._ahead[:count])
        del self._ahead[:count]
        self.taken += count
        return some

    def _has(self, count: int) -> bool:
        while len(self._ahead) < count:
            part = next(self._parts, b"")
            if not part:
                return False
            self._ahead += part
        return True


def _limited(size: int) -> int:
    if size > MOST_EVENT_BYTES:
        raise ValueError(
            f"an uncompressed event has {size} bytes, more than the {MOST_EVENT_BYTES} of the "
            "largest packet"
        )
    return size
