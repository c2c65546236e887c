"""One file per case: its first line says what must come of it.

`-- warning: text`: the script is planned with that warning.

`-- plan: A | B`: each of the lines A, B is in the explanation of the plan. `-- error: text`: the
script is refused and message or hint have the text. `-- with: a … b`: the statements `a` and
`b` of preludes.sql stand in front and at the end. Each plan survives being stored, and its
expressions have the types that the data path expects and make values of them.
"""

import re
from collections import Counter

import pytest

from service.sql.answers.explain import explain
from service.sql.planner.planner import plan, plan_script
from service.sql.text.script import SqlError
from tests.support.plan_laws import assert_has_types, assert_is_evaluated, assert_is_stored
from tests.support.sql_cases import DIRECTORY, prelude_names, preludes, sql_cases

CASES, PLANNED, REFUSED = sql_cases(), sql_cases("plan"), sql_cases("error")
WARNED = sql_cases("warning")
TEXT_CASTS = re.compile(r"CAST\(s?\.?t AS TIMESTAMP")  # "12", the text of a row, is no time


def test_every_case_says_what_must_come_of_it():
    assert len(PLANNED) + len(REFUSED) + len(WARNED) == len(CASES) == len(list(DIRECTORY.iterdir()))


def test_every_prelude_is_named_by_several_cases():
    texts = [path.read_text() for path in DIRECTORY.iterdir()]
    named = Counter(name for text in texts for names in prelude_names(text) for name in names)
    assert {name for name, cases in named.items() if cases > 1} == set(preludes())


@pytest.mark.parametrize("text", PLANNED.values(), ids=PLANNED)
def test_script_is_planned(text):
    expected = text.partition("\n")[0].removeprefix("-- plan: ").split(" | ")
    made = plan(text)
    lines = explain(made)
    assert [line for line in expected if line not in lines] == [], "\n".join(lines)
    assert_is_stored(made)
    assert_has_types(made)
    assert_is_evaluated(made, may_fail=bool(TEXT_CASTS.search(text)))


@pytest.mark.parametrize("text", WARNED.values(), ids=WARNED)
def test_script_is_planned_with_one_warning(text):
    expected = text.partition("\n")[0].removeprefix("-- warning: ")
    warnings = plan_script(text).warnings
    assert warnings.count(expected) == 1, warnings


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_script_is_refused(text):
    expected = text.partition("\n")[0].removeprefix("-- error: ")
    with pytest.raises(SqlError) as caught:
        plan(text)
    error = caught.value
    assert expected in f"{error.message} {error.hint}"
    assert error.hint.endswith((".", "?")), error.hint
    assert error.line <= text.count("\n") + 1
    caret = error.excerpt.splitlines()[-1]
    assert caret.strip() == "^"
