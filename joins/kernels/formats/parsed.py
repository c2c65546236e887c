"""What a decoder makes of the keys, or of the values, of records."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class BadRow:
    """A value that gave no row.

    Attributes:
        row: its position in the input.
        reason: what is wrong with it, naming the field where that is known.
    """

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The good rows in input order, and the bad ones; what is in neither is passed over on purpose.

    Attributes:
        batch: the good rows, with exactly the schema asked for.
        row_index: the position of each good row in the input.
        bad: in input order.
    """

    batch: pa.RecordBatch
    row_index: pa.Int64Array
    bad: tuple[BadRow, ...]
