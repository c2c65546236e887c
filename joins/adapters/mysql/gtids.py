"""GTIDs: which transactions were applied, which a server has, and whether it can be gone on there.

MySQL numbers the transactions of each server: what was applied is a set, with holes. MariaDB
numbers those of each domain in one order: what was applied is the last transaction of each domain.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from joins.plan.positions import merged_intervals

_TAG = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Gtid:
    """A transaction: `source` is MySQL's UUID or MariaDB's domain, `server` MariaDB's server id."""

    source: str
    number: int
    server: int = 0


class Gtids(Protocol):
    """Transactions that were applied, in a form that is read again by `gtids_of`."""

    def __contains__(self, gtid: Gtid) -> bool: ...

    def plus(self, gtid: Gtid) -> Self:
        """ValueError if the transaction cannot follow these."""

    def lacks(self, other: Self) -> str:
        """A transaction of `other` that is not among these; empty if there is none."""


def followed_by(gtids: Gtids | None, gtid: Gtid | None) -> Gtids | None:
    """`gtids` with `gtid`; None if they are not known, or no longer.

    Then no other server can be gone on with; the one that answers can.
    """
    if gtids is None or gtid is None:
        return None
    try:
        return gtids.plus(gtid)
    except ValueError:
        return None


Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GtidSet:
    """MySQL's: by UUID, or UUID and tag, inclusive intervals in order that do not touch."""

    intervals: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)

    def __contains__(self, gtid: Gtid) -> bool:
        mine = self.intervals.get(gtid.source, ())
        return any(first <= gtid.number <= last for first, last in reversed(mine))

    def plus(self, gtid: Gtid) -> "GtidSet":
        return GtidSet({**self.intervals, gtid.source: self._with(gtid)})

    def _with(self, gtid: Gtid) -> tuple[Interval, ...]:
        mine = self.intervals.get(gtid.source, ())
        if mine and mine[-1][1] + 1 == gtid.number:
            return (*mine[:-1], (mine[-1][0], gtid.number))
        return tuple(merged_intervals([*mine, (gtid.number, gtid.number)]))

    def lacks(self, other: "GtidSet") -> str:
        for source, intervals in other.intervals.items():
            mine = self.intervals.get(source, ())
            for first, last in intervals:
                reached = next((end for begin, end in mine if begin <= first <= end), first - 1)
                if reached < last:
                    return f"{source}:{reached + 1}"
        return ""

    def __str__(self) -> str:
        return ",".join(
            ":".join([source, *(f"{a}-{b}" if a != b else str(a) for a, b in intervals)])
            for source, intervals in sorted(self.intervals.items())
        )


def gtid_set(text: str) -> GtidSet:
    """Of MySQL's text, such as `uuid:1-5:7,uuid:tag:3`; ValueError if it is none."""
    intervals: dict[str, list[Interval]] = {}
    for part in filter(None, re.sub(r"\s", "", text).lower().split(",")):
        uuid, *rest = part.split(":")
        source = uuid
        for item in rest:
            if _TAG.fullmatch(item):
                source = f"{uuid}:{item}"
                continue
            first, _, last = item.partition("-")
            intervals.setdefault(source, []).append((int(first), int(last or first)))
    return GtidSet({source: tuple(merged_intervals(some)) for source, some in intervals.items()})


Last = tuple[int, int]
"""Server id and number of a transaction of MariaDB."""


@dataclass(frozen=True, slots=True)
class GtidPosition:
    """MariaDB's: the last transaction by domain; those before it in the domain are included."""

    last: Mapping[str, Last] = field(default_factory=dict)

    def __contains__(self, gtid: Gtid) -> bool:
        return gtid.source in self.last and gtid.number <= self.last[gtid.source][1]

    def plus(self, gtid: Gtid) -> "GtidPosition":
        if gtid in self:
            raise ValueError(
                f"transaction {gtid.source}-{gtid.server}-{gtid.number} of its domain follows "
                f"number {self.last[gtid.source][1]}"
            )
        return GtidPosition({**self.last, gtid.source: (gtid.server, gtid.number)})

    def lacks(self, other: "GtidPosition") -> str:
        for domain, (server, number) in other.last.items():
            mine = self.last.get(domain, (0, 0))
            if mine[1] < number or (mine[1] == number and mine[0] != server):
                return f"{domain}-{server}-{number}"
        return ""

    def __str__(self) -> str:
        items = sorted(self.last.items(), key=lambda item: int(item[0]))
        return ",".join(f"{domain}-{server}-{number}" for domain, (server, number) in items)


def gtid_position(*texts: str) -> GtidPosition:
    """The last of each domain in MariaDB's texts, such as `0-1-100,5-2-7`; ValueError."""
    last: dict[str, Last] = {}
    for domain, server, number in _listed(texts):
        if number >= last.get(domain, (0, 0))[1]:
            last[domain] = (server, number)
    return GtidPosition(last)


def _listed(texts: Sequence[str]) -> Iterable[tuple[str, int, int]]:
    for part in filter(None, re.sub(r"[\s\[\]]", "", ",".join(texts)).split(",")):
        domain, server, number = part.split("-")
        yield domain, int(server), int(number)


