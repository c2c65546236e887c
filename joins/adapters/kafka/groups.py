"""Offsets of consumer groups without members, and open transactions."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition
from kafka import errors as kafka_errors

from joins.adapters.kafka.client import KafkaConnection
from joins.adapters.kafka.options import error_about
from joins.plan.errors import SourceError


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The transaction at a partition's last stable offset."""

    partition: int
    offset: int  # of its first record in the partition
    producer_id: int | None = None  # None if unknown
    # None if unknown, or if no coordinator has the transaction any more; then only an operator can
    # end it
    transactional_id: str | None = None
    # start by the coordinator's clock, else the time of the producer's newest record in the
    # partition; None if both are unknown
    since_ms: int | None = None

    def text(self, topic: str) -> str:
        """The partition and its producer, as a fragment of a sentence."""
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


def open_transactions(
    connection: KafkaConnection, topic: str, ends: Mapping[int, int]
) -> list[OpenTransaction]:
    """The transactions that begin at `ends` (partition → last stable offset).

    Names and times are missing where this user may not see them or the brokers are too old.
    SourceError if the brokers do not describe producers.
    """
    return connection.answer(lambda admin: _described_open(admin, topic, ends))


def _described_open(
    admin: KafkaAdminClient, topic: str, ends: Mapping[int, int]
) -> list[OpenTransaction]:
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


_NO_MEMBERS = ("Empty", "Dead", "")
_OF_MEMBERS_ONLY = (
    kafka_errors.UnknownMemberIdError,
    kafka_errors.IllegalGenerationError,
    kafka_errors.RebalanceInProgressError,
    kafka_errors.FencedMemberEpochError,
    kafka_errors.StaleMemberEpochError,
)
_COORDINATORS = (
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.CoordinatorLoadInProgressError,
    kafka_errors.NotCoordinatorError,
)
_COORDINATOR_S = 5.0  # the first group of a cluster waits for the topic of all offsets
_PAUSE_S = 0.1
_Answer = TypeVar("_Answer")
_OWN_GROUP = (
    "Give the table a separate 'properties.group.id', or stop them: members of a group commit "
    "their own offsets, and so may no other program."
)


def committed_offsets(connection: KafkaConnection, group: str, topic: str) -> dict[int, int]:
    kept = connection.answer(
        lambda admin: _answered(lambda: admin.list_group_offsets({group: None}))
    ).get(group, {})
    offsets = {tp.partition: each.offset for tp, each in kept.items() if tp.topic == topic}
    return {partition: offset for partition, offset in offsets.items() if offset >= 0}


def commit_offsets(
    connection: KafkaConnection, group: str, topic: str, offsets: Mapping[int, int]
) -> None:
    """Commit the next offset of each partition; SourceError if the group has members."""
    noted = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
    with connection.admin() as admin:
        try:
            _answered(lambda: _commit(admin, group, noted))
        except _OF_MEMBERS_ONLY as exc:
            raise SourceError(
                f'consumer group "{group}" has members, so that offsets of topic "{topic}" cannot '
                "be committed to it",
                hint=_OWN_GROUP,
            ) from exc


def _commit(
    admin: KafkaAdminClient, group: str, noted: Mapping[TopicPartition, OffsetAndMetadata]
) -> None:
    for tp, error in admin.alter_group_offsets(group, noted).items():
        if error is not kafka_errors.NoError:
            raise error_about(error, f'offset of partition {tp.partition} for group "{group}"')


def require_no_members(connection: KafkaConnection, group: str) -> None:
    """Raise SourceError if the group, of either protocol, has members."""
    described = connection.answer(lambda admin: _answered(lambda: _described(admin, group)))
    state = str(described.get("group_state") or "")
    members = len(described.get("members") or ())
    if state in _NO_MEMBERS:
        state = connection.answer(lambda admin: _state_of_new_protocol(admin, group))
    if state not in _NO_MEMBERS:
        several = f"{members} members" if members > 1 else "members"
        raise SourceError(
            f'consumer group "{group}" is in use: it has {several} (state {state})',
            hint=_OWN_GROUP,
        )


def _described(admin: KafkaAdminClient, group: str) -> Mapping[str, Any]:
    described: Mapping[str, Any] = admin.describe_groups([group])[group]
    error = str(described.get("error") or "")
    if "GroupAuthorizationFailed" in error:
        raise kafka_errors.GroupAuthorizationFailedError(group)
    if error and "GroupIdNotFound" not in error:
        raise kafka_errors.CoordinatorNotAvailableError(error)
    return described


def _state_of_new_protocol(admin: KafkaAdminClient, group: str) -> str:
    """State of a group of KIP-848's protocol, which a classic request does not find."""
    try:
        listed = admin.list_groups(types_filter=["consumer"])
    except kafka_errors.UnsupportedVersionError:
        return ""  # a broker without that protocol
    states = (str(each.get("group_state") or "") for each in listed if each["group_id"] == group)
    return next(states, "")


def _answered(question: Callable[[], _Answer]) -> _Answer:
    since = time.monotonic()
    while True:
        try:
            return question()
        except _COORDINATORS:
            if time.monotonic() - since > _COORDINATOR_S:
                raise
        time.sleep(_PAUSE_S)
