"""A connector that copies a table and streams its changes, and what really happened to each row.

It knows nothing of the rules under test: a history is what a connector did, when its records came
into the partitions of a topic, and what it notified. `Reader` reads the topic as the feed does.
"""

import random
from dataclasses import dataclass, field

from watermark.foreign import ForeignSnapshot, SnapshotRules
from watermark.foreign_journal import Complete, FeedPhase, FeedPosition, FeedStep, SnapshotJournal
from watermark.foreign_records import Mark, NewSnapshot, Notice, NoticeKind, RecordRun

SETTLE_MS = 10_000
FIRST, ROW, LAST, STREAMED, _ = Mark


def is_older(journal: SnapshotJournal, mark: Mark, at_ms: int, position: int = 0) -> bool:
    """True if a late record belongs to an earlier snapshot; then it is not taken.

    A row with the position of the row that began this snapshot is not older; its partition was
    only slower.
    """
    if mark is Mark.STREAMED:
        return journal.changes_from_ms is not None and at_ms < journal.changes_from_ms
    if position and position == journal.log_position:
        return False
    return journal.rows_after_ms is not None and at_ms <= journal.rows_after_ms


@dataclass(frozen=True)
class Sent:
    """A record: what it says, when it was sent, when it was in the topic.

    `snapshot` numbers the connector's snapshots; of a streamed change the newest one before it.
    `position` is where the database's log was when a row of a snapshot was read, 0 if untold.
    """

    partition: int
    kind: Mark | None
    sent_ms: int
    there_ms: int
    source_ms: int
    key: int
    value: int | None
    snapshot: int
    position: int = 0


