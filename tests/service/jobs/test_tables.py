"""What an inspection tells of a job's tables: keys as texts, cursors, exact values, the output."""

import base64
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from joins.plan.errors import (
    NotReadableError,
    QuestionError,
    UnknownDimensionError,
    UnknownVersionError,
)
from service.jobs.inspect import table_answers, tables
from service.jobs.inspect.tables import JobTables
from service.sql.planner.planner import plan_script
from tests.support.table_job import PRICE, TableJob, place, script, user


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("data")
    made = TableJob(data_dir, "job-1").write(data_dir).start()
    made.change("users", *(user(key, f"user {key}", "r", 5, key) for key in (1, 2, 3)))
    made.change("users", user(None, None, "w", 9, 4))
    made.change("users", user(1, "renamed", "u", 10, 5), user(2, None, "d", 11, 6))
    rows = [
        {**PRICE, "item": item, "country": c, **place("r", 1, item)}
        for item, c in ((7, "DE"), (8, "DE"), (7, "FR"))
    ]
    made.change("prices", *rows, {**dict.fromkeys(PRICE), **place("w", 2, 20)})
    made.batch(0, {"user_id": 1, "name": "user 1"}, {"user_id": 2, "name": "user 2"}, users=2)
    made.batch(1, users=2)
    made.batch(2, {"user_id": 3, "name": "user 3", "price": Decimal("1.10")}, users=3)
    return made


@pytest.fixture
def ask(job):
    tables = JobTables(job.directory)

    def asked(what, table="users", **more):
        return tables.answer({"what": what, "table": table, "limit": 100, **more})

    return asked


def keys_of(found):
    return [tuple(item["key"].values()) for item in found["items"]]


def test_dimensions_tell_their_columns_and_versions(ask):
    users, prices = ask("dimensions")["items"]
    assert (users["table"], users["source"], users["primary_key"]) == (
        "users",
        "mysql-cdc",
        ["user_id"],
    )
    assert [users[n] for n in ("version", "oldest_version", "pinned_version", "complete")] == [
        3,
        0,
        3,
        True,
    ]
    kinds = [column["type"] for column in prices["columns"]]
    assert kinds[:3] == ["STRING", "BIGINT", "DECIMAL(10, 2)"]
    assert prices["pinned_version"] is None


def test_a_job_that_never_ran_has_dimensions_without_versions(tmp_path):
    job = TableJob(tmp_path, "job-2").write(tmp_path)
    tables = JobTables(job.directory)
    found = tables.answer({"what": "dimensions"})["items"]
    assert [(d["version"], d["complete"]) for d in found] == [(None, False)] * 2
    with pytest.raises(UnknownVersionError, match="no version yet"):
        tables.answer({"what": "rows", "table": "users", "limit": 1})
    assert tables.answer({"what": "preview", "limit": 5})["items"] == []


def test_values_of_all_types_are_exact(ask):
    row = ask("rows", "prices", keys=['["DE",7]'])["items"][0]["values"]
    assert row == {
        "country": "DE",
        "item": 7,
        "price": "12.50",
        "weight": 0.1,
        "small": 0.1,
        "made": "2026-11-21",
        "opens": "06:07:08.000009",
        "seen": "2026-11-21T06:07:08.000009",
        "changed": "2026-11-21T06:07:08.000009Z",
        "raw": "/wA=",
        "ok": True,
    }


def test_rows_of_keys_at_a_version_and_why_others_have_none(ask):
    then, now = ask("rows", keys=["2", "9", "2"], version=2), ask("rows", keys=["2", "9"])
    assert [item["values"]["name"] for item in then["items"]] == ["user 2"]
    assert (then["version"], then["newest_version"], then["complete"]) == (2, 3, True)
    assert [(a["key"]["user_id"], a["reason"]) for a in now["absent"]] == [
        (2, "deleted"),
        (9, "no-record"),
    ]
    assert now["absent"][0]["position"] == {"epoch": 0, "file": 1, "pos": 11, "row": 0}


def test_composite_keys_are_arrays_or_objects_and_no_cross_product(ask):
    given = ['["DE",8]', '{"item":7,"country":"FR"}', '["FR",8]']
    found = ask("rows", "prices", keys=given)
    assert keys_of(found) == [("DE", 8), ("FR", 7)]
    assert [a["key"] for a in found["absent"]] == [{"country": "FR", "item": 8}]


