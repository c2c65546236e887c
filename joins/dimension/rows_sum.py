"""The sum of the rows that a table's copy has before a place of its source's log."""

import time

import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.kafka.cluster import KafkaCluster
from joins.dimension.changelog_scan import NO_MARK, DimensionStates
from joins.dimension.dimension import DimensionRuntime
from joins.kernels.changelog.comparison import (
    STATE_COLUMNS,
    Place,
    RecordDigests,
    RowDigests,
    RowsSum,
    states_between,
)
from joins.plan.errors import VerificationError
from joins.plan.plan import KafkaOptions

_POLL_S, _COMMIT_S = 0.2, 60.0


def sum_at(
    runtime: DimensionRuntime, kafka: KafkaOptions, place: Place, generation: int
) -> RowsSum:
    """The sum before `place`, behind which the changelog topic has no record yet.

    VerificationError if this copy is not complete, or its records are not committed in time.
    """
    dimension, partitions = runtime.dimension, runtime.places.partitions
    _wait_for_all(runtime, kafka)
    states = DimensionStates(runtime.changelog, dimension, partitions)
    state = states.at()
    if not state.complete or state.generation != generation:
        raise VerificationError(
            f'copy {generation} of table "{dimension.name}" is not complete',
            hint="No action is needed: the table is copied again by itself.",
        )
    key, columns = list(dimension.primary_key), [item.name for item in dimension.fields]
    names = list(dict.fromkeys([*columns, *STATE_COLUMNS]))
    total = RowsSum()
    for partition in range(partitions):  # one after the other: their records are in memory
        counted = NO_MARK & (pc.field("_partition") == partition)
        parts = [
            RecordDigests.of(pa.Table.from_batches([batch]), key, columns, state.progress)
            for batch in states.scan.rows(state.files, names, counted)
        ]
        records = RecordDigests.concatenated(parts)
        there = states_between(records, place, place, generation=generation)
        total += RowsSum.of(RowDigests(there.lasting_keys, there.present))
    return total


def _wait_for_all(runtime: DimensionRuntime, kafka: KafkaOptions) -> None:
    """Until everything that the changelog topic has is committed."""
    deadline = time.monotonic() + _COMMIT_S
    cluster = KafkaCluster(kafka, keep_open=True)
    try:
        runtime.look_at_topic(cluster)
        while runtime.lag_records() != 0:
            if time.monotonic() > deadline:
                raise VerificationError(
                    f'table "{runtime.dimension.name}" has records in its changelog topic that '
                    f"were not committed within {_COMMIT_S:g} s",
                    hint="See with sluice jobs get why the job does not read them.",
                )
            time.sleep(_POLL_S)
            runtime.look_at_topic(cluster)
    finally:
        cluster.close()
