"""One INSERT among the others of its job: which records it counts, and which letters it tells."""

import re
from dataclasses import dataclass

from joins.plan.plan import JoinPlan

_OF_INSERT = re.compile(r'INSERT (\d+) INTO "')


@dataclass(frozen=True, slots=True)
class SetMember:
    """An INSERT of a statement set of several.

    Attributes:
        number: from 1, in the order of the script.
        tells_unparsed: a record that cannot be parsed is a dead letter here, too; of a batch only
            the first INSERT of a table tells them.
        is_alone: another table of the job has one of its topics, too: what cannot be parsed here
            may have rows there, so each INSERT tells its own.
        counts: the indexes of the topics whose records count here, for those of the others count in
            an INSERT before; None for all that it reads.
    """

    number: int
    sink_table: str
    tells_unparsed: bool
    is_alone: bool = False
    counts: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        return f'INSERT {self.number} INTO "{self.sink_table}"'

    def reason(self, text: str) -> str:
        return f"{self.name}: {text}"

    def reason_unparsed(self, text: str) -> str | None:
        if self.is_alone:
            return self.reason(text)
        return text if self.tells_unparsed else None

    def is_told(self, reason: str) -> bool:
        return insert_told(reason) in (None, self.number)


def insert_told(reason: str) -> int | None:
    match = _OF_INSERT.match(reason)
    return None if match is None else int(match[1])


def member_of(plan: JoinPlan, insert: int) -> SetMember | None:
    """Which INSERT of `plan` the one at `insert`, from 0, is; None if it is the only one."""
    if not plan.more_inserts:
        return None
    own, *others = plan.inserts[insert], *plan.inserts[:insert], *plan.inserts[insert + 1 :]
    before, reads = others[:insert], set(own.probe.reads)
    return SetMember(
        number=insert + 1,
        sink_table=own.sink_table,
        tells_unparsed=all(each.probe.unnamed != own.probe.unnamed for each in before),
        is_alone=any(
            each.probe.unnamed != own.probe.unnamed and reads & set(each.probe.reads)
            for each in others
        ),
        counts=_counted(own, before),
    )


def _counted(own: JoinPlan, before: list[JoinPlan]) -> tuple[int, ...] | None:
    if not own.probe.reads:  # as all INSERTs, of all topics
        return () if before else None
    known = {index for each in before for index in each.probe.reads}
    return tuple(index for index in own.probe.reads if index not in known)
