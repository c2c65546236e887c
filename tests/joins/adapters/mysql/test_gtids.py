"""GTIDs: a table is followed on another server exactly if nothing is lost or in doubt there."""

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from joins.adapters.mysql.gtids import (
    BinlogFile,
    Gtid,
    GtidPosition,
    GtidSet,
    NewTransactions,
    ServerHistory,
    Takeover,
    decide,
    gtid_position,
    gtid_set,
    mariadb_numbers,
)
from tests.support.laws import examples

# Sets and positions
# ---------------------------------------------------------------------------------------------

A, B = "a" * 8, "b" * 8
NUMBERS = st.sets(st.integers(1, 12), max_size=8)
SETS = st.dictionaries(st.sampled_from([A, B, f"{A}:tag"]), NUMBERS, max_size=3)


def set_of(numbers):
    made = GtidSet()
    for source, members in numbers.items():
        for number in members:
            made = made.plus(Gtid(source, number))
    return made


@given(SETS, SETS)
def test_a_set_is_its_text_and_knows_what_it_lacks(ones, others):
    one, other = set_of(ones), set_of(others)
    assert gtid_set(str(one)) == one
    missing = {(s, n) for s in others for n in others[s] if n not in ones.get(s, ())}
    lacking = one.lacks(other)
    assert bool(lacking) == bool(missing)
    if missing:
        source, _, number = lacking.rpartition(":")
        assert (source, int(number)) in missing
    assert all((Gtid(s, n) in one) == (n in ones[s]) for s in ones for n in range(14))


TEXTS = {
    "nothing": ("", ""),
    "lines": (f"{A}:1-3,\n{B}:5", f"{A}:1-3,{B}:5"),
    "touching": (f"{A}:1-3:4:6-7", f"{A}:1-4:6-7"),
    "tags": (f"{A}:1-3:tag:1-2:5:x_1:9", f"{A}:1-3,{A}:tag:1-2:5,{A}:x_1:9"),
    "upper_case": (f"{A.upper()}:1", f"{A}:1"),
}


@pytest.mark.parametrize(("text", "shown"), TEXTS.values(), ids=TEXTS)
def test_a_set_of_mysql_is_read(text, shown):
    assert str(gtid_set(text)) == shown


def test_a_position_of_mariadb_is_read():
    assert str(gtid_position("5-2-7,0-1-100")) == "0-1-100,5-2-7"
    assert str(gtid_position("[0-1-99,\n0-2-150]", "0-3-4")) == "0-2-150"
    assert gtid_position("") == GtidPosition()


@pytest.mark.parametrize("text", ["0-1", "x", "0-1-100-2"])
def test_what_is_no_position_is_an_error(text):
    with pytest.raises(ValueError, match=r"."):
        gtid_position(text)


def test_a_number_that_does_not_grow_cannot_follow():
    with pytest.raises(ValueError, match="0-2-100 of its domain follows number 100"):
        gtid_position("0-1-100").plus(Gtid("0", 100, 2))


# Histories: a model of servers that replicate, are purged, restored and fail over
# ---------------------------------------------------------------------------------------------


@dataclass
class Server:
    """Transactions in the order of its binlog; those of `base` came by a backup."""

    id: int
    base: list[Gtid] = field(default_factory=list)
    files: list[list[Gtid]] = field(default_factory=lambda: [[]])
    purged: int = 0  # of its files
    stopped: set[str] = field(default_factory=set)  # domains in which it cannot replicate

    @property
    def log(self):
        return [gtid for file in self.files for gtid in file]

    @property
    def history(self):
        return self.base + self.log

    @property
    def unreadable(self):
        return self.base + [gtid for file in self.files[: self.purged] for gtid in file]

    def readable_from(self, name):
        return [gtid for file in self.files[int(name) :] for gtid in file]

    def last(self, source):
        return max((gtid.number for gtid in self.history if gtid.source == source), default=0)


