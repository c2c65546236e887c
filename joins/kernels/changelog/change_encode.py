"""Rows and their kinds as the values of a topic: JSON objects, Debezium's envelope, tombstones."""

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.row_kinds import DELETE, UPDATE_BEFORE, is_any
from joins.kernels.json.encode import join_text

_GOES = (UPDATE_BEFORE, DELETE)


def debezium_values(objects: pa.StringArray, kinds: pa.Array | None) -> pa.StringArray:
    """Rows, given as JSON objects, in Debezium's envelope as Flink's debezium-json writes it.

    A row that comes (`+I`, `+U`) is `c`, one that goes (`-U`, `-D`) is `d`: an update is both.
    """
    if kinds is None:
        comes = [pa.scalar('{"before":null,"after":'), objects, pa.scalar(',"op":"c"}')]
        return join_text(comes)
    goes = is_any(kinds, _GOES)
    opening = pc.if_else(goes, '{"before":', '{"before":null,"after":')
    closing = pc.if_else(goes, ',"after":null,"op":"d"}', ',"op":"c"}')
    return join_text([opening, objects, closing])


def without_gone(values: pa.Array, kinds: pa.Array | None) -> pa.Array:
    if kinds is None:
        return values
    return pc.if_else(is_any(kinds, (DELETE,)), pa.scalar(None, values.type), values)