def test_pages_stay_in_their_version(ask, job):
    first = ask("rows", "prices", limit=2)
    assert keys_of(first) == [("DE", 7), ("DE", 8)]
    job.change("prices", {**PRICE, "item": 9, **place("c", 30, 30)})
    second = ask("rows", "prices", limit=2, cursor=first["next_cursor"])
    assert (keys_of(second), second["next_cursor"]) == ([("FR", 7)], None)
    assert second["version"] < second["newest_version"]


def test_a_page_that_is_too_long_as_json_goes_on_behind_its_last_row(ask, monkeypatch):
    monkeypatch.setattr(table_answers, "PAGE_BYTES", 200)
    pages, cursor = [], None
    while not pages or cursor is not None:
        found = ask("rows", version=2 if cursor is None else None, cursor=cursor)
        pages.append([key for (key,) in keys_of(found)])
        cursor = found["next_cursor"]
    assert pages == [[1], [2], [3]]
    first = ask("changes", **{"from": 0, "to": 2})
    second = ask("changes", cursor=first["next_cursor"], **{"from": None})
    assert (keys_of(first), keys_of(second)) == ([(1,)], [(2,)])


def test_changes_between_two_versions_by_page(ask):
    first = ask("changes", **{"from": 2, "limit": 1})
    assert [(i["change"], i["before"]["name"], i["after"]["name"]) for i in first["items"]] == [
        ("update", "user 1", "renamed")
    ]
    second = ask("changes", cursor=first["next_cursor"], **{"from": None})
    assert [(i["change"], i["before"]["name"], i["after"]) for i in second["items"]] == [
        ("delete", "user 2", None)
    ]
    assert (second["from_version"], second["to_version"], second["next_cursor"]) == (2, 3, None)


def test_rows_and_changes_as_arrow_have_the_types_of_the_table(ask):
    stream = pa.ipc.open_stream(base64.b64decode(ask("rows", "prices", arrow=True)["arrow"]))
    table = stream.read_all()
    assert table.schema.field("price").type == pa.decimal128(10, 2)
    assert table.column("raw").to_pylist()[0] == b"\xff\x00"
    changed = ask("changes", arrow=True, **{"from": 2})["arrow"]
    rows = pa.ipc.open_stream(base64.b64decode(changed)).read_all()
    assert rows.column("_change_type").to_pylist() == [
        "update_preimage",
        "update_postimage",
        "delete",
    ]


def test_the_history_of_a_key_by_page(ask):
    first = ask("history", key="2", limit=1)
    assert [(i["version"], i["change"], i["reason"], i["after"]) for i in first["items"]] == [
        (3, "delete", "deleted", None)
    ]
    assert first["items"][0]["position"] == {"epoch": 0, "file": 1, "pos": 11, "row": 0}
    assert (first["key"], first["beginning"]) == ({"user_id": 2}, None)
    pages = [first]
    while pages[-1]["next_cursor"] is not None:
        pages.append(ask("history", cursor=pages[-1]["next_cursor"], limit=1))
    items = [item for page in pages for item in page["items"]]
    assert [(i["version"], i["change"], i["records"]) for i in items] == [
        (3, "delete", 1),
        (1, "insert", 1),
    ]
    assert items[-1]["after"] == {"user_id": 2, "name": "user 2"}
    nothing = {"values": None, "reason": "no-record", "position": None, "source_ts_ms": None}
    assert pages[-1]["beginning"] == {"version": 0, **nothing}
    assert {(page["version"], page["oldest_version"]) for page in pages} == {(3, 0)}


def test_the_history_of_a_composite_key_has_exact_values(ask):
    (item,) = ask("history", "prices", key='{"item":8,"country":"DE"}')["items"]
    assert (item["before"], item["after"]["price"]) == (None, "12.50")
    assert item["committed_at_ms"] > 0


def test_a_history_that_is_too_long_as_json_goes_on_below_its_last_version(ask, monkeypatch):
    monkeypatch.setattr(tables, "fitting", lambda items: min(1, len(items)))
    first = ask("history", key="1")
    second = ask("history", cursor=first["next_cursor"])
    assert [[i["version"] for i in page["items"]] for page in (first, second)] == [[3], [1]]
    assert (first["beginning"], second["next_cursor"]) == (None, None)


