"""What versions that ran on Spark's streaming queries have left: their logs of offsets."""

import json
from collections.abc import Mapping
from pathlib import Path

from joins.durable.checkpoint import json_lines
from joins.durable.pins import offsets_value
from joins.plan.errors import CheckpointError


def spark_offsets(query: Path, batch: int) -> Mapping[int, int]:
    """Partition → where `batch` of a query has ended; nothing if it was no batch of Spark's.

    Args:
        query: directory of the query's checkpoint.
        batch: by Spark's count.

    Raises:
        CheckpointError: the entry is not in the form that Spark writes (version `v1`, metadata, one
            source).
    """
    path = query / "offsets" / str(batch)
    try:
        lines = list(json_lines(path.read_bytes()))
    except FileNotFoundError:
        return {}
    try:
        if lines[0] != b"v1" or len(lines) != 3:
            raise ValueError(lines[0])
        ((_, offsets),) = json.loads(lines[2]).items()
        return offsets_value(offsets)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as exc:
        raise CheckpointError(
            f'offset log entry "{path}" cannot be read: {exc!r}',
            hint="It was damaged or written by another Spark version; restore it from a backup.",
        ) from exc