@dataclass
class History:
    """What one connector did to one table."""

    rng: random.Random
    partitions: int
    is_compacted: bool
    has_started: bool
    notice_rate: float
    commits: bool
    is_chunked: bool = False
    records: list[Sent] = field(default_factory=list)
    notices: list[tuple[int, Notice]] = field(default_factory=list)  # (visible at, notice)
    commit_log: list[tuple[int, int | None]] = field(default_factory=list)  # (at, source or None)
    copies: dict[int, dict[int, int]] = field(default_factory=dict)  # rows of whole snapshots
    begun_ms: dict[int, int] = field(default_factory=dict)
    table: dict[int, int] = field(default_factory=dict)
    now_ms: int = 1_000_000
    snapshot: int = 0
    position: int = 1
    positions: int = 1  # of a snapshot: in the midst of a stream threads have their own
    last_was_aborted: bool = False
    is_only_life: bool = False
    tells: set[str] = field(default_factory=set)  # evidence that was delivered for the newest one
    _there_ms: dict[int, int] = field(default_factory=dict)
    _next: int = 0

    def tick(self, most: int = 5) -> None:
        self.now_ms += self.rng.randint(0, most)

    def change_table(self, times: int) -> None:
        """While no connector looks."""
        for _ in range(times):
            key = self.rng.randrange(12)
            self.position += 1
            self.table.pop(key, None)
            if self.rng.random() < 0.6:
                self._next += 1
                self.table[key] = self._next

    def change_row(self, key: int) -> None:
        self.position += 1
        self._next += 1
        self.table[key] = self._next

    def send(self, kind: Mark | None, key: int, value: int | None, source_ms: int) -> None:
        partition = key % self.partitions
        delay = self.rng.choice([0, 1, 5, 50, 900])
        there = max(self.now_ms + delay, self._there_ms.get(partition, 0))
        self._there_ms[partition] = there
        is_placed = self.is_chunked and kind in (FIRST, ROW, LAST)
        position = 2 * self.position + self.rng.randrange(self.positions) if is_placed else 0
        self.records.append(
            Sent(
                partition, kind, self.now_ms, there, source_ms, key, value, self.snapshot, position
            )
        )

    def notify(self, kind: NoticeKind, rows: int | None = None) -> bool:
        """Late, twice or not at all."""
        if self.rng.random() > self.notice_rate and not (
            self.has_started and kind is NoticeKind.STARTED
        ):
            return False
        notice = Notice(kind, self.now_ms, rows)
        delays = [0] if self.has_started and kind is NoticeKind.STARTED else [0, 5, 300, 4_000]
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            self.notices.append((self.now_ms + self.rng.choice(delays), notice))
        return True

    def commit(self, source_ms: int | None) -> None:
        at = max([self.now_ms, *self._there_ms.values()])
        self.commit_log.append((at, source_ms))

    def take_snapshot(self, *, aborted: bool = False, is_first_table: bool = False) -> None:
        self.now_ms += self.rng.randint(1_000, 3_000)  # a connector has to start
        self.snapshot += 1
        self.begun_ms[self.snapshot] = self.now_ms
        self.tells = set()
        self.positions = 2 if self.copies and not self.last_was_aborted else 1
        self.position += bool(self.copies)  # it was asked for by a row in the database
        self.notify(NoticeKind.STARTED)
        self.tick()
        source = self.now_ms
        if len(self.table) == 1 and self.snapshot > 1:
            self.table[12] = self.table.get(12, 0)  # of two of one row each, see `_mark`
        rows = list(self.table.items())
        self.rng.shuffle(rows)
        if self.rng.random() < 0.5:  # else the offset of before is seen until it is over
            self.commit(None)
        upto = self.rng.randrange(len(rows)) if aborted and rows else len(rows)
        self.last_was_aborted = aborted
        kinds = [self._mark(n, len(rows), is_first_table=is_first_table) for n in range(len(rows))]
        if self.is_chunked and len(rows) > 2:  # the first row of the first chunk comes when it does
            self._move_first(kinds[:upto] if aborted else kinds, kinds)
        for kind, (key, value) in list(zip(kinds, rows, strict=True))[:upto]:
            if kind is LAST:
                self.tells.add("last")
            self.send(kind, key, value, self._read_ms(source))
            self.tick(3)
        if aborted:
            if self.rng.random() < 0.5:
                self.notify(NoticeKind.ABORTED)
            self.tick()
        else:
            self._end_snapshot(rows, source)

    def skip_the_rest(self) -> None:
        """After a restart it believes that its snapshot is over, and says so."""
        self.now_ms += self.rng.randint(1_000, 3_000)
        self.notices.append((self.now_ms, Notice(NoticeKind.SKIPPED, self.now_ms)))
        self.stream(self.rng.choice([0, 4, 20]))

    def _move_first(self, sent: list[Mark], kinds: list[Mark]) -> None:
        at = self.rng.randrange(max(1, min(len(sent), len(kinds) - 1)))
        kinds[0], kinds[at] = kinds[at], kinds[0]

    def _read_ms(self, source: int) -> int:
        return self.rng.randint(source, self.now_ms) if self.is_chunked else source

    def _end_snapshot(self, rows: list[tuple[int, int]], source: int) -> None:
        self.copies[self.snapshot] = dict(rows)
        self.now_ms = max(self.now_ms, source)
        if self.notify(NoticeKind.SCANNED, len(rows)):
            self.tells.add("scan")
        self.tick()
        if self.notify(NoticeKind.COMPLETED) and rows:
            self.tells.add("completed")
        self.tick()
        self.commit(source)
        if self.commits and rows:
            self.tells.add("commit")
        self.now_ms += 2

    def _mark(self, number: int, count: int, *, is_first_table: bool) -> Mark:
        """With Debezium's precedence.

        Two snapshots of a table of one row, both of the first of several tables and without a
        change between them, cannot be told apart by their marks.
        """
        if number == 0 and is_first_table and (count > 1 or self.is_only_life):
            return FIRST
        if number == count - 1:
            return LAST
        return FIRST if number == 0 else ROW

    def stream(self, changes: int) -> None:
        self.now_ms += 2
        for _ in range(changes):
            key = self.rng.randrange(12)
            self.position += 1
            self.tick(20)
            if key in self.table and self.rng.random() < 0.3:
                del self.table[key]
                self.send(STREAMED, key, None, self.now_ms)
            else:
                self._next += 1
                self.table[key] = self._next
                self.send(STREAMED, key, self._next, self.now_ms)
            if self.rng.random() < 0.1:
                self.commit(self.now_ms)
        self.now_ms += 2

    def incremental(self) -> None:
        for key, value in list(self.table.items())[:4]:
            self.tick()
            self.send(None, key, value, self.now_ms)

    def send_again(self) -> None:
        """A producer that heard no answer has its newest batch appended twice."""
        newest = self.records[-self.rng.randint(1, 3) :]
        same = [r for r in newest if r.partition == newest[-1].partition]
        for record in same:
            there = max(record.there_ms, self._there_ms[record.partition])
            self._there_ms[record.partition] = there
            self.records.append(Sent(**{**record.__dict__, "there_ms": there}))

    def logs(self) -> list[list[Sent]]:
        """The partitions as they are in the end."""
        logs: list[list[Sent]] = [[] for _ in range(self.partitions)]
        for record in self.records:
            logs[record.partition].append(record)
        return logs


