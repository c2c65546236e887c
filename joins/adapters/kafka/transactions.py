"""Open transactions of a topic: who keeps its last stable offsets from moving, and since when."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka_errors


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The transaction that a partition's last stable offset stands at.

    Attributes:
        offset: of its first record in the partition.
        producer_id: Kafka's number of the producer; None if the cluster does not tell.
        transactional_id: its name; None if the cluster does not tell, or if no coordinator knows
            the transaction any more, which then nobody but an operator ends.
        since_ms: when it began, by the coordinator's clock; where no coordinator tells, the time of
            its producer's newest record in the partition; None if there is neither.
    """

    partition: int
    offset: int
    producer_id: int | None = None
    transactional_id: str | None = None
    since_ms: int | None = None

    def text(self, topic: str) -> str:
        """What it holds, and whose it is, as a fragment."""
        number, name = self.producer_id, self.transactional_id
        producer = "an unknown producer" if number is None else f"producer {number}"
        named = "" if name is None else f' ("{name}")'
        return (
            f'topic "{topic}" partition {self.partition} is held at offset {self.offset} by a '
            f"transaction of {producer}{named}"
        )

    def hint(self, topic: str) -> str:
        return (
            "It ends when its producer commits or aborts it, or by its transaction.timeout.ms; of "
            "a producer that is gone abort it with kafka-transactions.sh --bootstrap-server … "
            f"abort --topic {topic} --partition {self.partition} --start-offset {self.offset}."
        )


def describe_open(
    admin: KafkaAdminClient, topic: str, ends: Mapping[int, int]
) -> list[OpenTransaction]:
    """The transactions that begin at `ends` (partition → last stable offset), as far as known.

    Names and times are left out where this user may not see them, or the brokers are too old.

    Raises:
        KafkaError: the brokers do not describe producers.
    """
    partitions = [TopicPartition(topic, partition) for partition in sorted(ends)]
    described = admin.describe_producers(partitions)
    producers = [
        (tp.partition, producer)
        for tp in partitions
        for producer in described[tp].active_producers
        if producer.current_transaction_start_offset == ends[tp.partition]
    ]
    try:
        named = _named(admin, {producer.producer_id for _, producer in producers})
    except kafka_errors.KafkaError:
        named = {}
    opened = []
    for partition, producer in producers:
        name, since_ms = named.get(producer.producer_id, (None, None))
        if since_ms is None and producer.last_timestamp >= 0:
            since_ms = producer.last_timestamp
        number = producer.producer_id
        opened.append(OpenTransaction(partition, ends[partition], number, name, since_ms))
    return opened


def _named(admin: KafkaAdminClient, producers: set[int]) -> dict[int, tuple[str, int | None]]:
    """Producer → its transactional id, and when its transaction began."""
    if not producers:
        return {}
    listed = admin.list_transactions(producer_id_filters=sorted(producers))
    ids = {each.transactional_id for several in listed.values() for each in several}
    if not ids:
        return {}
    return {
        each.producer_id: (
            name,
            each.transaction_start_time_ms if each.transaction_start_time_ms >= 0 else None,
        )
        for name, each in admin.describe_transactions(sorted(ids)).items()
    }
