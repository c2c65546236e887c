"""One job under a small load in which every planted bug would show.

Each round changes every user: new names, deletions, moves to another primary key; then every user,
living, moved or gone, is clicked. So an old version of a row, a missed deletion or a missed record
is seen in the output, and each partition's changelog goes on behind the missed change.
"""

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.reliability.experiment import Lab
from tests.reliability.oracle import AuditInputs
from tests.reliability.oracle_log import TableLog
from tests.reliability.oracle_shop import shop_inputs
from tests.reliability.subject import BAD, Subject, running_subject
from tests.support.rig import running_rig
from tests.support.wait import wait_until

USERS = 90
PARTITIONS = 3
_MOVED = 1_000_000
_STILL_S = 0.7


@dataclass(frozen=True)
class Load:
    """How one job is run.

    Attributes:
        settings: of the control plane, such as failpoints.
        chunk_rows: rows a chunk of the snapshot.
    """

    rounds: int = 3
    users: int = USERS
    chunk_rows: int = 50_000
    runner_command: tuple[str, ...] | None = None
    settings: Mapping[str, Any] | None = None


@contextmanager
def loaded_job(lab: Lab, name: str, load: Load) -> Iterator[Subject]:
    """A job at rest behind its load; it runs until the block ends."""
    settings = load.settings or {}
    directory = lab.place(name)
    with (
        running_rig(
            directory, lab.kafka, lab.mariadb, runner_command=load.runner_command, **settings
        ) as rig,
        running_subject(
            lab, rig, users=load.users, partitions=PARTITIONS, chunk_rows=load.chunk_rows
        ) as subject,
    ):
        _click_everybody(subject, load.users)
        subject.job.wait_joining()
        subject.wait_drained()
        for number in range(load.rounds):
            change_everybody(subject, number)
            _click_everybody(subject, load.users)
            subject.wait_drained()
        yield subject


def inputs_of(subject: Subject, **given: Any) -> AuditInputs:
    return shop_inputs(
        subject.rig, subject.job, subject.schema, subject.topic, subject.path, **given
    )


def change_everybody(subject: Subject, number: int) -> None:
    """New names for all, except five who go and five who move; returns when it is in the table."""
    gone, moved = 1 + 10 * number, 6 + 10 * number
    before = _version(subject)
    statements = (
        f"DELETE FROM user_info WHERE user_id BETWEEN {gone} AND {gone + 4}",
        f"UPDATE user_info SET user_id = user_id + {_MOVED} "
        f"WHERE user_id BETWEEN {moved} AND {moved + 4}",
        f"UPDATE user_info SET name = CONCAT('round {number} of ', user_id), gender = 'X'",
    )
    with subject.changes.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    wait_until(lambda: _version(subject) > before, what="the changes arrive")
    _wait_still(subject)


def _version(subject: Subject) -> int:
    return TableLog(subject.directory / "tables" / "user_info" / "changelog").newest


def _wait_still(subject: Subject) -> None:
    """The changelog has had no new version for a while."""
    seen, since = -1, time.monotonic()

    def still() -> bool:
        nonlocal seen, since
        version = _version(subject)
        if version != seen:
            seen, since = version, time.monotonic()
        return time.monotonic() - since > _STILL_S

    wait_until(still, what="the changes have arrived")


def _click_everybody(subject: Subject, users: int) -> None:
    """A click of each user, of those who moved, of a stranger, and some that are no clicks."""
    moved = (_MOVED + user for user in range(1, users // 2))
    known = itertools.chain(range(1, users + 1), moved, (users + 7,))
    clicks = subject.clicks
    values: dict[int, list[bytes]] = {p: [] for p in range(PARTITIONS)}
    for number, user in enumerate(known, clicks.produced):
        values[number % PARTITIONS].append(b'{"user_id":%d,"item_id":%d}' % (user, number))
    values[0] += BAD[:2]
    values[1] += BAD[2:]
    clicks.producer.send(values)
    clicks.produced += sum(map(len, values.values()))
