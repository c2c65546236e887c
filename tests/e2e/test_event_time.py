"""The numeric examples of the sources, through SQL, Kafka and Spark: exactly their results.

A record carries the watermark that follows it in its column `wm`; with `on-event` it holds for the
next record. Each example is a bounded job of its own; two run at a time.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from service.jobs.inspect.past import open_replayer
from tests.support.rig import Rig, RunningJob, cdc_table
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, consume_json, create_topic, produce, unique_name
from tests.watermark.seed import VECTORS, millis
from watermark.model import MAX_TIMESTAMP

REST = pytest.mark.experiment
Row = dict[str, Any]
_KAFKA = "'connector'='kafka', 'format'='json'"
_UPSERT = "'connector'='upsert-kafka', 'key.format'='json', 'value.format'='json'"
_DEBEZIUM = "'connector'='kafka', 'format'='debezium-json'"
_DELTA = "'connector'='delta'"


@dataclass(frozen=True)
class Example:
    """One job: a stream of one partition, a window, a sink.

    Attributes:
        records: in the order of arrival.
        columns: of the stream, but for `ts` and `wm`, and of the sink.
        watermark: the expression of `WATERMARK FOR ts`.
        size: of the tumbling window.
        select: key and aggregates, named as the sink's columns.
        sink: connector and formats.
        lateness: `table.exec.emit.allow-lateness`, if any.
    """

    records: list[Row]
    columns: str
    watermark: str
    size: str
    key: str
    aggregate: str
    sink: str = _KAFKA
    lateness: str = ""


@dataclass(frozen=True)
class Result:
    """A row as it left: with the watermark that the sink had seen before it."""

    row: Row
    watermark_ms: int | None


@dataclass(frozen=True)
class Finished:
    """What became of a job.

    Attributes:
        late: the values of the records in the side output, in the order of arrival.
        status: at its end.
        replays: of all its batches.
    """

    results: list[Result]
    late: list[Row]
    status: Mapping[str, Any]
    letters: list[Row] = field(default_factory=list)
    replays: list[Row] = field(default_factory=list)

    def rows(self, *names: str) -> list[tuple[Any, ...]]:
        return [tuple(result.row[name] for name in names) for result in self.results]

    @property
    def watermarks(self) -> list[int | None]:
        return [result.watermark_ms for result in self.results]


# The examples
# --------------------------------------------------------------------------------------------------


def carried(vector: str) -> list[Row]:
    """The records of a vector of seed 000, each with the watermark that is injected behind it."""
    records: list[Row] = []
    for each in VECTORS[vector]["input"]:
        if "watermark" in each:
            records[-1]["wm"] = each["watermark"]
        else:
            records.append({"name": each["key"], "v": each["value"], "ts": each["event_time"]})
    return records


def seed_000(vector: str, sink: str) -> Example:
    lateness = VECTORS[vector]["allowed_lateness_ms"]
    return Example(
        carried(vector),
        "name STRING, v BIGINT",
        "wm",
        "INTERVAL '0.100' SECOND",
        "name",
        "SUM(v)",
        sink,
        f"{lateness} ms" if lateness else "",
    )


def at(time: str, **more: Any) -> Row:
    columns = {name: f"2024-03-01 {_padded(text)}" for name, text in {"ts": time, **more}.items()}
    return {"name": "Paris", "v": 1, **columns}


def _padded(time: str) -> str:
    hours, _, rest = time.partition(":")
    return f"{hours.zfill(2)}:{rest}" + (":00" if rest.count(":") == 0 else "")


def seed_002(times: list[str], watermark: str, sink: str = _KAFKA, lateness: str = "") -> Example:
    return Example(
        [at(time) for time in times],
        "name STRING, v BIGINT",
        watermark,
        "INTERVAL '5' MINUTE",
        "name",
        "COUNT(*)",
        sink,
        lateness,
    )


def seed_003() -> Example:
    """The watermark is where the log shows it: the greatest time so far less 5001 ms."""
    timeline = VECTORS["seed003/tumbling-1m-lateness-and-side-output"]["timeline"]
    records = [
        {**each["event"], "at": each["event"]["event_time"]} for each in timeline if "event" in each
    ]
    newest = 0
    for record in records:
        newest = max(newest, record["at"])
        record["ts"], record["wm"] = _instant(record["at"]), _instant(newest - 5_001)
    return Example(
        records,
        "word STRING, id BIGINT, `count` BIGINT, event_time BIGINT",
        "wm",
        "INTERVAL '1' MINUTE",
        "word",
        "COUNT(*), LISTAGG(CAST(id AS STRING))",
        _DEBEZIUM,
        "5 s",
    )


def _instant(at_ms: int) -> str:
    seconds, rest = divmod(at_ms, 1_000)
    days, second = divmod(seconds, 86_400)
    hour, minute = divmod(second // 60, 60)
    assert days == 19_239, "all of them are of one day"
    return f"2022-09-04 {hour:02}:{minute:02}:{second % 60:02}.{rest:03}"


FAR = "2999-01-01 00:00:00"
BAD: list[Row] = [
    {"ts": None},
    {},
    {"ts": FAR},
    {"ts": "soon"},
    {"ts": "2024-03-01 08:31:00", "wm": FAR},
]
HOUR = Example(
    [
        at("8:30", wm="9:00"),
        *({"name": "Paris", "v": 1, **bad} for bad in BAD),
        at("8:59:59.999"),
        {**at("9:10", wm="9:00:59.998"), "name": "Rome"},
        at("8:45", wm="9:00:59.999"),
        at("8:30"),
    ],
    "name STRING, v BIGINT",
    "wm",
    "INTERVAL '1' HOUR",
    "name",
    "COUNT(*)",
    _DELTA,
    "1 min",
)
MOO_0, MOO_2, ALLOWED = ("seed002/moo-0", "seed002/moo-2m", "seed002/allowed-lateness-2m")
LATENESS_0, LATENESS_10 = (
    "seed000/tumbling-100ms-lateness-0",
    "seed000/tumbling-100ms-lateness-10",
)
EXAMPLES: Mapping[str, Example] = {
    LATENESS_0: seed_000(LATENESS_0, _KAFKA),
    LATENESS_10: seed_000(LATENESS_10, _UPSERT),
    MOO_0: seed_002(["8:01", "8:03", "8:06", "8:02"], "ts"),
    MOO_2: seed_002(["8:01", "8:06", "8:03", "8:08", "8:02"], "ts - INTERVAL '2' MINUTE"),
    ALLOWED: seed_002(["8:01", "8:06", "8:02", "8:08", "8:03"], "ts", _UPSERT, "2 min"),
    "seed003": seed_003(),
    "hour": HOUR,
}


# Running them
# --------------------------------------------------------------------------------------------------


def script(rig: Rig, example: Example, topic: str, out: str, late: str) -> str:
    """The statements of the job."""
    servers = f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}'"
    key, aggregates = example.key, len(example.aggregate.split("),"))
    numbers = ["found BIGINT", "ids STRING"][:aggregates]
    place = f"'path'='{out}'" if example.sink == _DELTA else f"'topic'='{out}', {servers}"
    unique = f", PRIMARY KEY ({key}, done_at) NOT ENFORCED" if example.sink != _KAFKA else ""
    lateness = f"SET 'table.exec.emit.allow-lateness' = '{example.lateness}';"
    return (
        f"{lateness if example.lateness else ''}"
        f"CREATE TABLE events ({example.columns}, ts TIMESTAMP(3), wm TIMESTAMP(3), "
        f"WATERMARK FOR ts AS {example.watermark}) WITH ({_KAFKA}, 'topic'='{topic}', {servers}, "
        "'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset', "
        f"'scan.watermark.emit.strategy'='on-event', 'late-records.path'='{late}');"
        f"CREATE TABLE results ({key} STRING, done_at TIMESTAMP(3), {', '.join(numbers)}{unique}) "
        f"WITH ({example.sink}, {place});"
        f"INSERT INTO results SELECT {key}, window_time, {example.aggregate} "
        f"FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), {example.size})) "
        f"GROUP BY {key}, window_start, window_end, window_time;"
    )


def run(rig: Rig, example: Example) -> Finished:
    """Run the job to its end."""
    servers, late, out = rig.kafka.bootstrap_servers, unique_name("late"), unique_name("out")
    topic = create_topic(servers)
    if example.sink != _DELTA:
        create_topic(servers, out)
    produce(servers, topic, example.records)
    with rig.job(script(rig, example, topic, out, late)) as job:
        status = job.wait_state("FINISHED", deadline_s=400)
        letters = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
        results = delta_results(rig, out) if example.sink == _DELTA else topic_results(servers, out)
        return Finished(results, side_output(rig, late), status, letters, replayed(job))


def replayed(job: RunningJob) -> list[Row]:
    """Every batch again, with what differs."""
    newest = job.pins.newest()
    assert newest is not None
    with open_replayer(job.directory) as replayer:
        return [replayer.replay(batch, diff=True) for batch in range(newest.batch + 1)]


def side_output(rig: Rig, path: str) -> list[Row]:
    rows = sorted(rig.rows(path), key=lambda row: int(row["offset"]))
    return [{**orjson.loads(row["value"]), "told": row} for row in rows]


def delta_results(rig: Rig, path: str) -> list[Result]:
    rows = sorted(rig.rows(path), key=lambda row: (row["done_at"], row["name"]))
    return [Result({**row, "done_at": millis(str(row["done_at"]))}, None) for row in rows]


def topic_results(servers: str, topic: str) -> list[Result]:
    """What a consumer of the topic sees, in order; of a changelog the rows that are new."""
    found = []
    for record in consume(servers, topic):
        value = orjson.loads(record.value)
        row = value["after"] if "op" in value else value
        if row is not None:
            headers = dict(record.headers)
            row["done_at"] = millis(row["done_at"])
            found.append(Result(row, int(headers["sluice-watermark"])))
    return found


@pytest.fixture(scope="module")
def finished(rig: Rig, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Finished]]:
    """The examples by name, as they ended; those that selected tests name are begun at once."""
    with ThreadPoolExecutor(2) as pool:
        jobs: dict[str, Future[Finished]] = {}

        def ended(name: str) -> Future[Finished]:
            if name not in jobs:
                jobs[name] = pool.submit(run, rig, EXAMPLES[name])
            return jobs[name]

        calls = [getattr(item, "callspec", None) for item in request.session.items]
        for name in (call.params.get("name") for call in calls if call is not None):
            if isinstance(name, str) and name in EXAMPLES:
                ended(name)
        yield lambda name: ended(name).result()


# Seed 000
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [LATENESS_0, pytest.param(LATENESS_10, marks=REST)])
def test_the_table_of_seed_000_comes_out(finished: Callable[[str], Finished], name: str) -> None:
    """Sums, result times, the watermark that the sink had seen, and each verdict."""
    vector, done = VECTORS[name], finished(name)
    assert done.rows("name", "done_at", "found") == [
        (each["key"], millis(each["timestamp"]), each["sum"]) for each in vector["expected"]
    ]
    assert done.watermarks == [millis(each["logged_watermark"]) for each in vector["expected"]]
    dropped = [each for each in vector["verdicts"] if each["verdict"] == "dropped"]
    assert [row["v"] for row in done.late] == [each["value"] for each in dropped]
    assert [round(row["told"]["watermark"].timestamp() * 1_000) for row in done.late] == [
        millis(each["current_watermark"]) for each in dropped
    ]
    assert_nothing_is_left(done, late=len(dropped))


def assert_nothing_is_left(done: Finished, *, late: int) -> None:
    told = done.status["event_time"]
    assert told["watermark_ms"] == MAX_TIMESTAMP
    assert (told["waiting_rows"], told["window_rows"], told["late_records"]) == (0, 0, late)


# Seed 002
# --------------------------------------------------------------------------------------------------


def eight(time: str) -> int:
    return millis(str(at(time)["ts"]))


SEED_002 = {
    MOO_0: [("8:04:59.999", 2, "8:03"), ("8:09:59.999", 1, "8:06")],
    MOO_2: [("8:04:59.999", 2, "8:04"), ("8:09:59.999", 2, "8:06")],
    ALLOWED: [("8:04:59.999", 1, "8:01"), ("8:04:59.999", 2, "8:06"), ("8:09:59.999", 2, "8:08")],
}


@REST
@pytest.mark.parametrize("name", SEED_002)
def test_out_of_orderness_delays_the_result_and_lateness_repeats_it(
    finished: Callable[[str], Finished], name: str
) -> None:
    """The result leaves as the watermark moves from the one told to the one of the source."""
    done = finished(name)
    emitted = [each["emits"]["elements"] for each in VECTORS[name]["facts"] if each.get("emits")]
    assert [found for (found,) in done.rows("found")][: len(emitted)] == emitted
    assert done.rows("done_at", "found") == [(eight(t), n) for t, n, _ in SEED_002[name]]
    assert done.watermarks == [eight(seen) for _, _, seen in SEED_002[name]]
    assert [row["ts"] for row in done.late] == [EXAMPLES[name].records[-1]["ts"]]
    assert_nothing_is_left(done, late=1)


# Seed 003
# --------------------------------------------------------------------------------------------------


@REST
def test_the_log_of_seed_003_comes_out(finished: Callable[[str], Finished]) -> None:
    """Its watermarks are those of the operator, which a result's header tells one result later."""
    timeline = VECTORS["seed003/tumbling-1m-lateness-and-side-output"]["timeline"]
    fires = [each["fires"] for each in timeline if "fires" in each]
    done = finished("seed003")
    assert done.rows("word", "found", "ids") == [
        (each["word"], each["count"], ",".join(map(str, each["ids"]))) for each in fires
    ]
    # 1: id 8 moves it, 2: id 9 fires at once under it, 3: id 13 moves it, 4: the end.
    first, again, third, last = done.watermarks
    assert first == 1_662_303_784_887 - 5_001
    assert [again, again, last, done.status["event_time"]["watermark_ms"]] == [
        each["watermark"] for each in fires
    ]
    assert third == 1_662_303_795_918 - 5_001
    sides = [each["side_output"] for each in timeline if "side_output" in each]
    assert [[r["id"], r["word"], r["count"], r["event_time"]] for r in done.late] == sides
    assert_nothing_is_left(done, late=1)


