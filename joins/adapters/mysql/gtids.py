"""GTIDs, and whether a table can be followed on another server of the same replication.

MySQL numbers the transactions of each server, so its GTIDs are a set with holes. MariaDB numbers
those of each domain in one order, so its GTIDs are the last transaction of each domain.

Of a copy: the transactions `applied` are wholly in the changelog; `sent` has those, and any of
which a part may be there. Of a server: it has `executed` all its transactions; those `purged` are
in none of its binlog files any more; those `before` a file were executed before it. `decide` needs
all of `sent` within `executed`, and `purged` within `applied`.
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
    """Any number of transactions; `gtids_of` reads their text."""

    def __contains__(self, gtid: Gtid) -> bool: ...

    def plus(self, gtid: Gtid) -> Self:
        """ValueError if the transaction cannot follow these."""

    def lacks(self, other: Self) -> str:
        """A transaction of `other` that is not among these; empty if there is none."""


def followed_by(gtids: Gtids | None, gtid: Gtid | None) -> Gtids | None:
    """`gtids` with `gtid`, None if unknown: then the table can be followed on this server only."""
    if gtids is None or gtid is None:
        return None
    try:
        return gtids.plus(gtid)
    except ValueError:
        return None


Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GtidSet:
    """MySQL's: inclusive intervals by UUID, or UUID and tag, in order and not adjacent."""

    intervals: Mapping[str, tuple[Interval, ...]] = field(default_factory=dict)

    def __contains__(self, gtid: Gtid) -> bool:
        mine = self.intervals.get(gtid.source, ())
        return any(first <= gtid.number <= last for first, last in reversed(mine))

    def plus(self, gtid: Gtid) -> "GtidSet":
        mine = self.intervals.get(gtid.source, ())
        if mine and mine[-1][1] + 1 == gtid.number:  # without a sort
            mine = (*mine[:-1], (mine[-1][0], gtid.number))
        else:
            mine = tuple(merged_intervals([*mine, (gtid.number, gtid.number)]))
        return GtidSet({**self.intervals, gtid.source: mine})

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
    """Reads MySQL's text, such as `uuid:1-5:7,uuid:tag:3`; ValueError if it is invalid."""
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
    """The last of each domain in MariaDB's texts, such as `0-1-100,5-2-7`; raises ValueError."""
    last: dict[str, Last] = {}
    for domain, server, number in _listed(texts):
        if number >= last.get(domain, (0, 0))[1]:
            last[domain] = (server, number)
    return GtidPosition(last)


def _listed(texts: Sequence[str]) -> Iterable[tuple[str, int, int]]:
    for part in filter(None, re.sub(r"[\s\[\]]", "", ",".join(texts)).split(",")):
        domain, server, number = part.split("-")
        yield domain, int(server), int(number)


def gtids_of(text: str, *, is_mariadb: bool) -> Gtids:
    return gtid_position(text) if is_mariadb else gtid_set(text)


# Another server
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """A binlog file and what was executed on its server before it."""

    name: str
    before: Gtids


@dataclass(frozen=True, slots=True)
class ServerHistory:
    """What a server has executed and purged, and its binlog files, oldest first.

    `numbers` are the highest of MariaDB by domain and server, as in `gtid_binlog_state`.
    """

    executed: Gtids
    purged: Gtids
    files: tuple[BinlogFile, ...]
    numbers: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def lacks(self, sent: Gtids) -> str:
        if isinstance(sent, GtidPosition):
            for domain, (server, number) in sent.last.items():
                if self.numbers.get((domain, server), 0) < number:
                    return f"{domain}-{server}-{number}"
        return self.executed.lacks(sent)


def mariadb_numbers(*texts: str) -> Mapping[tuple[str, int], int]:
    highest: dict[tuple[str, int], int] = {}
    for domain, server, number in _listed(texts):
        highest[domain, server] = max(number, highest.get((domain, server), 0))
    return highest


def decide(applied: Gtids, sent: Gtids, theirs: ServerHistory) -> BinlogFile:
    """The file from which on a table is followed on another server.

    Its transactions that are `applied` must be skipped by a `NewTransactions`. ValueError says why
    the table must be copied again.
    """
    if missing := theirs.lacks(sent):
        raise ValueError(f"it has not transaction {missing}, which was applied")
    if purged := applied.lacks(theirs.purged):
        raise ValueError(f"it has purged transaction {purged}, which was not applied")
    for file in reversed(theirs.files):
        if not applied.lacks(file.before):
            return file
    raise ValueError("none of its binlog files begins at what was applied")


@dataclass(frozen=True, slots=True)
class Takeover:
    """What the CDC process needs to follow a table on another server, as texts of GTIDs.

    `applied` are those of the copy then, `before` those of the file that `decide` chose, and
    `executed` those of the server then.
    """

    applied: str
    before: str
    executed: str


class NewTransactions:
    """Which transactions of a server, from the chosen file on, were not applied before.

    `is_catching_up` until everything is read that the server had executed when it was taken over.
    Until then each domain of MariaDB must prove its history: the last transaction that was applied
    comes before any that is new.
    """

    def __init__(self, takeover: Takeover, *, is_mariadb: bool, is_catching_up: bool) -> None:
        self.applied = gtids_of(takeover.applied, is_mariadb=is_mariadb)
        self.executed = gtids_of(takeover.executed, is_mariadb=is_mariadb)
        self.is_catching_up = is_catching_up
        self._is_mariadb = is_mariadb
        before = gtids_of(takeover.before, is_mariadb=is_mariadb)
        self._applied, self._before = _last_of(self.applied), _last_of(before)
        executed = _last_of(self.executed)
        self._proved = {  # domains
            domain
            for domain, last in self._applied.items()
            if last in (self._before.get(domain), executed.get(domain))
        }

    def is_new(self, gtid: Gtid | None) -> bool:
        """ValueError if the server's history is not the one that was applied."""
        if gtid is None:
            if self.is_catching_up:
                raise ValueError("it has a transaction without a GTID that can be read")
            return True
        if self.is_catching_up and self._is_mariadb and gtid.source not in self._proved:
            self._prove(gtid)
        return gtid not in self.applied

    def _prove(self, gtid: Gtid) -> None:
        domain = gtid.source
        server, number = self._applied.get(domain, (0, 0))
        if gtid.number < number:
            return
        is_last = (gtid.server, gtid.number) == (server, number)
        is_next = gtid.number == number + 1 and domain not in self._before
        if not (is_last or is_next):
            raise ValueError(
                f"transaction {domain}-{gtid.server}-{gtid.number} is there, and the applied "
                f"{domain}-{server}-{number} is not before it"
            )
        self._proved.add(domain)


def _last_of(gtids: Gtids) -> Mapping[str, Last]:
    return gtids.last if isinstance(gtids, GtidPosition) else {}
