"""Arrow arrays of texts as bytes with positions, and back."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from joins.kernels.compiled import compiled

_BINARY = pa.binary()
_MOST_BYTES = (1 << 31) - 1  # that an Arrow array of texts holds


def bytes_of(values: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Buffer of binary `values`, each start and the end; a NULL has no bytes."""
    _, offset_buffer, data_buffer = values.buffers()
    width = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    if offset_buffer is None or data_buffer is None or not len(values):
        return np.frombuffer(b"", np.uint8), np.zeros(len(values) + 1, np.int64)
    bounds = np.frombuffer(offset_buffer, width)[values.offset :][: len(values) + 1]
    return _read_only(np.frombuffer(data_buffer, np.uint8)), bounds.astype(np.int64)


def _read_only(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    view = data.view()
    view.flags.writeable = False
    return view


def texts_at(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    kind: pa.DataType = _BINARY,
) -> pa.Array:
    """Texts from `starts` to `ends`, NULL at a negative start; OverflowError if too large."""
    valid = starts >= 0
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(np.where(valid, ends - starts, 0), out=offsets[1:])
    if offsets[-1] > _MOST_BYTES:
        raise OverflowError(f"{offsets[-1]:,} bytes")
    out = np.empty(int(offsets[-1]), np.uint8)
    places = (np.ascontiguousarray(each) for each in (starts, ends))
    _gather(out, _read_only(data), *places)
    return text_array(out, offsets, valid, kind)


def text_array(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    valid: NDArray[np.bool_],
    kind: pa.DataType,
) -> pa.Array:
    buffers = [validity(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(valid), buffers)


def validity(valid: NDArray[np.bool_]) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


@compiled
def _gather(
    out: NDArray[np.uint8],
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    place = np.uint64(0)
    for row in range(len(starts)):
        if starts[row] >= 0:
            first, length = np.uint64(starts[row]), np.uint64(ends[row] - starts[row])
            for i in range(length):
                out[place + i] = data[first + i]
            place += length