@REST
def test_an_hour_with_a_minute_of_lateness_is_corrected_in_a_table(
    finished: Callable[[str], Finished],
) -> None:
    done = finished("hour")
    assert done.rows("name", "done_at", "found") == [
        ("Paris", eight("8:59:59.999"), 3),
        ("Rome", eight("9:59:59.999"), 1),
    ]
    assert [row["ts"] for row in done.late] == [at("8:30")["ts"]]
    assert_nothing_is_left(done, late=1)


@pytest.mark.parametrize(
    "name", [LATENESS_0, *(pytest.param(n, marks=REST) for n in EXAMPLES if n != LATENESS_0)]
)
def test_every_batch_can_be_replayed(finished: Callable[[str], Finished], name: str) -> None:
    """Appended, merged, sent as rows, as updates and as a changelog."""
    done = finished(name)
    assert [each["differences"] for each in done.replays] == [[]] * len(done.replays)
    assert {each["verdict"] for each in done.replays} <= {"identical", "nothing-to-compare"}
    sources = {each["compared_with"] for each in done.replays}
    assert sources == ({"changes"} if name == "hour" else {"topic"})
    assert sum(each["expected_rows"] for each in done.replays) >= len(done.results)


# Bad input
# --------------------------------------------------------------------------------------------------


