"""Windows from SQL to rows: planned, then run by the kernels of a batch, without Spark."""

import datetime as dt
from decimal import Decimal

import pytest

from joins.kernels.changelog.row_kinds import UPDATE_AFTER
from service.sql.planner.planner import plan
from tests.support.event_batches import EventJob

STREAM = """
CREATE TABLE s (k STRING, n INT, amount DECIMAL(8, 2), ts {time}, p AS PROCTIME(),
    WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'kafka', 'topic' = 's',
    'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
"""
BOUNDS = "GROUP BY window_start, window_end"
TUMBLE = "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
HOP = "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
NUMBERED = (
    "SELECT {of}, ROW_NUMBER() OVER (PARTITION BY window_start, window_end{key} ORDER BY {by}) AS x"
)
SESSION = "SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECOND)"


def at(second: float) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=second)  # noqa: DTZ001 - TIMESTAMP


def clicks(*rows: tuple[str | None, int | None, float]) -> list[dict[str, object]]:
    return [{"k": k, "n": n, "amount": n, "ts": at(second).isoformat(" ")} for k, n, second in rows]


LONGER = SESSION.replace("'4'", "'5.5'")
CLICKS = clicks(("a", 1, 1), ("b", 2, 3), ("a", 4, 6), ("a", None, 12), (None, 8, 13))
RESULTS = {
    "count_per_key": (
        "k STRING, x BIGINT",
        f"INSERT INTO o SELECT k, COUNT(*) FROM TABLE({TUMBLE}) {BOUNDS}, k",
        {("a", 2), ("b", 1), ("a", 1), (None, 1)},
    ),
    "bounds_and_expressions": (
        "a TIMESTAMP(3), b TIMESTAMP(3), c TIMESTAMP(3), d BIGINT",
        "INSERT INTO o SELECT window_start, window_end, window_time + INTERVAL '1' MINUTE, "
        f"SUM(n) / COUNT(n) FROM TABLE({TUMBLE}) {BOUNDS}",
        {(at(0), at(10), at(69.999), 2), (at(10), at(20), at(79.999), 8)},
    ),
    "aggregates": (
        "a BIGINT, b INT, c DECIMAL(38, 6), d INT, e INT, f STRING, g BIGINT",
        "INSERT INTO o SELECT COUNT(n), AVG(n), AVG(amount), MIN(n), MAX(n), LISTAGG(k, '-'), "
        f"COUNT(DISTINCT k) FROM TABLE({TUMBLE}) {BOUNDS}",
        {
            (3, 2, Decimal("2.333333"), 1, 4, "a-b-a", 2),
            (1, 8, Decimal("8.000000"), 8, 8, "a", 1),
        },
    ),
    "top_n_of_rows": (
        "a TIMESTAMP(3), k STRING, n INT, x BIGINT",
        "INSERT INTO o SELECT window_start, k, n, x FROM "
        f"({NUMBERED.format(of='*', key='', by='n DESC')} FROM TABLE({TUMBLE})) WHERE x <= 2",
        {(at(0), "a", 4, 1), (at(0), "b", 2, 2), (at(10), None, 8, 1), (at(10), "a", None, 2)},
    ),
    "top_n_of_rows_without_the_first": (
        "a TIMESTAMP(3), k STRING, n INT, x BIGINT",
        "INSERT INTO o SELECT window_start, k, n, x FROM "
        f"({NUMBERED.format(of='*', key='', by='n NULLS LAST')} FROM TABLE({TUMBLE})) "
        "WHERE x BETWEEN 2 AND 3 AND k IS NOT NULL",
        {(at(0), "b", 2, 2), (at(0), "a", 4, 3), (at(10), "a", None, 2)},
    ),
    "newest_row_of_a_key_and_window": (
        "a TIMESTAMP(3), k STRING, n INT",
        "INSERT INTO o SELECT window_start, k, n FROM "
        f"({NUMBERED.format(of='*', key=', k', by='ts DESC')} FROM TABLE({TUMBLE})) WHERE x = 1",
        {(at(0), "a", 4), (at(0), "b", 2), (at(10), "a", None), (at(10), None, 8)},
    ),
    "top_n_of_results": (
        "a TIMESTAMP(3), k STRING, n INT, x BIGINT",
        "INSERT INTO o SELECT window_start, k, total, x FROM "
        f"({NUMBERED.format(of='*', key='', by='total DESC')} FROM (SELECT window_start, "
        f"window_end, k, SUM(n) AS total FROM TABLE({TUMBLE}) {BOUNDS}, k)) WHERE x < 2",
        {(at(0), "a", 5, 1), (at(10), None, 8, 1)},
    ),
    "top_n_beside_group_by": (
        "k STRING, x BIGINT",
        f"INSERT INTO o SELECT k, x FROM ({NUMBERED.format(of='k', key='', by='COUNT(*) DESC, k')} "
        f"FROM TABLE({HOP}) {BOUNDS}, k HAVING window_start = TIMESTAMP '1970-01-01 00:00:00') "
        "WHERE x <= 2",
        {("a", 1), ("b", 2)},
    ),
    "top_n_of_a_session": (
        "k STRING, a TIMESTAMP(3), n INT",
        "INSERT INTO o SELECT k, window_start, n FROM "
        f"({NUMBERED.format(of='*', key=', k', by='n')} FROM TABLE({LONGER})) "
        "WHERE x = 1 AND k IS NOT NULL",
        {("a", at(1), 1), ("a", at(12), None), ("b", at(3), 2)},
    ),
    "session_without_aggregates": (
        "k STRING, n INT, a TIMESTAMP(3), b TIMESTAMP(3), c TIMESTAMP(3)",
        "INSERT INTO o SELECT k, n + 1, window_start, window_end, window_time FROM "
        f"TABLE({LONGER}) WHERE n > 0",
        {
            ("a", 2, at(1), at(11.5), at(11.499)),
            ("a", 5, at(1), at(11.5), at(11.499)),
            ("b", 3, at(3), at(8.5), at(8.499)),
            (None, 9, at(13), at(18.5), at(18.499)),
        },
    ),
    "rollup": (
        "a TIMESTAMP(3), k STRING, n INT, g BIGINT, x BIGINT",
        "INSERT INTO o SELECT window_start, k, n, GROUPING_ID(k, n), COUNT(*) "
        f"FROM TABLE({TUMBLE}) {BOUNDS}, ROLLUP (k, n)",
        {
            (at(0), "a", 1, 0, 1),
            (at(0), "a", 4, 0, 1),
            (at(0), "b", 2, 0, 1),
            (at(0), "a", None, 1, 2),
            (at(0), "b", None, 1, 1),
            (at(0), None, None, 3, 3),
            (at(10), "a", None, 0, 1),
            (at(10), None, 8, 0, 1),
            (at(10), "a", None, 1, 1),
            (at(10), None, None, 1, 1),
            (at(10), None, None, 3, 2),
        },
    ),
    "grouping_sets_count_values_of_keys_that_they_lack": (
        "k STRING, x BIGINT, y INT, g BIGINT",
        "INSERT INTO o SELECT k, COUNT(k), SUM(n), GROUPING(k) "
        f"FROM TABLE({HOP}) {BOUNDS}, GROUPING SETS ((k), ()) HAVING window_start = TIMESTAMP "
        "'1970-01-01 00:00:05'",
        {("a", 2, 4, 0), (None, 0, 8, 0), (None, 2, 12, 1)},
    ),
    "equal_grouping_sets_have_a_row_each": (
        "x BIGINT, y BIGINT",
        "INSERT INTO o SELECT GROUP_ID(), COUNT(*) "
        f"FROM TABLE({TUMBLE}) WHERE n > 4 {BOUNDS}, GROUPING SETS ((), ())",
        {(0, 1), (1, 1)},
    ),
    "filter_and_having": (
        "k STRING, x INT",
        f"INSERT INTO o SELECT k, SUM(n) FILTER (WHERE n > 1) FROM TABLE({TUMBLE}) "
        f"{BOUNDS}, k HAVING COUNT(*) > 1",
        {("a", 4)},
    ),
    "where_of_rows_and_view_of_results": (
        "k STRING, x BIGINT",
        "INSERT INTO o SELECT UPPER(k), found FROM results WHERE found < 2",
        {("B", 1)},
    ),
    "hop": (
        "a TIMESTAMP(3), x BIGINT",
        f"INSERT INTO o SELECT window_start, COUNT(*) FROM TABLE({HOP}) {BOUNDS}",
        {(at(-5), 2), (at(0), 3), (at(5), 3), (at(10), 2)},
    ),
    "sessions_per_key": (
        "k STRING, a TIMESTAMP(3), b TIMESTAMP(3), x BIGINT",
        f"INSERT INTO o SELECT k, window_start, window_end, COUNT(*) FROM TABLE({SESSION}) "
        f"{BOUNDS}, k",
        {
            ("a", at(1), at(5), 1),
            ("a", at(6), at(10), 1),
            ("a", at(12), at(16), 1),
            ("b", at(3), at(7), 1),
            (None, at(13), at(17), 1),
        },
    ),
}
RESULT_VIEW = (
    f"CREATE VIEW results AS SELECT k, COUNT(*) AS found FROM TABLE({TUMBLE}) WHERE n > 0 "
    f"{BOUNDS}, k HAVING k IS NOT NULL;"
)