def _cursor(table="users", version="3"):
    text = f'{{"t": "{table}", "v": [{version}], "k": ["1"]}}'
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


CURSOR = _cursor()
WRONG = {
    "table": ("rows", {"table": "nobody"}, UnknownDimensionError, '"users", "prices"'),
    "version": ("rows", {"version": 99}, UnknownVersionError, "up to 3"),
    "key_of_another_type": ("rows", {"keys": ["one"]}, QuestionError, "user_id"),
    "key_of_one_column": ("rows", {"table": "prices", "keys": ["7"]}, QuestionError, "country"),
    "key_with_null": ("rows", {"table": "prices", "keys": ["[null,7]"]}, QuestionError, "part"),
    "cursor": ("rows", {"cursor": "e30"}, QuestionError, "cursor"),
    "cursor_of_another_question": ("changes", {"cursor": CURSOR}, QuestionError, "cursor"),
    "cursor_of_another_table": (
        "rows",
        {"table": "prices", "cursor": CURSOR},
        QuestionError,
        "cursor",
    ),
    "cursor_of_a_table_with_an_equal_key": (
        "rows",
        {"cursor": _cursor("orders")},
        QuestionError,
        "cursor",
    ),
    "cursor_without_end": ("rows", {"cursor": _cursor(version="1e999")}, QuestionError, "cursor"),
    "cursor_of_a_later_version": (
        "rows",
        {"cursor": _cursor(version="9" * 30)},
        UnknownVersionError,
        "up to 3",
    ),
    "cursor_of_a_history": ("history", {"cursor": CURSOR}, QuestionError, "cursor"),
    "history_of_no_key": ("history", {"key": "one"}, QuestionError, "user_id"),
    "versions_reversed": ("changes", {"from": 3, "to": 2}, QuestionError, "before"),
}


@pytest.mark.parametrize(("what", "more", "error", "told"), WRONG.values(), ids=WRONG)
def test_a_question_that_makes_no_sense_is_refused_with_a_hint(ask, what, more, error, told):
    with pytest.raises(error, match=told) as caught:
        ask(what, **{"from": None, **more})
    assert caught.value.hint.endswith(".")


def test_the_preview_has_the_newest_rows_with_the_pins_of_their_batches(ask):
    found = ask("preview", limit=2)
    assert [(i["batch"], i["values"]["name"]) for i in found["items"]] == [
        (2, "user 3"),
        (0, "user 2"),
    ]
    assert found["items"][0]["values"]["price"] == "1.10"
    newest = found["batches"][0]
    assert (newest["batch"], newest["rows"], newest["counts"]) == (2, 1, {"joined": 1})
    assert newest["pin"]["versions"] == {"users": 3}
    assert [b["batch"] for b in found["batches"]] == [2, 0]


def test_the_preview_as_arrow(ask):
    stream = base64.b64decode(ask("preview", limit=10, arrow=True)["arrow"])
    rows = pa.ipc.open_stream(stream).read_all()
    assert rows.column("_offset").to_pylist() == [20, 0, 1]


SINKS = {
    "kafka": (
        "'connector'='kafka','topic'='o','properties.bootstrap.servers'='k:1','format'='json'",
        "consumer",
    ),
    "print": ("'connector'='print'", "log"),
    "blackhole": ("'connector'='blackhole'", "delta"),
}


@pytest.mark.parametrize(("sink", "hint"), SINKS.values(), ids=SINKS)
def test_a_sink_without_a_table_cannot_be_shown_and_says_where_rows_are(tmp_path, sink, hint):
    job = TableJob(tmp_path, "job-3", plan_script(script(sink)).plan).write(tmp_path)
    with pytest.raises(NotReadableError, match="sink") as told:
        JobTables(job.directory).answer({"what": "preview", "limit": 1})
    assert hint in told.value.hint


def test_rows_that_replace_others_are_not_shown_by_batch(tmp_path):
    plan = plan_script(script("'connector'='delta','path'='o'")).plan
    merges = replace(plan, sink=replace(plan.sink, merge_key=("user_id",)))
    job = TableJob(tmp_path, "job-4", merges).write(tmp_path)
    with pytest.raises(NotReadableError, match="newest row of each key") as told:
        JobTables(job.directory).answer({"what": "preview", "limit": 1})
    assert "Read the table" in told.value.hint