@REST
def test_times_that_cannot_be_right_are_dead_letters_and_move_nothing(
    finished: Callable[[str], Finished],
) -> None:
    """They lie between the records of the hour, whose result is told above."""
    done = finished("hour")
    letters = sorted(done.letters, key=lambda one: one["offset"])
    assert [letter["offset"] for letter in letters] == [1, 2, 3, 4, 5]
    parts = ["NULL", "NULL", "ahead of the clock", "ts", "watermark of"]
    reasons = [letter["reason"] for letter in letters]
    assert [part for part, reason in zip(parts, reasons, strict=True) if part in reason] == parts
    assert done.status["probe"]["dead_letters"] == 5


# Joins
# --------------------------------------------------------------------------------------------------

SHOP = (
    "CREATE TABLE rates (currency VARCHAR(3) PRIMARY KEY, rate INT, updated_at DATETIME(3))",
    "INSERT INTO rates VALUES ('EUR', 110, '2024-03-01 08:00:00'), ('USD', 1, '2024-03-01 07:00')",
    "CREATE TABLE users (user_id BIGINT PRIMARY KEY, name VARCHAR(16))",
    "INSERT INTO users VALUES (1, 'ann')",
)
ORDERS: list[Row] = [
    {"id": 1, "ts": "2024-03-01 07:59:59.999"},
    {"id": 2, "ts": "2024-03-01 08:20:00"},
    {"id": 3, "ts": "2024-03-01 08:00:00"},
    {"id": 4, "ts": "2024-03-01 08:19:59.999", "wm": "2024-03-01 07:59:59.999"},
    {"id": 5, "ts": "2024-03-01 07:59:59.999"},
]