def job(columns, query, root, *, time="TIMESTAMP(3)", sink="'connector' = 'blackhole'"):
    out = f"CREATE TABLE o ({columns}) WITH ({sink});"
    return EventJob(plan(f"{STREAM.format(time=time)}{RESULT_VIEW}{out}{query};"), root)


@pytest.mark.parametrize("time", ["TIMESTAMP(3)", "TIMESTAMP(0)"])
@pytest.mark.parametrize(("columns", "query", "expected"), RESULTS.values(), ids=RESULTS)
def test_windows_have_the_results_of_their_query(columns, query, expected, time, tmp_path):
    running = job(columns, query, tmp_path, time=time)
    rows = running.run({0: CLICKS[:3], 1: CLICKS[3:]}).rows
    rows += running.run({}, upto=60_000).rows
    assert set(rows) == expected
    assert len(rows) == len(expected)


@pytest.mark.parametrize("sizes", [[6], [1] * 6, [2, 4], [3, 1, 2]])
@pytest.mark.parametrize("partitions", [[0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 0, 1]])
def test_a_cumulative_window_grows_over_steps_without_rows(sizes, partitions, tmp_path):
    running = job(
        "a TIMESTAMP(3), b TIMESTAMP(3), x BIGINT",
        "INSERT INTO o SELECT window_start, window_end, COUNT(*) FROM TABLE(CUMULATE(TABLE s, "
        f"DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)) {BOUNDS}",
        tmp_path,
    )
    left = list(zip(partitions, clicks(*(("a", 1, at) for at in (0, 1, 4, 5, 9, 10))), strict=True))
    rows = []
    for size in sizes:
        arrived, left = left[:size], left[size:]
        rows += running.run({p: [row for at, row in arrived if at == p] for p in (0, 1)}).rows
    rows += running.run({}, upto=60_000).rows
    counts = {2: 2, 4: 2, 6: 4, 8: 4, 10: 5}
    assert sorted(rows) == [
        *((at(0), at(end), count) for end, count in counts.items()),
        *((at(10), at(end), 1) for end in range(12, 21, 2)),
    ]


