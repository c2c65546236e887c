"""A producer without transactions, whose identity fences those that the job had before.

A broker keeps the greatest epoch of a producer id in each partition and refuses records of a lower
one. A client may raise the epoch itself (KIP-360). So the epoch here has the runner's epoch in it,
and the number of identities that the runner has had.
"""

from pathlib import Path

from joins.adapters.kafka.batch_producer import BatchProducer, ProducerIdentity
from joins.adapters.kafka.client import KafkaClient
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.plan.plan import KafkaOptions

_IDENTITIES = 64  # of one runner under one producer id
_MOST = 32_767  # an epoch has 16 bits


class FencingProducer(BatchProducer):
    """A producer of the runner `epoch`; the file `noted` has the job's producer id."""

    def __init__(self, kafka: KafkaOptions, noted: Path, epoch: int) -> None:
        super().__init__(kafka)
        self._noted = noted
        self._epoch = epoch
        self._identities = 0

    async def identify(self, client: KafkaClient) -> ProducerIdentity:
        """The next identity; a new producer id is durable before it is used."""
        noted, number = read_json(self._noted), self._identities
        if noted is not None and number < _IDENTITIES:
            epoch = (self._epoch - int(noted["since"])) * _IDENTITIES + number
            if 0 <= epoch <= _MOST:
                self._identities += 1
                return ProducerIdentity(int(noted["id"]), epoch)
        fresh = await super().identify(client)
        write_json_atomically(self._noted, {"id": fresh.producer_id, "since": self._epoch})
        self._identities = 1
        return fresh