def orders_script(rig: Rig, schema: str, topic: str, late: str, out: str) -> str:
    """Orders with the rate of their own time, and the name that their user has now."""
    servers = f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}'"
    one = ("'changelog.partitions'='1'",)
    rates = (
        "currency STRING, rate INT, updated_at TIMESTAMP(3), PRIMARY KEY (currency) NOT ENFORCED, "
        "WATERMARK FOR updated_at AS updated_at"
    )
    users = "user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED"
    return (
        cdc_table(rig.mariadb, schema, "rates", rates, one)
        + cdc_table(rig.mariadb, schema, "users", users, one)
        + "CREATE TABLE orders (id BIGINT, currency STRING, user_id BIGINT, ts TIMESTAMP(3), "
        f"wm TIMESTAMP(3), WATERMARK FOR ts AS wm) WITH ({_KAFKA}, 'topic'='{topic}', {servers}, "
        "'scan.startup.mode'='earliest-offset', 'scan.bounded.mode'='latest-offset', "
        f"'scan.watermark.emit.strategy'='on-event', 'late-records.path'='{late}', "
        "'scan.max-records-per-batch'='4');"
        f"CREATE TABLE priced (id BIGINT, rate INT, name STRING) WITH ({_KAFKA}, 'topic'='{out}', "
        f"{servers});"
        "INSERT INTO priced SELECT o.id, r.rate, u.name FROM orders AS o "
        "LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON o.user_id = u.user_id;"
    )