def gtids_of(text: str, *, is_mariadb: bool) -> GtidSet | GtidPosition:
    return gtid_position(text) if is_mariadb else gtid_set(text)


# A server to go on with
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """A binlog file and what was applied on its server before it."""

    name: str
    before: GtidSet | GtidPosition


@dataclass(frozen=True, slots=True)
class MysqlHistory:
    """What a MySQL server has executed, has purged and still has in its files, oldest first."""

    executed: GtidSet
    purged: GtidSet
    files: tuple[BinlogFile, ...]

    def missing(self, sent: GtidSet) -> str:
        return self.executed.lacks(sent)


@dataclass(frozen=True, slots=True)
class MariadbHistory:
    """What a MariaDB has: `executed` is its last transaction of each domain.

    `numbers` are the highest by domain and server, as in `gtid_binlog_state`.
    """

    executed: GtidPosition
    purged: GtidPosition
    files: tuple[BinlogFile, ...]
    numbers: Mapping[tuple[str, int], int]

    def missing(self, sent: GtidPosition) -> str:
        for domain, (server, number) in sent.last.items():
            if self.numbers.get((domain, server), 0) < number:
                return f"{domain}-{server}-{number}"
        return self.executed.lacks(sent)


def mariadb_numbers(*texts: str) -> Mapping[tuple[str, int], int]:
    highest: dict[tuple[str, int], int] = {}
    for domain, server, number in _listed(texts):
        highest[domain, server] = max(number, highest.get((domain, server), 0))
    return highest


@dataclass(frozen=True, slots=True)
class Failover:
    """The first file to read on a server, or why the table must be copied again."""

    file: BinlogFile | None
    reason: str = ""


def decide(
    applied: GtidSet | GtidPosition,
    sent: GtidSet | GtidPosition,
    theirs: MysqlHistory | MariadbHistory,
) -> Failover:
    """Whether a table is followed on another server without a copy.

    `applied` was wholly sent to the changelog; of what `sent` has beyond it a part may be there.
    Transactions of the files that `applied` has must be skipped by a `NewTransactions`.
    """
    if missing := theirs.missing(sent):  # type: ignore[arg-type] # both are of one kind
        return Failover(None, f"it has not transaction {missing}, which was applied")
    if purged := applied.lacks(theirs.purged):  # type: ignore[arg-type]
        return Failover(None, f"it has purged transaction {purged}, which was not applied")
    for file in reversed(theirs.files):
        if not applied.lacks(file.before):  # type: ignore[arg-type]
            return Failover(file)
    return Failover(None, "none of its binlog files begins at what was applied")


@dataclass(frozen=True, slots=True)
class Takeover:
    """How a table is followed on another server: `decide` chose the file that begins at `before`.

    Texts are GTIDs. `applied` is skipped on the server; when everything that it had executed then
    is read, `executed` must have been applied.
    """

    applied: str
    before: str
    executed: str


class NewTransactions:
    """Which transactions of a server, from the chosen file on, are new.

    `checked` until everything is read that the server had when it was chosen.
    """

    def __init__(self, takeover: Takeover, *, is_mariadb: bool, checked: bool) -> None:
        self.applied = gtids_of(takeover.applied, is_mariadb=is_mariadb)
        self.executed = gtids_of(takeover.executed, is_mariadb=is_mariadb)
        self._before = gtids_of(takeover.before, is_mariadb=is_mariadb)
        self.checked = checked
        self._met = set[str]()
        if isinstance(self.applied, GtidPosition):
            self._met = {
                domain
                for domain, last in self.applied.last.items()
                for known in (self._before, self.executed)
                if isinstance(known, GtidPosition) and known.last.get(domain) == last
            }

    def is_new(self, gtid: Gtid | None) -> bool:
        """ValueError if the server's history is not the one that was applied."""
        if gtid is None:
            if self.checked:
                raise ValueError("it has a transaction without a GTID that can be read")
            return True
        applied = gtid in self.applied
        if self.checked and isinstance(self.applied, GtidPosition):
            self._check(gtid, self.applied.last.get(gtid.source, (0, 0)))
        return not applied

    def _check(self, gtid: Gtid, last: Last) -> None:
        """Numbers grow in a domain: what was applied must be met before what is new."""
        server, number = last
        domain = gtid.source
        if domain in self._met:
            return
        follows = gtid.number == number + 1 and not self._begins_in(domain)
        if gtid.number > number and not follows:
            raise ValueError(
                f"transaction {domain}-{gtid.server}-{gtid.number} follows, and "
                f"{domain}-{server}-{number} is not before it"
            )
        if gtid.number == number and gtid.server != server:
            raise ValueError(
                f"transaction {domain}-{gtid.server}-{number} is not the applied "
                f"{domain}-{server}-{number}"
            )
        if gtid.number >= number:
            self._met.add(domain)

    def _begins_in(self, domain: str) -> bool:
        return isinstance(self._before, GtidPosition) and domain in self._before.last
