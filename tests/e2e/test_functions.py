"""Each function that Flink's tests have a value of, in one job: workers give what they give here.

The machine's own time zone is neither that of the session nor UTC.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from joins.kernels.json.encode import encode_objects, with_text_times
from joins.plan.types import arrow_type
from service.sql.expressions.functions import NAMES
from service.sql.expressions.scope import Typed
from service.sql.grammar.type_parser import type_text, unfit
from tests.support.expressions import evaluated, planned, sql_type
from tests.support.flink_cases import Verdict, cases, columns_of, outcome
from tests.support.rig import Rig, kafka_table
from tests.support.topics import create_topic, produce, unique_name

SESSION, MACHINE = "Asia/Shanghai", "America/New_York"
CALL = re.compile(r"([A-Za-z_]\w*)`?\s*\(")
NOT_OF_ITS_OWN = frozenset({"CASE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"}) | {
    *("LOCALTIME", "LOCALTIMESTAMP", "PROCTIME", "UNIX_TIMESTAMP", "FROM_UNIXTIME"),
    *("JSON_EXISTS", "JSON_LENGTH", "JSON_VALUE", "OVERLAY", "MAP_ENTRIES", "MAP_FROM_ARRAYS"),
    "URL_DECODE_RECURSIVE",
}
"""What has no case that is data, or whose value is that of the moment."""
ALSO = {
    """JSON_VALUE('{"a": 42}', '$.a' RETURNING INT)""": "42",
    """JSON_EXISTS('{"a": 42}', 'lax $.b')""": "FALSE",
    "JSON_LENGTH('[1, 2]')": "2",
    "OVERLAY('abcdef' PLACING '-' FROM 3 FOR 2)": "ab-ef",
    "MAP_FROM_ARRAYS(ARRAY['a'], ARRAY[1])": "{a=1}",
    "FROM_UNIXTIME(0)": "1970-01-01 08:00:00",
    "UNIX_TIMESTAMP('1970-01-01 08:00:01')": "1",
    "CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING)": "1970-01-01 08:00:00.000",
    "DATE_FORMAT(TO_TIMESTAMP_LTZ(0, 3), 'HH:mm')": "08:00",
    "CASE WHEN REGEXP('abc', '^a(?i)B') THEN 'yes' END": "yes",
}
"""Expressions whose text is known."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An expression whose columns have names of their own, and what it gives here."""

    text: str
    types: Mapping[str, str]
    values: Mapping[str, pa.Array]
    typed: Typed

    @property
    def here(self) -> Any:
        (value,) = evaluated(self.typed, self.values).values.to_pylist()
        return value


def samples() -> Iterator[Sample]:
    """An expression of each function that has one with Flink's value in the session's zone."""
    missing = set(NAMES) - NOT_OF_ITS_OWN
    for number, case in enumerate(sorted(cases(), key=lambda case: not _reads(case))):
        names = {name.upper() for name in CALL.findall(case["expr"])} & missing
        sample = _sample(case, number) if names else None
        if sample is not None:
            missing -= names
            yield sample
    assert not missing, "each function has a case"


def _reads(case: Mapping[str, Any]) -> bool:
    return bool(re.search(r"\bf\d+\b", case["expr"]))


def _sample(case: Mapping[str, Any], number: int) -> Sample | None:
    here = {**case, "zone": SESSION}
    if case.get("zone", SESSION) != SESSION or case.get("fails"):
        return None
    if outcome(here).verdict is not Verdict.AGREES:
        return None
    columns = columns_of(case)
    names = {name: f"c{number}_{name}" for name in columns}
    types = {names[name]: text.replace(" NOT NULL", "") for name, (text, _) in columns.items()}
    words = re.compile(r"\b(" + "|".join(names) + r")\b") if names else None
    text = case["expr"] if words is None else words.sub(lambda m: names[m[0]], case["expr"])
    typed = planned(text, types, SESSION)
    if any(unfit(kind) for kind in (typed.type, *map(sql_type, types.values()))):
        return None
    values = {
        names[name]: pa.array([value], arrow_type(sql_type(kind)))
        for name, (kind, value) in columns.items()
    }
    return Sample(text, types, values, typed)


def test_workers_give_what_flink_gives_in_the_zone_of_the_session(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", MACHINE)
    servers, path = rig.kafka.bootstrap_servers, unique_name("functions")
    topic = create_topic(servers)
    chosen = list(samples())
    values = {name: value for sample in chosen for name, value in sample.values.items()}
    kinds_of_values = [sql_type(kind) for sample in chosen for kind in sample.types.values()]
    rows = with_text_times(pa.RecordBatch.from_pydict(values), kinds_of_values)
    (record,) = encode_objects(rows).to_pylist()
    produce(servers, topic, [record.encode()])
    columns = ", ".join(f"{n} {kind}" for s in chosen for n, kind in s.types.items())
    texts = [*(sample.text for sample in chosen), *(f"CAST({text} AS STRING)" for text in ALSO)]
    kinds = [*(type_text(sample.typed.type) for sample in chosen), *("STRING" for _ in ALSO)]
    sink = ", ".join(f"x{at} {kind}" for at, kind in enumerate(kinds))
    sql = (
        f"SET 'table.local-time-zone' = '{SESSION}';"
        + kafka_table(rig.kafka, "s", topic, columns)
        + f"CREATE TABLE o ({sink}) WITH ('connector'='delta', 'path'='{path}');"
        f"INSERT INTO o SELECT {', '.join(texts)} FROM s;"
    )
    with rig.job(sql) as job:
        job.wait_for(lambda status: (status["probe"] or {}).get("lag_records") == 0, "it is read")
        letters = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
        assert [letter["reason"] for letter in letters] == []
        (row,) = rig.rows(path)
    wrong = {
        sample.text: (row[f"x{at}"], sample.here)
        for at, sample in enumerate(chosen)
        if row[f"x{at}"] != sample.here
    }
    assert wrong == {}
    known = {text: row[f"x{len(chosen) + at}"] for at, text in enumerate(ALSO)}
    assert known == ALSO