class World:
    """Servers of one kind; each step is drawn by hypothesis."""

    def __init__(self, *, is_mariadb):
        self.is_mariadb = is_mariadb
        self.servers = [Server(1), Server(2), Server(3)]
        self.primary = self.servers[0]

    def step(self, kind, one, other):
        server = self.servers[one % len(self.servers)]
        steps = {
            "write": lambda: self.write(self.primary, other),
            "errant": lambda: self.write(server, other),
            "replicate": lambda: self.replicate(server, other),
            "rotate": lambda: server.files.append([]),
            "purge": lambda: self.purge(server),
            "restore": lambda: self.restore(server, self.servers[other % 3]),
            "fail_over": lambda: setattr(self, "primary", server),
        }
        steps[kind]()

    def write(self, server, other):
        source = str(other % 2) if self.is_mariadb else f"uuid{server.id}"
        server.files[-1].append(Gtid(source, server.last(source) + 1, server.id))

    def replicate(self, server, other):
        """The next transaction of a domain, or of MySQL any one that it has not."""
        if server is self.primary:
            return
        mine = set(server.history)
        readable = [g for file in self.primary.files[self.primary.purged :] for g in file]
        missing = [gtid for gtid in readable if gtid not in mine]
        if self.is_mariadb:
            missing = self.in_order(server, missing)
        if missing:
            server.files[-1].append(missing[other % len(missing)])

    def in_order(self, server, missing):
        """The next of each domain in which both have one history up to it."""
        found = {}
        for gtid in missing:
            found.setdefault(gtid.source, gtid)
        ours, theirs = server.history, self.primary.history
        return [
            gtid
            for gtid in found.values()
            if [g for g in ours if g.source == gtid.source]
            == [g for g in theirs if g.source == gtid.source][: gtid.number - 1]
        ]

    def purge(self, server):
        server.purged = min(server.purged + 1, len(server.files) - 1)

    def restore(self, server, origin):
        """Without its own files, from a backup of another one."""
        if server not in (self.primary, origin):
            server.base, server.files, server.purged = origin.history, [[]], 0


STEPS = (
    *("write",) * 8,
    *("replicate",) * 16,
    *("rotate", "rotate", "purge", "errant", "restore", "fail_over"),
)


def set_of_all(gtids):
    made = GtidSet()
    for gtid in gtids:
        made = made.plus(Gtid(gtid.source, gtid.number))
    return made


def position_of(gtids):
    return gtid_position(",".join(f"{g.source}-{g.server}-{g.number}" for g in gtids))


def as_told(world, server):
    """What the server tells by its variables and the heads of its files."""
    of = position_of if world.is_mariadb else set_of_all
    # MariaDB's files do not tell what came by a backup, its gtid_slave_pos does
    known = [] if world.is_mariadb else server.base
    files = tuple(
        BinlogFile(str(at), of([*known, *(g for file in server.files[:at] for g in file)]))
        for at in range(server.purged, len(server.files))
    )
    executed, purged = of(server.history), of([*known, *server.unreadable[len(server.base) :]])
    if not world.is_mariadb:
        return ServerHistory(executed, purged, files)
    texts = [f"{g.source}-{g.server}-{g.number}" for g in server.log]
    numbers = mariadb_numbers(*texts, str(position_of(server.base)), str(executed))
    return ServerHistory(executed, purged, files, numbers)


def read_on(world, server, applied, file):
    """What a reader sends of the server's file and all behind it; None if it finds a fault."""
    of = position_of if world.is_mariadb else set_of_all
    takeover = Takeover(str(of(applied)), str(file.before), str(of(server.history)))
    resumed = NewTransactions(takeover, is_mariadb=world.is_mariadb, is_catching_up=True)
    now, sent = resumed.applied, []
    try:
        for gtid in server.readable_from(file.name):
            if resumed.is_new(gtid):
                now = now.plus(gtid)
                sent.append(gtid)
    except ValueError:
        return None
    return None if now.lacks(resumed.executed) else sent


@settings(max_examples=examples(1_000), deadline=None)
@given(st.booleans(), st.integers(0, 2**32))
def test_no_copy_is_made_that_is_not_needed_and_none_is_left_out(is_mariadb, seed):
    draw = Random(seed)
    world = World(is_mariadb=is_mariadb)
    for _ in range(draw.randrange(150)):
        world.step(draw.choice(STEPS), draw.randrange(6), draw.randrange(6))
    old, new = draw.choice(world.servers), draw.choice(world.servers)
    # a copy of the old server, at a position of its binlog, was followed up to a later position
    end = len(old.log) - min(len(old.log), draw.randrange(8))
    applied = old.base + old.log[:end]
    sent = old.base + old.log[: end + draw.randrange(2)]
    is_lost = not set(sent) <= set(new.history)
    is_purged = not set(new.unreadable) <= set(applied)
    of = position_of if is_mariadb else set_of_all
    went_on, reason = None, ""
    try:
        file = decide(of(applied), of(sent), as_told(world, new))
    except ValueError as exc:
        reason = str(exc)
        assert reason
    else:
        went_on = read_on(world, new, applied, file)
    note(f"{is_lost=} {is_purged=} {reason} {old} {new} {applied[-3:]}")
    assert (went_on is None) == (is_lost or is_purged)
    if went_on is not None:
        assert went_on == [gtid for gtid in new.history if gtid not in set(applied)]
