"""How far the probe is: what its batches counted, and what waits in its topic."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joins.adapters.kafka_cluster import KafkaCluster
from joins.checkpoint import Checkpoint, JobMeta, read_json, write_json_atomically
from joins.errors import SourceError
from joins.plan import KafkaOptions
from joins.probe_side import FinishedBatch
from watermark.gate import HeldOffsets

_LOOK_EVERY_S = 1.0
_COUNTED = ("joined", "matched", "unmatched", "dead_letters")


@dataclass(slots=True)
class ProbeCounts:
    """What the probe has committed; kept in `progress.json` so that it survives restarts."""

    batch: int | None = None
    joined: int = 0
    matched: int = 0
    unmatched: int = 0
    dead_letters: int = 0
    next_offsets: dict[int, int] = field(default_factory=dict)

    def add(self, batch: FinishedBatch) -> None:
        """Count `batch`, unless it was counted before."""
        if self.batch is None or batch.pin.batch > self.batch:
            self.batch = batch.pin.batch
            for name in _COUNTED:
                setattr(self, name, getattr(self, name) + batch.counts.get(name, 0))
        self.next_offsets = dict(batch.pin.end_offsets)

    def as_json(self) -> dict[str, Any]:
        """For the progress file."""
        counted = {name: getattr(self, name) for name in _COUNTED}
        offsets = {str(partition): offset for partition, offset in self.next_offsets.items()}
        return {"batch": self.batch, **counted, "next_offsets": offsets}


class ProbeProgress:
    """Counts and offsets of one job's probe.

    `record` comes from Spark's batch thread, everything else from the main loop.
    """

    def __init__(self, checkpoint: Checkpoint, meta: JobMeta, kafka: KafkaOptions) -> None:
        self._file: Path = checkpoint.directory / "progress.json"
        self._meta = meta
        self._topic = kafka.topic
        self._cluster = KafkaCluster(kafka, keep_open=True)
        self._looked_at = 0.0
        self.counts = self._read_counts()
        self.end_offsets: dict[int, int] = {}
        self.begin_offsets: dict[int, int] = {}
        self.held_bytes: int | None = None

    def _read_counts(self) -> ProbeCounts:
        value = read_json(self._file)
        if value is None:
            return ProbeCounts(next_offsets=dict(self._meta.probe_start_offsets))
        del value["format_version"]
        offsets = {int(p): o for p, o in value.pop("next_offsets").items()}
        return ProbeCounts(**value, next_offsets=offsets)

    def record(self, batch: FinishedBatch) -> None:
        """Count a batch whose output is committed; durable when this returns."""
        self.counts.add(batch)
        write_json_atomically(self._file, self.counts.as_json())

    def start_offsets(self) -> dict[int, int]:
        """As kept at submission; a partition that was added while records are held starts at 0."""
        added = dict.fromkeys(self.end_offsets, 0)
        return {**added, **self._meta.probe_start_offsets}

    def held(self) -> HeldOffsets:
        """What waits in the topic, by the newest look."""
        start = dict(self.counts.next_offsets)
        for partition in self.end_offsets:
            start.setdefault(partition, 0)
        return HeldOffsets.of(start=start, end=self.end_offsets, retention_begin=self.begin_offsets)

    def is_due(self) -> bool:
        """Whether the last look is a second old."""
        return time.monotonic() - self._looked_at >= _LOOK_EVERY_S

    def look(self, *, holding: bool) -> None:
        """Look at the topic's offsets.

        Args:
            holding: records wait for the gate; in JOIN Spark sees a loss by itself, exactly.

        Raises:
            SourceUnavailableError: no broker answers.
            SourceError: the topic is gone, or another one of its name is there.
            LostRecordsError: retention has removed a held record.
        """
        self._looked_at = time.monotonic()
        found = self._cluster.require(self._topic)
        if found.topic_id != self._meta.probe_topic_id:
            raise SourceError(
                f'topic "{self._topic}" has id {found.topic_id}, '
                f"expected {self._meta.probe_topic_id}",
                hint="The topic was deleted and created again; submit the job anew.",
            )
        self.end_offsets = self._cluster.end_offsets(self._topic)
        self.begin_offsets = self._cluster.beginning_offsets(self._topic)
        if holding:
            self.held_bytes = self._cluster.size_bytes(self._topic)
            self.held().check(self._topic)

    def close(self) -> None:
        """Close the connection to the cluster."""
        self._cluster.close()