@REST
def test_a_record_waits_for_the_version_of_its_time_and_meets_the_newest_row_without_versions(
    rig: Rig,
) -> None:
    servers, late = rig.kafka.bootstrap_servers, unique_name("late")
    topic, out = create_topic(servers), create_topic(servers)
    produce(servers, topic, [{**order, "currency": "EUR", "user_id": 1} for order in ORDERS])
    with (
        new_schema(rig.mariadb, *SHOP) as schema,
        rig.job(orders_script(rig, schema, topic, late, out)) as job,
    ):
        waiting = job.wait_for(lambda s: (s["event_time"] or {}).get("waiting_rows") == 2, "wait")
        assert "rates" in waiting["reason"]
        assert [row["id"] for row in consume_json(servers, out)] == [1, 3]
        before = waiting["versions"]["users"]
        run_sql(rig.mariadb, "UPDATE users SET name = 'anna'", schema=schema)
        job.wait_for(
            lambda s: all(
                found["index_version"] > before
                for found in s["dimensions"]
                if found["name"] == "users"
            ),
            "the other table's change can be looked up",
        )
        run_sql(
            rig.mariadb,
            "UPDATE rates SET rate = 120, updated_at = '2024-03-01 08:20:00' WHERE rate = 110",
            schema=schema,
        )
        job.wait_state("FINISHED", deadline_s=400)
        rows = [(row["id"], row["rate"], row["name"]) for row in consume_json(servers, out)]
        assert rows == [(1, None, "ann"), (3, 110, "ann"), (2, 120, "anna"), (4, 110, "anna")]
        (too_late,) = side_output(rig, late)
        assert (too_late["id"], too_late["told"]["reason"]) == (5, "join")


