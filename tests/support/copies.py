"""What a changelog topic says a table is, by a fold of its own: plain dictionaries, no product."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Copy:
    """The rows that a topic tells.

    Attributes:
        generation: the newest that every partition has completed, 0 for none.
        rows: by key, as JSON tells them; those that `generation` makes visible.
    """

    generation: int
    rows: dict[tuple[Any, ...], dict[str, Any]]


def copy_of(records: Iterable[Any], partitions: int) -> Copy:
    """Fold the Kafka records of a whole topic.

    The newest record of a key counts. A row that was read behind its partition's watermark record
    does not, nor does a key whose newest record is of a generation before the complete one.
    """
    marks = dict.fromkeys(range(partitions), (0, -1))
    newest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        value = json.loads(record.value)
        source, op = value["source"], value["op"]
        generation = source["gen"]
        if op == "w":
            if generation > marks[record.partition][0]:
                marks[record.partition] = (generation, record.offset)
        elif op != "r" or generation > marks[record.partition][0]:
            place = (source["epoch"], source["file"], source["pos"], source["row"], record.offset)
            key = tuple(json.loads(record.key).values())
            entry = (place, generation, None if op == "d" else value["after"])
            newest[key] = max(newest.get(key, entry), entry, key=lambda e: e[0])
    complete = min(generation for generation, _ in marks.values())
    rows = {
        key: after
        for key, (_, generation, after) in newest.items()
        if after is not None and generation >= complete
    }
    return Copy(complete, rows)