def _copy(made: History, lives: int, *, is_newest: bool) -> bool:
    """A snapshot, if need be a second one; whether one was whole.

    Rows of one that was given up, and then a table without any, of which no record and, without
    STARTED, no notification tells, cannot be told from the copy of a table with these rows.
    """
    rng = made.rng
    aborted = rng.random() < 0.25
    made.is_only_life = lives == 1 and not aborted
    made.take_snapshot(aborted=aborted, is_first_table=rng.random() < 0.3)
    if made.records and rng.random() < 0.2:
        made.send_again()
    if aborted and is_newest and rng.random() < 0.5:
        if made.has_started and rng.random() < 0.5:
            made.skip_the_rest()
        return False
    if aborted:
        made.change_table(rng.randint(0, 6))
        if not made.has_started and not made.table:
            made.change_row(11)
        made.take_snapshot(is_first_table=rng.random() < 0.3)
    return True


def history(seed: int) -> History:
    """A random life of a connector."""
    rng = random.Random(seed)
    lives = rng.choice([1, 1, 1, 2, 3])
    made = History(
        rng,
        partitions=rng.choice([1, 1, 2, 3, 4]),
        is_compacted=rng.random() < 0.25,
        has_started=False,
        notice_rate=rng.choice([0.0, 0.5, 0.9, 1.0]),
        commits=rng.random() < 0.3,
        is_chunked=rng.random() < 0.3,
    )
    # compaction may take the marks away
    made.has_started = made.is_compacted or rng.random() < 0.3
    made.change_table(rng.choice([0, 0, 1, 5, 30]))
    for life in range(lives):
        is_newest = life == lives - 1
        if not _copy(made, lives, is_newest=is_newest):
            break
        if rng.random() < 0.7:
            made.stream(rng.choice([1, 4, 20]))
        if rng.random() < 0.2:
            made.incremental()
            made.stream(2)
        if rng.random() < 0.3:
            made.notify(NoticeKind.SKIPPED)  # a restart that copies nothing
        if not is_newest:
            made.change_table(rng.randint(0, 8))
    return made


class KilledError(Exception):
    """The process of a reader was killed."""


