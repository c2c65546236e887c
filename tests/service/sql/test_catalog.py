"""One file per case over one catalog: its first line says what must come of it.

`-- plan: A | B`: each of these lines is in the explanation of the plan. `-- declares: A | B`: the
entries that the catalog gets. `-- error: text`: the script is refused so.
"""

import pytest

from joins.plan.plan import SharedSource
from service.jobs.store import plan_codec
from service.sql.answers.answers import Declared, answers, columns_of, plan_declarations, used_by
from service.sql.answers.explain import explain
from service.sql.planner.planner import plan, plan_script
from service.sql.stored import CatalogEntry, EntryKind
from service.sql.text.script import SqlError
from tests.support.stored import CATALOG, STORED_CASES, refusal_over_the_catalog


def _of(kind: str) -> dict[str, str]:
    return {name: text for name, text in STORED_CASES.items() if text.startswith(f"-- {kind}: ")}


def _expected(text: str) -> list[str]:
    return text.partition("\n")[0].partition(": ")[2].split(" | ")


def test_every_case_says_what_must_come_of_it():
    assert len(_of("plan")) + len(_of("declares")) + len(_of("error")) == len(STORED_CASES) > 25


@pytest.mark.parametrize("text", _of("plan").values(), ids=_of("plan"))
def test_a_script_is_planned_with_what_it_names_of_the_catalog(text):
    made = plan(text, catalog=CATALOG)
    lines = explain(made)
    assert [line for line in _expected(text) if line not in lines] == [], "\n".join(lines)
    assert plan_codec.load(plan_codec.dump(made)) == made
    assert made.sql == text


@pytest.mark.parametrize(("name", "text"), _of("error").items(), ids=_of("error"))
def test_a_script_is_refused(name, text):
    error = refusal_over_the_catalog(name, text)
    assert error is not None
    assert _expected(text)[0] in f"{error.message} {error.hint}"
    assert error.hint.endswith((".", "?")), error.hint
    assert error.line <= text.count("\n") + 1, "the place is in the script, not behind it"


@pytest.mark.parametrize("text", _of("declares").values(), ids=_of("declares"))
def test_a_script_declares_for_later_ones(text):
    declared, _ = plan_declarations(text, CATALOG)
    assert [_told(one) for one in declared] == _expected(text)
    entries = (*CATALOG, *(one.entry for one in declared))
    for one in declared:
        assert columns_of(one.entry) == (one.fields, one.primary_key)
        assert "open sesame" not in one.entry.sql
        rows = answers(f"DESCRIBE {one.entry.name}", None, entries)[0].rows
        assert [row[0] for row in rows][: len(one.fields)] == [field.name for field in one.fields]


def _told(declared: Declared) -> str:
    entry = declared.entry
    if not declared.fields:
        return f"{entry.kind} {entry.name}"
    columns = ", ".join(field.name for field in declared.fields)
    return f"{entry.kind} {entry.name} ({columns}) key ({', '.join(declared.primary_key)})"


def test_the_job_of_a_shared_table_has_one_build_side_and_no_stream():
    (declared,), _ = plan_declarations(STORED_CASES["declares_a_shared_table"], CATALOG)
    assert declared.plan is not None
    assert declared.plan.shared_table == "people"
    assert [d.name for d in declared.plan.dimensions] == ["people"]
    assert declared.plan.joins == ()
    assert plan_codec.load(plan_codec.dump(declared.plan)) == declared.plan


def test_what_the_script_declares_itself_wins_and_is_told():
    planned = plan_script(STORED_CASES["own_declaration_wins"], catalog=CATALOG)
    assert planned.plan.attached == ()
    assert [text for text in planned.warnings if "shared table of the catalog" in text]


def test_a_plan_names_the_jobs_that_it_attaches_to():
    text = STORED_CASES["shared_table_twice_is_one_dimension"]
    made = plan(text, catalog=CATALOG)
    assert made.attached == ("0199",)
    assert made.dimensions[0].source == SharedSource("0199", "users", 4)


def test_lists_and_statements_have_what_the_catalog_has():
    listed, views, created = answers(
        "SHOW TABLES; SHOW VIEWS; SHOW CREATE TABLE users", None, CATALOG
    )
    assert [row[0] for row in listed.rows] == ["adults", "sink", "stream", "users"]
    assert [row[0] for row in views.rows] == ["adults"]
    assert created.rows[0][0].startswith("CREATE SHARED TABLE `users`")


def test_an_entry_is_used_by_the_views_that_name_it():
    assert used_by("users", CATALOG) == ("adults",)
    assert used_by("sink", CATALOG) == ()


def test_a_fault_of_what_the_catalog_declares_is_told_as_one():
    stream = CatalogEntry(
        "stream",
        EntryKind.TABLE,
        "CREATE TABLE stream (user_id NOTHING) WITH ('connector' = 'print')",
    )
    with pytest.raises(SqlError, match="as the catalog declares it") as caught:
        plan("INSERT INTO sink SELECT user_id, 'x' FROM stream", catalog=(stream, *CATALOG[2:]))
    assert caught.value.line == 1
