"""Offsets of consumer groups that have no members: committed as by `kafka-consumer-groups.sh`."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition
from kafka import errors as kafka_errors

from joins.plan.errors import SourceError

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
    "Give the table a 'properties.group.id' of its own, or stop them: members of a group commit "
    "offsets of their own, and let nobody else do so."
)


def committed_offsets(admin: KafkaAdminClient, group: str, topic: str) -> dict[int, int]:
    """Partition → the group's offset, of the partitions that it has one of.

    Raises:
        KafkaError: the cluster does not tell.
    """
    kept = _answered(lambda: admin.list_group_offsets({group: None})).get(group, {})
    offsets = {tp.partition: each.offset for tp, each in kept.items() if tp.topic == topic}
    return {partition: offset for partition, offset in offsets.items() if offset >= 0}


def commit_offsets(
    admin: KafkaAdminClient, group: str, topic: str, offsets: Mapping[int, int]
) -> None:
    """Commit the next offset of each partition.

    Raises:
        SourceError: the group has members.
        KafkaError: the cluster took not all of them.
    """
    noted = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
    try:
        _answered(lambda: _commit(admin, group, noted))
    except _OF_MEMBERS_ONLY as exc:
        raise SourceError(
            f'consumer group "{group}" has members, so that offsets of topic "{topic}" cannot be '
            "committed to it",
            hint=_OWN_GROUP,
        ) from exc


def _commit(
    admin: KafkaAdminClient, group: str, noted: Mapping[TopicPartition, OffsetAndMetadata]
) -> None:
    for tp, error in admin.alter_group_offsets(group, noted).items():
        if error is not kafka_errors.NoError:
            raise error(f'offset of partition {tp.partition} for group "{group}"')


def require_no_members(admin: KafkaAdminClient, group: str) -> None:
    """See that nobody is a member of the group, whichever protocol it has.

    Raises:
        SourceError: somebody is.
        KafkaError: the cluster does not tell.
    """
    described = _answered(lambda: _described(admin, group))
    state = str(described.get("group_state") or "")
    members = len(described.get("members") or ())
    if state in _NO_MEMBERS:
        state = _state_of_new_protocol(admin, group)
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
    """Of a group that KIP-848's protocol has made, which a classic request does not find."""
    try:
        listed = admin.list_groups(types_filter=["consumer"])
    except kafka_errors.UnsupportedVersionError:
        return ""  # a broker without that protocol
    states = (str(each.get("group_state") or "") for each in listed if each["group_id"] == group)
    return next(states, "")


def _answered(question: Callable[[], _Answer]) -> _Answer:
    """The answer of the group's coordinator, once there is one."""
    since = time.monotonic()
    while True:
        try:
            return question()
        except _COORDINATORS:
            if time.monotonic() - since > _COORDINATOR_S:
                raise
        time.sleep(_PAUSE_S)