@dataclass
class Reader:
    """Reads a history as the feed reads a topic: in the order of the records' times."""

    made: History
    began_ms: int
    limit: int = 5
    at: list[int] = field(default_factory=list)
    ahead: list[list[tuple[int, Sent]]] = field(default_factory=list)
    labelled: list[tuple[int, int, Sent]] = field(default_factory=list)  # generation, offset, …
    keys: set[int] = field(default_factory=set)
    handed: set[Notice] = field(default_factory=set)
    kills: float = 0.0  # how often the process dies between two durable writes

    def __post_init__(self) -> None:
        rules = SnapshotRules(settle_ms=SETTLE_MS, is_compacted=self.made.is_compacted)
        self.machine = ForeignSnapshot(
            range(self.made.partitions), rules, SnapshotJournal(generation=1)
        )
        self.rules = rules
        self.at = [0] * self.made.partitions
        self.ahead = [[] for _ in range(self.made.partitions)]
        self.logs = self.made.logs()
        self.removed: set[int] = set()
        self.deaths = 0
        self.position = FeedPosition()
        self._journal(FeedStep.BEGIN)

    def compact(self, now_ms: int) -> None:
        """Kafka drops what a later record of the key replaces; the newest ones stay."""
        for log in self.logs:
            there = [r for r in log if r.there_ms <= now_ms]
            newest = {r.key: r for r in there[:-1]}
            self.removed |= {id(r) for r in there[:-1] if newest[r.key] is not r}

    def ends(self, now_ms: int) -> dict[int, int]:
        return {p: sum(1 for r in log if r.there_ms <= now_ms) for p, log in enumerate(self.logs)}

    def _journal(self, step: FeedStep) -> None:
        self.position = self.position.after(
            step, generation=self.machine.generation, offsets=self.applied()
        )
        self.kept = (self.machine.journal.as_json(), set(self.keys), set(self.handed))

    def _may_die(self) -> None:
        if self.made.rng.random() < self.kills:
            raise KilledError

    def _restart(self) -> None:
        """Begin again with what the newest durable write says."""
        value, keys, handed = self.kept
        self.machine = ForeignSnapshot(
            range(self.made.partitions), self.rules, SnapshotJournal.of_json(value)
        )
        self.keys, self.handed = set(keys), set(handed)
        self.at = [self.position.offsets[p] for p in range(self.made.partitions)]
        self.ahead = [[] for _ in range(self.made.partitions)]
        self.deaths += 1

    def step(self, now_ms: int) -> Complete | None:
        try:
            answer = self._step(now_ms)
            self._may_die()
            if answer is not None and self.position.phase is FeedPhase.COPYING:
                self._journal(FeedStep.PROVE)
            elif self.made.rng.random() < 0.3:
                self._journal(FeedStep.ADVANCE)
            self._may_die()
            return answer
        except KilledError:
            self._restart()
            return None

    def _step(self, now_ms: int) -> Complete | None:
        self._hear(now_ms)
        ends = self.ends(now_ms)
        self._fetch(ends)
        frontiers = [
            running(ahead)[-1]
            for p, ahead in enumerate(self.ahead)
            if ahead and self.at[p] < ends[p]
        ]
        frontier = min(frontiers, default=None)
        window = sorted(
            (
                (order, p, offset, record)
                for p, ahead in enumerate(self.ahead)
                for order, (offset, record) in zip(running(ahead), ahead, strict=True)
                if frontier is None or order <= frontier
            ),
            key=lambda each: each[:3],
        )
        self._process(window)
        return self._ask(now_ms)

    def applied(self) -> dict[int, int]:
        return {p: self._done(p) for p in range(self.made.partitions)}

    def _done(self, partition: int) -> int:
        ahead = self.ahead[partition]
        return ahead[0][0] if ahead else self.at[partition]

    def _hear(self, now_ms: int) -> None:
        notices = {n for at, n in self.made.notices if at <= now_ms} - self.handed
        self.handed |= notices
        new = self.machine.notify(notices)
        if new is not None:
            self._cut(new)
        if self.made.commits:
            commits = [source for at, source in self.made.commit_log if at <= now_ms]
            if commits and commits[-1] is not None:
                self.machine.take_commit(commits[-1])

    def _fetch(self, ends: dict[int, int]) -> None:
        for p, log in enumerate(self.logs):
            while self.at[p] < ends[p] and len(self.ahead[p]) < self.limit:
                record = log[self.at[p]]
                if id(record) not in self.removed:
                    self.ahead[p].append((self.at[p], record))
                self.at[p] += 1

    def _process(self, window: list[tuple[int, int, int, Sent]]) -> None:
        for _, p, offset, record in window:
            is_behind = record.kind is not None and is_older(
                self.machine.journal, record.kind, record.sent_ms, record.position
            )
            if record.kind is not None and not is_behind:
                run = RecordRun(
                    record.kind,
                    frozenset([p]),
                    record.sent_ms,
                    record.sent_ms,
                    record.source_ms,
                    record.source_ms,
                    record.position,
                )
                new = self.machine.take(run)
                if new is not None:
                    self._cut(new)
                    if new.must_read_again:
                        return
                    assert self.machine.take(run) is None
            if record.kind is None:
                self.machine.take_unmarked(record.sent_ms)
            generation = self.machine.generation - is_behind
            self.labelled.append((generation, offset, record))
            is_row = record.kind in (FIRST, ROW, LAST)
            if is_row and generation == self.machine.generation:
                self.keys.add(record.key)
                self.machine.take_row_count(len(self.keys))
            self.ahead[p].pop(0)

    def _cut(self, new: NewSnapshot) -> None:
        self._may_die()
        at_ms = new.at_ms
        self.machine.begin_generation(new)
        self.keys = set()
        if new.must_read_again:
            for p, log in enumerate(self.logs):
                first = next((n for n, r in enumerate(log) if r.sent_ms >= at_ms), len(log))
                if first < self.at[p]:
                    self.at[p], self.ahead[p] = first, []
                else:
                    self.ahead[p] = []
                    self.at[p] = min(self.at[p], first)
        self._journal(FeedStep.SUPERSEDE)
        self._may_die()

    def _ask(self, now_ms: int) -> Complete | None:
        if self.made.rng.random() < 0.2:
            kept = self.machine.journal.as_json()
            self.machine = ForeignSnapshot(
                range(self.made.partitions), self.rules, SnapshotJournal.of_json(kept)
            )
        applied = self.applied()
        answer = self.machine.ask(now_ms, applied)
        if not isinstance(answer, Complete) and answer.missing == "ends":
            self.machine.take_ends(self.ends(now_ms))
            answer = self.machine.ask(now_ms, applied)
        return answer if isinstance(answer, Complete) else None

    # What is true
    # ------------------------------------------------------------------------------------------

    def fault(self, now_ms: int) -> str | None:
        """What is wrong with an opening now: a row that is missing, or one that is no more."""
        generation = self.machine.generation
        own = [record for label, _, record in self.labelled if label == generation]
        rows = [r for r in own if r.kind in (FIRST, ROW, LAST)]
        read = {r.snapshot for r in rows}
        if len(read) > 1 and len({r.position // 2 or -r.snapshot for r in rows}) > 1:
            return f"rows of snapshots {sorted(read)} in one generation"
        whole = read & self.made.copies.keys()  # read at one position they are the same
        snapshot = max(whole or read) if read else self._without_rows(own, now_ms)
        if snapshot not in self.made.copies:
            return f"snapshot {snapshot} was never whole"
        missing = set(self.made.copies[snapshot]) - {r.key for r in own}
        if missing:
            return f"rows {sorted(missing)} of snapshot {snapshot} are missing"
        old = [r.key for r in own if r.kind is STREAMED and r.snapshot < snapshot]
        return f"changes of {old} from before snapshot {snapshot}" if old else None

    def _without_rows(self, own: list[Sent], now_ms: int) -> int:
        """The newest snapshot whose rows are not there: it found none, or all are compacted."""
        heard = [n.at_ms for at, n in self.made.notices if at <= now_ms and n.scanned_rows == 0]
        begun = [n for n, at in self.made.begun_ms.items() if any(at <= h for h in heard)]
        empty = {n for n in begun if not self.made.copies.get(n, {0: 0})}
        compacted = {record.snapshot for record in own} if self.made.is_compacted else set()
        return max(empty | compacted, default=0)


def running(ahead: list[tuple[int, Sent]]) -> list[int]:
    """The times of a partition's records, none before that of an earlier one."""
    times, most = [], 0
    for _, record in ahead:
        most = max(most, record.sent_ms)
        times.append(most)
    return times
