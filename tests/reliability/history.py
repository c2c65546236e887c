"""Experiment `history`: a table of files and then of a topic is killed around the seam of the two.

Each round is new files, a new topic and a new job. The files have every row. Of the topic, older
records lie before the start that the declaration names: applied, they would replace newer rows.
Behind the start it changes, deletes and inserts rows, and goes on to do so while the job reads. The
process of the table or its runner is killed while files are read, at their end, while the topic is
read, and when the topic is read up to its ends. Records of the stream wait for the table since the
beginning: each must have one row, with the name that its user had at the topic's ends. In the end
the newest record of each key and the folded `current` must both be what files and topic say.

A second part does the same with a stream of files and then a topic (`history_stream`), which is one
stream at full scale: a million rows of files and a tenth of it in the topic for each kill. A table
has a fifth of that for each of its kills, of which a round has 25.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.reliability.copied import tables_differ
from tests.reliability.experiment import Lab, result
from tests.reliability.history_stream import run_stream_round
from tests.reliability.processes import kill_hard, members, runner_of
from tests.reliability.rounds import SEAM, Round
from tests.support.beside import beside
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, RunningJob, kafka_table, running_rig
from tests.support.shop import CLICKS_DDL, click
from tests.support.topics import create_topic, end_offsets, produce, unique_name
from tests.support.wait import wait_until

RUNNER, PROCESS = "runner", "process"
TABLE, STREAM = "table", "stream"  # what `--only` names
MODULE = "joins.adapters.topic.history"
_SMALL = (0.2, SEAM, 0.75)
_A_ROUND = 25  # kills of one table at full scale, at the most
_PARTITIONS = 4
_PROBES = 50  # users whose rows the topic leaves alone behind its first part
_AT_ONCE = 2_000
_EACH_S = 600.0
_LOOK_S = 0.02
_GONE, _OF_FILE, _LATE = -1, 0, -2
"""What has made a user's row; above 0 it is the change of that number."""
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Size:
    """Rows of the files, how many files, and records of the topic from the start on."""

    rows: int
    files: int
    changes: int


