"""Experiment `job-update`: a job takes other plans while faults hit the batches around the change.

A case is a point of the batch protocol, an action and a moment: the fault is in the last batch of
the old plan, and the change is stored when it was met; or in the first batch of the new one; or the
change is a return to the plan before. One job meets all cases of a run, one after the other.

Its table never changes, so what must come of each record is known from the plan of its batch. At
the end batches of all plans are replayed, and a preview joins the newest 100 again.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.reliability.crash_points import ACTIONS, IMPOSSIBLE, Sizes, TroubledRun
from tests.reliability.crash_shapes import compare_output
from tests.reliability.experiment import Lab, in_lanes, result
from tests.reliability.oracle import Verdict
from tests.reliability.subject import Subject, read_click, running_subject
from tests.support.rig import running_rig
from tests.support.topics import consume
from tests.support.wait import wait_until

POINTS = ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10")
OLD, NEW, BACK = MOMENTS = ("last-of-old", "first-of-new", "back")
# (SELECT's name, WHERE) of the first plan, and of those that take turns with it
_PLAIN = ("u.name", "")
_LOUD = ("UPPER(u.name)", " WHERE MOD(c.item_id, 3) <> 0")


@dataclass(frozen=True)
class Change:
    """One change of the job, and the fault near it."""

    point: str
    action: str
    moment: str

    def __str__(self) -> str:
        return f"{self.point} {self.action} {self.moment}"


def all_cases() -> list[Change]:
    pairs = [(p, a) for p in POINTS for a in ACTIONS if (p, a) not in IMPOSSIBLE]
    faults = [Change(*pair, moment) for pair in pairs for moment in (OLD, NEW)]
    return [*faults, *(Change(point, "kill", BACK) for point in POINTS)]


def listing() -> list[str]:
    """What `--list` shows."""
    return [*map(str, all_cases()), f"{len(all_cases())} cases"]


def small_cases() -> tuple[Change, ...]:
    return (
        Change("C3", "kill", OLD),
        Change("C6", "raise", OLD),
        Change("C5", "kill", NEW),
        Change("C8", "kill", NEW),
        Change("C7", "kill", BACK),
    )


def run(lab: Lab) -> dict[str, Any]:
    """All cases, at full scale in one run for each action, or for `--only`; pauses only wait."""
    runs = {"mixed": small_cases()}
    if lab.full:
        actions = (str(lab.options["only"]),) if lab.options.get("only") else ACTIONS
        runs = {a: tuple(c for c in all_cases() if c.action == a) for a in actions}
    ended = in_lanes(lab.size(1, 2), lambda each: _attempt(lab, *each), runs.items())
    verdicts = [verdict for _, verdict, _ in ended]
    return result(
        lab,
        "job-update",
        sum(map(len, runs.values())),
        sum(passed for passed, _, _ in ended),
        verdicts,
        wrong=sum(verdict.wrong_value for verdict in verdicts),
        taken_within_s=max(times.get("taken", 0.0) for _, _, times in ended),
        preview_s=max(times.get("preview", 0.0) for _, _, times in ended),
    )


def _attempt(
    lab: Lab, name: str, cases: tuple[Change, ...]
) -> tuple[int, Verdict, dict[str, float]]:
    """(cases that passed, the verdict, seconds) of one run; one that breaks off has met none."""
    sizes = Sizes({}, {}, burst=lab.size(300, 10_000), users=lab.size(500, 5_000), pause_s=2.0)
    entries = [entry for n, case in enumerate(cases) for entry in _entries(case, _batch(n, case))]
    given = {"failpoints": ";".join(entries), "restart_backoff_max_s": 1.0, "runners": lab.runners}
    with (
        running_rig(lab.place(name), lab.kafka, lab.mariadb, **given) as rig,
        running_subject(lab, rig, users=sizes.users) as subject,
    ):
        changed = ChangedRun(subject, sizes)
        try:
            changed.run(cases)
        except (TimeoutError, AssertionError) as exc:
            lab.say(f"{name} broke off: {str(exc)[:3000]}")
            return 0, Verdict(examples=[f"{name} broke off: {str(exc)[:300]}"], lost=1), {}
        missed = [case for n, case in enumerate(cases) if not changed.met(case, _batch(n, case))]
        verdict = changed.judged()
    lab.say(f"{name}: missed {[*map(str, missed)]}, {changed.times} s, {verdict.examples[:3]}")
    return len(cases) - len(missed) if verdict.ok else 0, verdict, changed.times


def _batch(number: int, case: Change) -> int:
    """The batch that meets the fault of case `number`; each case has two behind the first one."""
    return 1 + 2 * number + (case.moment == NEW)


def _entry(case: Change, batch: int) -> str:
    return f"{case.point}={case.action}#{batch}"


def _entries(case: Change, batch: int) -> list[str]:
    """A loop begins, which is C1, behind a fault at C3 only."""
    begins = [f"C3=raise#{batch}"] if case.point == "C1" else []
    return [_entry(case, batch), *begins]


class ChangedRun(TroubledRun):
    """Feeds the job, changes it, and knows the plan of each number."""

    def __init__(self, subject: Subject, sizes: Sizes) -> None:
        super().__init__(subject, sizes)
        self._job = subject.job
        self._sql = self._job.status()["sql"]
        self._plans = {1: _PLAIN}
        self.times: dict[str, float] = {}

    def run(self, cases: tuple[Change, ...] = ()) -> None:
        subject = self._subject
        subject.clicks.send(self._sizes.burst)
        self._attend(lambda: subject.newest_batch() >= 0, "the gate opens")
        self._attend(subject.idle, "the first batch is committed")
        for number, case in enumerate(cases):
            self._meet(case, 2 * number + 1)
            self._subject.lab.say(f"{case} was met")
        self._attend(self._is_at_newest_plan, "the newest plan is taken")

    def met(self, case: Change, batch: int) -> bool:
        return self.was_met(_entry(case, batch))

    def _meet(self, case: Change, batch: int) -> None:
        if case.moment == NEW:
            self._feed(batch)
            self._change_plan(case)
            self._feed(batch + 1)
            self._attend(lambda: self.met(case, batch + 1), f"{case} is met")
            return
        self._send()
        self._attend(lambda: self.met(case, batch), f"{case} is met")
        self._change_plan(case)
        self._attend(self._subject.idle, f"batch {batch} is committed")
        self._attend(self._is_at_newest_plan, "the new plan is taken")
        self._feed(batch + 1)

    def _change_plan(self, case: Change) -> None:
        number = max(self._plans)
        if case.moment == BACK and number > 1:
            body, plan = {"to_plan": number - 1}, self._plans[number - 1]
        else:
            plan = _LOUD if self._plans[number] == _PLAIN else _PLAIN
            body = {"sql": self._script(plan)}
        begun = time.monotonic()
        answer = self._subject.rig.client.post(f"/v1/jobs/{self._job.id}:update", json=body)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["plan"], answer.json()["applied"]) == (number + 1, True)
        self._plans[number + 1] = plan
        if case.moment == NEW:
            self._attend(self._is_at_newest_plan, "the new plan is taken")
            taken_s = round(time.monotonic() - begun, 1)
            self.times["taken"] = max(self.times.get("taken", 0.0), taken_s)

    def _script(self, plan: tuple[str, str]) -> str:
        name, where = plan
        changed = self._sql.replace("u.gender, u.name ", f"u.gender, {name} ")
        changed = changed.replace("ON c.user_id = u.user_id;", f"ON c.user_id = u.user_id{where};")
        assert (changed == self._sql) == (plan == _PLAIN)
        return str(changed)

    def _is_at_newest_plan(self) -> bool:
        """Also says that the runner lives: a report of before would have the plan of before."""
        status = self._job.status()
        report = status["report"] or {}
        is_new = status["plan"] == max(self._plans) and bool(report.get("is_live"))
        return is_new and status["state"] == "JOINING"

    # The verdict
    # ------------------------------------------------------------------------------------------

    def judged(self) -> Verdict:
        """What the output has, beside what the plan of each batch gives; then replays."""
        verdict = Verdict()
        self._replay(verdict)
        self._preview()
        self._job.stop()
        expected, bad = self._expected(verdict)
        compare_output(verdict, self._subject, expected, bad)
        return verdict

    def _expected(self, verdict: Verdict) -> tuple[Counter[Any], Counter[Any]]:
        subject = self._subject
        with subject.changes.connection.cursor() as cursor:
            cursor.execute("SELECT user_id, name FROM user_info")
            users = dict(cursor.fetchall())
        plans = dict(self._plans_of_batches())
        expected: Counter[Any] = Counter()
        bad: Counter[Any] = Counter()
        for record in consume(subject.rig.kafka.bootstrap_servers, subject.topic):
            verdict.records += 1
            place = (record.partition, record.offset)
            batch, plan = plans[place]
            click = read_click(record.value)
            if click is None:
                bad[place] += 1
                continue
            user, item = click
            name = users.get(user)
            if plan == _LOUD:
                if item % 3 == 0:
                    continue
                name = None if name is None else name.upper()
            expected[*place, batch, item, name] += 1
        return expected, bad

    def _plans_of_batches(self) -> Iterator[tuple[tuple[int, int], tuple[int, tuple[str, str]]]]:
        """(partition, offset) → the batch of the record, and the plan of its pin."""
        for batch in range(self._subject.newest_batch() + 1):
            pin = self._job.pins.read(batch)
            assert pin is not None, f"batch {batch} has no pin"
            for partition, (start, end) in pin.ranges().items():
                for offset in range(start, end):
                    yield (partition, offset), (batch, self._plans[pin.plan])

    def _preview(self) -> None:
        """The other plan gives other rows in the newest batches; how long that takes to say."""
        newest = self._plans[max(self._plans)]
        sql = self._script(_LOUD if newest == _PLAIN else _PLAIN)
        begun = time.monotonic()
        url = f"/v1/jobs/{self._job.id}:update"
        body = {"sql": sql, "preview": True}
        answer = wait_until(
            lambda: self._subject.rig.client.post(url, json=body, timeout=120).json(),
            what="a preview",
        )
        self.times["preview"] = round(time.monotonic() - begun, 1)
        (rows,) = answer["rows"]
        assert rows["reason"] is None or "were over" in rows["reason"], rows
        assert rows["rows_changed"] > 0, rows
        assert rows["rows_added"] + rows["rows_removed"] > 0, rows
