"""Experiment `late-rows`: records wait for rows of a table while faults hit the batches.

Of the records 70 % have a row, 15 % get one while they wait or later, 15 % never do. A case is a
point of the batch protocol and an action, met by whatever batch has the number: of records, of a
retry, or of a bound. The oracle reads pins, the topic and the changelog. Rows are only inserted, so
the first version that has a user says which batch must join each of its records.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.reliability.crash_points import ACTIONS, IMPOSSIBLE, Sizes, TroubledRun
from tests.reliability.crash_shapes import compare_output
from tests.reliability.experiment import Lab, in_lanes, result
from tests.reliability.oracle import Verdict
from tests.reliability.oracle_log import TableLog
from tests.reliability.subject import BAD, Clicks, Subject, read_click, running_subject
from tests.support.rig import running_rig
from tests.support.topics import consume

POINTS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10")
WAIT_MS = 6_000
_NEVER = 10**9
_RECORDS = 10_000_000
_SOON = 100  # users that records name before their rows are there
_FIRST, _APART = 2, 2  # the batch of the first fault, and the batches between two
_MANY_STEPS = 40


@dataclass(frozen=True)
class Fault:
    """One fault, in the batch of this number."""

    point: str
    action: str
    batch: int

    @property
    def entries(self) -> list[str]:
        """A loop begins, which is C1, behind a fault at C3 only."""
        begins = [f"C3=raise#{self.batch}"] if self.point == "C1" else []
        return [str(self), *begins]

    def __str__(self) -> str:
        return f"{self.point}={self.action}#{self.batch}"


def _numbered(pairs: Sequence[tuple[str, str]]) -> tuple[Fault, ...]:
    return tuple(Fault(*pair, _FIRST + _APART * n) for n, pair in enumerate(pairs))


def all_cases() -> dict[str, tuple[Fault, ...]]:
    """The runs at full scale, one for each action: every possible fault in two batches."""
    runs = {}
    for action in ACTIONS:
        points = [point for point in POINTS if (point, action) not in IMPOSSIBLE] * 2
        if action in ("kill", "raise"):
            points.append("C13")
        runs[action] = _numbered([(point, action) for point in points])
    return runs


def small_cases() -> dict[str, tuple[Fault, ...]]:
    pairs = (("C6", "kill"), ("C13", "kill"), ("C5", "raise"), ("C8", "kill"), ("C3", "kill"))
    return {"mixed": _numbered(pairs)}


def listing() -> list[str]:
    """What `--list` shows."""
    faults = [str(fault) for run in all_cases().values() for fault in run]
    return [*faults, f"{len(faults)} cases"]


def run(lab: Lab) -> dict[str, Any]:
    """All cases; full scale sends `_RECORDS` in all."""
    runs = all_cases() if lab.full else small_cases()
    ended = in_lanes(lab.size(1, 2), lambda each: _attempt(lab, *each), runs.items())
    verdicts = [verdict for _, verdict in ended]
    return result(
        lab,
        "late-rows",
        sum(map(len, runs.values())),
        sum(passed for passed, _ in ended),
        verdicts,
        wrong=sum(verdict.wrong_value + verdict.phantom for verdict in verdicts),
    )


def _attempt(lab: Lab, name: str, cases: tuple[Fault, ...]) -> tuple[int, Verdict]:
    """(cases that passed, the verdict) of one run; one that breaks off has met none."""
    burst = lab.size(300, _RECORDS // sum(map(len, all_cases().values())))
    sizes = Sizes({}, {}, burst=burst, users=lab.size(500, 5_000), pause_s=2.0)
    entries = [entry for case in cases for entry in case.entries]
    given = {"failpoints": ";".join(entries), "restart_backoff_max_s": 1.0, "runners": lab.runners}
    option = f"'join.late-rows.wait'='{WAIT_MS} ms'"
    with (
        running_rig(lab.place(name), lab.kafka, lab.mariadb, **given) as rig,
        running_subject(lab, rig, users=sizes.users, options=(option,)) as subject,
    ):
        late = LateRun(subject, sizes)
        try:
            late.run_all(cases)
        except (TimeoutError, AssertionError) as exc:
            lab.say(f"{name} broke off: {str(exc)[:3000]}")
            return 0, Verdict(examples=[f"{name} broke off: {str(exc)[:300]}"], lost=1)
        missed = [str(case) for case in cases if not late.was_met(str(case))]
        verdict = late.judged()
    lab.say(f"{name}: missed {missed}, {verdict.faults()} {verdict.examples[:3]}")
    return len(cases) - len(missed) if verdict.ok else 0, verdict


@dataclass
class LateClicks(Clicks):
    """Clicks of users that are there, that come soon, and that never come."""

    there: int = 0

    def _value(self, item: int) -> bytes:
        chance = self.rng.random()
        if chance < self.bad_share:
            return self.rng.choice(BAD)
        if chance < 0.7:
            user = 1 + int(self.rng.random() * self.there)
        elif chance < 0.85:
            user = self.there + 1 + int(self.rng.random() * _SOON)
        else:
            user = _NEVER + item
        return b'{"user_id":%d,"item_id":%d}' % (user, item)


class LateRun(TroubledRun):
    """Sends records, then the rows that some of them wait for, until all faults are met."""

    def __init__(self, subject: Subject, sizes: Sizes) -> None:
        super().__init__(subject, sizes)
        clicks = subject.clicks
        self._clicks = LateClicks(
            clicks.rng, clicks.users, clicks.producer, clicks.partitions, there=sizes.users
        )
        subject.clicks = self._clicks

    def run_all(self, cases: tuple[Fault, ...]) -> None:
        subject = self._subject
        self._clicks.send(self._sizes.burst)
        self._attend(lambda: subject.newest_batch() >= 0, "the gate opens")
        for _ in range(max(_MANY_STEPS, 2 * len(cases))):
            if all(self.was_met(str(case)) for case in cases):
                break
            self._insert_users()
            self._feed(subject.newest_batch() + 1)
        self._attend(self._is_drained, "no record waits")

    def _insert_users(self) -> None:
        first = self._clicks.there + 1
        rows = [(n, "F", f"late {n}") for n in range(first, first + _SOON)]
        with self._subject.changes.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO user_info VALUES (%s, %s, %s)", rows)
        self._clicks.there += _SOON

    def _is_drained(self) -> bool:
        status = self._subject.job.status()
        report = status["report"] or {}
        time = status["event_time"] or {"waiting_rows": 1}
        is_quiet = time["waiting_rows"] == 0 and bool(report.get("is_live"))
        return is_quiet and self._subject.idle()

    # The verdict
    # ------------------------------------------------------------------------------------------

    def judged(self) -> Verdict:
        """What the output has, beside what pins, changelog and topic make of each record."""
        verdict, subject = Verdict(), self._subject
        self._replay(verdict)
        subject.job.stop()
        expected, bad = self._expected(verdict)
        compare_output(verdict, subject, expected, bad)
        return verdict

    def _expected(self, verdict: Verdict) -> tuple[Counter[Any], Counter[Any]]:
        subject = self._subject
        pins = _pins(subject)
        clocks = [pin["batch_timestamp_ms"] for pin in pins]
        versions = [pin["versions"]["user_info"] for pin in pins]
        users = _first_versions(TableLog(subject.directory / "tables" / "user_info" / "changelog"))
        batches = {
            (int(p), offset): number
            for number, pin in enumerate(pins)
            for p, end in pin["end_offsets"].items()
            for offset in range(pin["start_offsets"].get(p, 0), end)
        }
        expected: Counter[Any] = Counter()
        bad: Counter[Any] = Counter()
        for record in consume(subject.rig.kafka.bootstrap_servers, subject.topic):
            verdict.records += 1
            place = (record.partition, record.offset)
            click = read_click(record.value)
            if click is None:
                bad[place] += 1
                continue
            user, item = click
            came = batches[place]
            version, name = users.get(user, (None, None))
            bound = bisect_left(clocks, clocks[came] + WAIT_MS)
            match = len(pins) if version is None else max(came, bisect_left(versions, version))
            batch = min(match, bound)
            expected[*place, batch, item, name if match <= bound else None] += 1
        return expected, bad


def _pins(subject: Subject) -> list[Mapping[str, Any]]:
    files = sorted((subject.checkpoint / "pins").glob("*.json"))
    pins = [json.loads(file.read_bytes()) for file in files]
    assert [pin["batch"] for pin in pins] == list(range(len(pins))), "each batch has a pin"
    return pins


def _first_versions(log: TableLog) -> dict[int, tuple[int, str]]:
    """User → the first version of the changelog that has the row, and its name."""
    users: dict[int, tuple[int, str]] = {}
    for commit in log.commits():
        for file in commit.added:
            table = log.read(file, ("user_id", "name", "_op"))
            assert table is not None, f"file {file} of the changelog is gone"
            for row in table.to_pylist():
                if row["_op"] in ("r", "c"):
                    users.setdefault(row["user_id"], (commit.version, row["name"]))
    return users