# Processing time behind a backlog
# --------------------------------------------------------------------------------------------------


def counts_script(rig: Rig, schema: str, topic: str, late: str, path: str) -> str:
    """Orders by the name that their user has now, counted in windows of two seconds."""
    servers = f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}'"
    users = "user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED"
    return (
        cdc_table(rig.mariadb, schema, "users", users, ("'changelog.partitions'='1'",))
        + "CREATE TABLE orders (user_id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ("
        f"{_KAFKA}, 'topic'='{topic}', {servers}, 'scan.startup.mode'='earliest-offset', "
        f"'late-records.path'='{late}', 'scan.watermark.use-processing-time'='after-backlog');"
        "CREATE VIEW named AS SELECT o.ts, u.name FROM orders AS o "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF o.ts AS u ON o.user_id = u.user_id;"
        "CREATE TABLE counted (name STRING, w TIMESTAMP(3), n BIGINT) WITH ('connector'='delta', "
        f"'path'='{path}');"
        "INSERT INTO counted SELECT name, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE named, "
        "DESCRIPTOR(ts), INTERVAL '2' SECOND)) GROUP BY window_start, window_end, name;"
    )


@REST
def test_behind_the_backlog_records_meet_the_newest_row_and_the_clock_fires_windows(
    rig: Rig,
) -> None:
    """One partition is empty, and no watermark reaches the end of the backlog's last window."""
    servers, late, path = rig.kafka.bootstrap_servers, unique_name("late"), unique_name("counted")
    topic = create_topic(servers, partitions=2)
    old = [{"user_id": 1, "ts": f"2024-03-01 08:{minute}:00"} for minute in ("00", "30")]
    produce(servers, topic, old, partition=0)
    with (
        new_schema(rig.mariadb, *SHOP) as schema,
        rig.job(counts_script(rig, schema, topic, late, path)) as job,
    ):
        rows = job.wait_output(path, 2, deadline_s=400)
        assert sorted((row["name"], row["n"], str(row["w"])[11:19]) for row in rows) == [
            ("ann", 1, "08:00:02"),
            ("ann", 1, "08:30:02"),
        ]
        job.wait_for(lambda s: (s["event_time"] or {}).get("use_processing_time"), "the switch")
        channels = rig.get(f"/v1/jobs/{job.id}/watermarks")["event_time"]["channels"]
        assert [(c["use_processing_time"], c["backlog_end"]) for c in channels] == [
            (True, 2),
            (True, 0),
        ]
        run_sql(rig.mariadb, "UPDATE users SET name = 'anna'", schema=schema)
        job.wait_for(
            lambda s: (
                s["dimensions"][0]["streamed_records"]
                and s["dimensions"][0]["index_version"] == s["dimensions"][0]["changelog_version"]
            ),
            "the new name is there",
        )
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        produce(servers, topic, [{"user_id": 1, "ts": now}, old[1]], partition=1)
        newest = job.wait_output(path, 3)
        (fired,) = (row for row in newest if row["name"] == "anna")
        assert (fired["n"], str(fired["w"])[:10]) == (1, now[:10])
        (too_late,) = side_output(rig, late)
        assert (too_late["ts"], too_late["told"]["reason"]) == (old[1]["ts"], "window")