def test_a_window_follows_the_watermark_and_late_rows_are_told(tmp_path):
    running = job(*RESULTS["count_per_key"][:2], tmp_path)
    both = clicks(("a", 1, 11))
    assert running.run({0: both, 1: both}).rows == []
    assert running.watermark_ms == 10_000
    late = running.run({0: clicks(("a", 1, 2)), 1: clicks(("b", 1, 10))})
    assert [row["offset"] for row in late.late] == [1]
    assert sorted(running.run({}, upto=20_000).rows) == [("a", 2), ("b", 1)]


def test_an_instant_has_bounds_without_a_zone(tmp_path):
    query = f"INSERT INTO o SELECT window_start, window_time FROM TABLE({TUMBLE}) {BOUNDS}"
    columns = "a TIMESTAMP(3), b TIMESTAMP_LTZ(3)"
    running = job(columns, query, tmp_path, time="TIMESTAMP_LTZ(3)")
    stamped = [{**row, "ts": f"{row['ts']}Z"} for row in CLICKS[:1]]
    running.run({0: stamped})
    expected = [(at(0), at(9.999).replace(tzinfo=dt.UTC))]
    assert running.run({}, upto=60_000).rows == expected


def test_processing_time_is_the_clock_of_the_batch(tmp_path):
    query = (
        f"INSERT INTO o SELECT window_start, COUNT(*) FROM TABLE({TUMBLE.replace('(ts)', '(p)')}) "
        f"{BOUNDS}"
    )
    running = job("a TIMESTAMP(3), x BIGINT", query, tmp_path)
    rows = [running.run({0: CLICKS[:2]}).rows, running.run({1: CLICKS[2:]}).rows]
    for _ in range(10):
        rows.append(running.run({}).rows)
    (found,) = [row for each in rows for row in each]
    assert found == (at(1_000), 5)


UPSERT = (
    "'connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:9092', "
    "'key.format' = 'json', 'value.format' = 'json'"
)


def test_a_late_row_gives_an_update_within_the_lateness(tmp_path):
    running = job(
        "k STRING, at TIMESTAMP(3), x BIGINT, PRIMARY KEY (k, at) NOT ENFORCED",
        "SET 'table.exec.emit.allow-lateness' = '5 s'; INSERT INTO o SELECT k, window_start, "
        f"COUNT(*) FROM TABLE({TUMBLE}) {BOUNDS}, k",
        tmp_path,
        sink=UPSERT,
    )
    fired = running.run({0: clicks(("a", 1, 1), ("a", 1, 12)), 1: clicks(("c", 1, 12))})
    assert fired.rows == [("a", at(0), 1)]
    again = running.run({0: clicks(("a", 1, 2))})
    assert again.rows == [("a", at(0), 2)]
    assert again.kinds == [UPDATE_AFTER]
    gone = running.run({0: clicks(("a", 1, 2))}, upto=15_000)
    assert gone.rows == [("a", at(0), 3)]
    assert len(running.run({0: clicks(("a", 1, 2))}).late) == 1