class Table:
    """The files and the topic of one table, and the rows that they make."""

    def __init__(self, rig: Rig, size: Size) -> None:
        self.size = size
        self.servers = rig.kafka.bootstrap_servers
        self.topic = create_topic(self.servers, partitions=_PARTITIONS)
        self.directory = unique_name("users")
        self.made_by = np.full(1 + _PROBES + size.rows + size.rows // 10, _GONE)  # by user
        self.made_by[1 : size.rows + 1] = _OF_FILE
        self.changed = 0  # records of the topic from the start on
        self._write_files(rig.output(self.directory))
        with self.producer() as producer:
            older = np.arange(1, min(size.rows, _AT_ONCE) + 1)
            self._send(producer, older, older)
            self.start = end_offsets(self.servers, self.topic)
            probes = np.arange(1, _PROBES + 1)
            self.apply(producer, probes, np.where(probes % 2, _LATE, _GONE))
            for first in range(0, size.changes, _AT_ONCE):
                self.change(producer, range(first, min(first + _AT_ONCE, size.changes)))

    def _write_files(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        rows, each = self.rows(), -(-self.size.rows // self.size.files)
        for number in range(self.size.files):
            pq.write_table(rows.slice(number * each, each), directory / f"{number:05}.parquet")

    def rows(self) -> pa.Table:
        """The rows that files and topic make."""
        users = np.flatnonzero(self.made_by != _GONE)
        made_by = self.made_by[users]
        words = np.select([made_by > 0, made_by == _LATE], [2, 1], 0)
        numbers = pa.array(np.where(made_by > 0, made_by, users)).cast(pa.string())
        words = pc.take(pa.array(["file", "late", "change"]), pa.array(words))
        return pa.table({"id": users, "name": pc.binary_join_element_wise(words, numbers, " ")})

    def name(self, user: int) -> str | None:
        made_by = self.made_by[user]
        assert made_by < 0, "only the first changes make the row of a probe"
        return f"late {user}" if made_by == _LATE else None

    def producer(self) -> BulkProducer:
        return BulkProducer(self.servers, self.topic)

    def change(self, producer: BulkProducer, numbers: range) -> None:
        """Change, delete and insert the rows of these changes, none of them a probe's."""
        made_by = np.arange(numbers.start, numbers.stop) + 1
        users = _PROBES + 1 + made_by * 7919 % (self.size.rows + self.size.rows // 10)
        self.apply(producer, users, np.where(made_by % 5 == 0, _GONE, made_by))

    def apply(self, producer: BulkProducer, users: _Numbers, made_by: _Numbers) -> None:
        self._send(producer, users, made_by)
        self.changed += len(users)
        self.made_by[users] = made_by

    def _send(self, producer: BulkProducer, users: _Numbers, made_by: _Numbers) -> None:
        parts: dict[int, list[bytes | None]] = {p: [] for p in range(_PARTITIONS)}
        keys: dict[int, list[bytes]] = {p: [] for p in range(_PARTITIONS)}
        for user, number in zip(users.tolist(), made_by.tolist(), strict=True):
            keys[user % _PARTITIONS].append(b'{"id":%d}' % user)
            name = b"late %d" % user if number == _LATE else b"change %d" % number
            value = b'{"id":%d,"name":"%s"}' % (user, name)
            parts[user % _PARTITIONS].append(None if number == _GONE else value)
        producer.send(parts, keys)

    def declared(self) -> str:
        start = ";".join(f"partition:{p},offset:{o}" for p, o in sorted(self.start.items()))
        return (
            "CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ("
            f"'connector'='upsert-kafka', 'topic'='{self.topic}', 'key.format'='json', "
            f"'value.format'='json', 'properties.bootstrap.servers'='{self.servers}', "
            f"'history.connector'='filesystem', 'history.path'='{self.directory}', "
            "'history.format'='parquet', 'scan.startup.mode'='specific-offsets', "
            f"'scan.startup.specific-offsets'='{start}');"
        )


@contextmanager
def changing(table: Table, per_s: int) -> Iterator[None]:
    """Rows go on to change at a steady pace, until the block ends."""

    def change(ending: Event) -> None:
        made, each = table.size.changes, max(1, per_s // 10)
        with table.producer() as producer:
            while not ending.wait(0.1):
                table.change(producer, range(made, made + each))
                made += each

    with beside(change):
        yield


class Way:
    """How far the process of the table has come, as its durable files say."""

    def __init__(self, job: RunningJob, table: Table) -> None:
        self._job, self._table = job, table
        self._state = job.directory / "checkpoint" / "sources" / "users.json"

    def done(self) -> float:
        """0 at the beginning, `SEAM` when all files are read, 1 at the topic's present ends."""
        journal = _read(self._state)
        offsets = dict(journal.get("offsets") or ())
        if not offsets:
            files = _read(self._state.with_suffix(".files.json"))
            count = len(files.get("files") or ()) or self._table.size.files
            return SEAM * int(files.get("files_done") or 0) / count
        start = self._table.start
        read = sum(max(0, offset - start[int(p)]) for p, offset in offsets.items())
        return SEAM + (1 - SEAM) * min(1.0, read / self._table.changed)

    def wait(self, share: float) -> float:
        deadline = time.monotonic() + _EACH_S
        while (done := self.done()) < share:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{share} of the way, at {done}: {self._job.status()}")
            time.sleep(_LOOK_S)
        return done


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def run(lab: Lab) -> dict[str, Any]:
    """Rounds until there were enough kills."""
    cases = lab.cases(3, 100)
    each = min(cases, _A_ROUND)
    size = Size(*lab.size((20_000, 40, 10_000), (200_000 * each, 20 * each, 20_000 * each)))
    points = _spread(each) if lab.full else _SMALL
    of_stream = lab.size((20_000, 20, 4_000), (1_000_000 * cases, cases, 100_000 * cases))
    rounds: list[Round] = []
    only = lab.options.get("only")
    left = 0 if only == STREAM else cases
    with running_rig(
        lab.place("rig"),
        lab.kafka,
        lab.mariadb,
        restart_backoff_max_s=0.2,
        restart_limit=10_000,
        changelog_partitions=_PARTITIONS,
        fold_share=0.0,  # `current` is compared when all has come to rest
        runners=lab.runners,
    ) as rig:
        while left > 0:
            found = Round()
            rounds.append(found)
            _run_round(lab, rig, size, points[-left:] if left < len(points) else points, found)
            left -= max(1, len(found.kills))
            lab.say(f"round {len(rounds)}: {len(found.kills)} kills, clean {found.is_clean}")
        if only != TABLE:
            found = Round()
            rounds.append(found)
            run_stream_round(lab, rig, of_stream, cases, found)
            lab.say(f"stream: {len(found.kills)} kills, clean {found.is_clean}")
    kills = [kill for one in rounds for kill in one.kills]
    counts = {
        name: sum(getattr(one, name) for one in rounds)
        for name in ("lost", "duplicate", "early", "wrong")
    }
    found_all = result(
        lab,
        "history",
        len(kills),
        sum(len(one.kills) for one in rounds if one.is_clean),
        [],
        rounds=len(rounds),
        rows_of_files=size.rows,
        rows_of_stream=of_stream[0],
        victims=Counter(victim for _, victim, _ in kills),
        reached=[[point, victim, round(at, 4)] for point, victim, at in kills],
        told=[text for one in rounds for text in one.told][:20],
        ok=all(one.is_clean for one in rounds),
    )
    return {**found_all, **counts}


def _spread(kills: int) -> tuple[float, ...]:
    """A fifth of the kills within two hundredths of the seam, the others over all of the way."""
    near = kills // 5
    around = [SEAM + 0.02 * (number - near // 2) / max(1, near) for number in range(near)]
    others = [(number + 0.5) / (kills - near) for number in range(kills - near)]
    return tuple(sorted([*around, *others]))


def _run_round(lab: Lab, rig: Rig, size: Size, points: tuple[float, ...], found: Round) -> None:
    table = Table(rig, size)
    clicks, path = create_topic(table.servers, partitions=2), unique_name("history")
    probes = range(1, _PROBES + 1)
    produce(table.servers, clicks, [click(user, user) for user in probes])
    expected = {user: table.name(user) for user in probes}
    with rig.job(_statement(rig, table, clicks, path)) as job:
        way = Way(job, table)
        with changing(table, per_s=500):
            for number, point in enumerate(points):
                at = way.wait(point)
                found.early += _is_open(job) and not _is_whole(job)
                victim = (PROCESS, RUNNER)[(number + lab.seed) % 2]
                _kill(job, victim)
                found.kills.append((point, victim, at))
            job.wait_for(lambda s: s["phase"] == "JOIN", "it opens", deadline_s=_EACH_S)
        _check_rows(job, path, expected, found)
        found.told += _tables_differ(job, table)


def _statement(rig: Rig, table: Table, clicks: str, path: str) -> str:
    return (
        table.declared()
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + f"CREATE TABLE named (item_id BIGINT, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO named SELECT c.item_id, u.name FROM click_event AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.id;"
    )


def _is_open(job: RunningJob) -> bool:
    return (job.directory / "checkpoint" / "phase.json").exists() or job.pins.newest() is not None


def _is_whole(job: RunningJob) -> bool:
    """True if the process of the table has proven that it is complete."""
    journal = _read(job.directory / "checkpoint" / "sources" / "users.json")
    return (journal.get("snapshot") or {}).get("complete") is not None


def _kill(job: RunningJob, victim: str) -> None:
    directory = job.directory
    if victim == RUNNER:
        kill_hard(wait_until(lambda: runner_of(directory), what="the runner lives"))
    else:
        kill_hard(*wait_until(lambda: members(directory, MODULE), what="the process lives"))


def _check_rows(job: RunningJob, path: str, expected: dict[int, str | None], found: Round) -> None:
    """The rows of the records that have waited: one each, with the name at the topic's ends."""
    job.wait_output(path, len(expected), deadline_s=_EACH_S)
    job.wait_all_joined()
    rows = job.rig.rows(path)
    counted = Counter(row["item_id"] for row in rows)
    found.lost += len(expected.keys() - counted.keys())
    found.duplicate += sum(count - 1 for count in counted.values())
    found.wrong += sum(row["name"] != expected.get(row["item_id"]) for row in rows)


def _tables_differ(job: RunningJob, table: Table) -> list[str]:
    """Both folds against files and topic, once everything has arrived."""
    expected = table.rows()
    tables = job.directory / "tables" / "users"
    return tables_differ(tables, expected, partitions=_PARTITIONS, within_s=_EACH_S)
