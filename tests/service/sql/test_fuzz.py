import re

from hypothesis import given, settings
from hypothesis import strategies as st

from service.jobs.store import plan_codec
from service.sql.planner.planner import plan, plan_script
from service.sql.text.script import SqlError
from tests.service.sql.scripts import selecting
from tests.support.laws import examples
from tests.support.sql_cases import sql_cases

GOOD = selecting("CASE WHEN n > 1 THEN UPPER(t) ELSE COALESCE(name, 'x') || CAST(k AS STRING) END")
TOKENS = re.findall(r"'[^']*'|\w+|\s+|\S", GOOD)
EXTRA = (
    "WITH FOR NOT NULL ( ) BETWEEN IN LIKE IS DISTINCT EXTRACT TRIM 1e5 .5 x'0a' ` ' -- /* */ "
    "${env:X} DATE INTERVAL * CREATE DROP VIEW LATERAL /*+ OPTIONS */ EXPLAIN DESCRIBE SHOW LIMIT "
    "7 EXECUTE STATEMENT SET BEGIN END; RESET STOP JOB INCLUDING ALL WATERMARK SECOND MINUTE TO "
    "TABLE TUMBLE HOP SESSION DESCRIPTOR => GROUP BY HAVING window_start window_end COUNT SUM "
    "DISTINCT LISTAGG FILTER PARTITION '1:30' p"
)
WORDS = sorted({token for token in TOKENS if not token.isspace()} | set(EXTRA.split()))


def plans_or_refuses(script):
    try:
        planned = plan_script(script)
    except SqlError as error:
        refusal = error
    else:
        assert plan_codec.load(plan_codec.dump(planned.plan)) == planned.plan
        return
    assert refusal.hint
    assert 1 <= refusal.line <= script.count("\n") + 1


@given(st.text(max_size=400))
@settings(max_examples=examples(300))
def test_any_text_is_planned_or_refused(text):
    plans_or_refuses(text)


@given(st.lists(st.sampled_from(WORDS), max_size=60))
@settings(max_examples=examples(300))
def test_any_words_are_planned_or_refused(words):
    plans_or_refuses(" ".join(words))


@given(st.text(alphabet="knt01().,'+-*/%<>=|` ANDORTIS", max_size=60))
@settings(max_examples=examples(300))
def test_any_expression_is_planned_or_refused(text):
    plans_or_refuses(selecting(text))


@given(st.data())
@settings(max_examples=examples(400))
def test_a_damaged_script_is_planned_or_refused(data):
    tokens = list(TOKENS)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(tokens) - 1))
        action = data.draw(st.sampled_from(["drop", "double", "replace", "insert"]))
        word = data.draw(st.sampled_from(WORDS))
        new = {
            "drop": [],
            "double": [tokens[at]] * 2,
            "replace": [word],
            "insert": [tokens[at], word],
        }
        tokens[at : at + 1] = new[action]
    plans_or_refuses("".join(tokens))


def test_the_undamaged_script_is_planned():
    assert plan(GOOD).name == "o"


WINDOWED = sql_cases()["window_of_a_join"].partition("\n")[2]
PARTS = re.findall(r"'[^']*'|\w+|\s+|\S", WINDOWED)


@given(st.data())
@settings(max_examples=examples(300))
def test_a_damaged_window_is_planned_or_refused(data):
    tokens = list(PARTS)
    start = tokens.index("VIEW")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(start, len(tokens) - 1))
        tokens[at] = data.draw(st.sampled_from([*WORDS, "", tokens[at] * 2]))
    plans_or_refuses("".join(tokens))
