"""Each sentence of the documents that promises a behaviour has a test: `tests/promises.toml`.

A line is `"sentence" = ["id of a test", …]`, or `"sentence" = "no promise: why"`. An id is a test
function, a file of tests/service/sql/cases, or a contract of pyproject.toml. `make docs` writes
docs/reference/promises.md from the file.
"""

import pytest

from tests.support import promises
from tests.support.named_tests import fault, functions_of

DOCUMENTS = promises.documents()
LISTED = promises.promises()
MOST_UNTESTED = 5  # fewer are better


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_promise_of_a_document_is_listed_and_nothing_else(document):
    found = list(promises.faults(document, DOCUMENTS[document], LISTED.get(document, {})))
    assert found == [], "\n\n".join(["change tests/promises.toml:", *found])


def test_no_document_is_listed_that_is_not_there():
    assert set(LISTED) <= set(DOCUMENTS)


def test_the_tests_of_the_promises_are_there_and_run():
    named = sorted(promises.named_tests())
    assert [found for test in named if (found := fault(test))] == []


def test_a_sentence_has_tests_or_a_reason():
    for lines in LISTED.values():
        for sentence, tests in lines.items():
            kinds = (promises.NO_PROMISE, promises.UNTESTED)
            is_reason = isinstance(tests, str) and tests.startswith(kinds)
            assert is_reason or (isinstance(tests, list) and tests), sentence


def test_promises_without_a_test_become_fewer():
    untested = [
        sentence
        for lines in LISTED.values()
        for sentence, tests in lines.items()
        if isinstance(tests, str) and tests.startswith(promises.UNTESTED)
    ]
    assert len(untested) <= MOST_UNTESTED, untested


TEXT = """# Never a heading

Records wait. A sentence
without tests. It is blue.

- **Never early.** The gate opens once.

| a | must |
|---|---|
| b | never |

    sluice must run
"""


def test_a_promise_that_is_not_listed_is_found_with_the_line_to_add():
    listed = {"Records wait.": ["a"], "A sentence without any tests.": ["b"], "Gone.": ["c"]}
    assert list(promises.faults("d.md", TEXT, listed)) == [
        '["d.md"] lacks:\n"A sentence without tests." = ["b"]'
        '\n  in place of:\n"A sentence without any tests." = ["b"]',
        '["d.md"] lacks:\n"**Never early.**" = ["tests/…::test_…"]',
        '["d.md"] lacks:\n"The gate opens once." = ["tests/…::test_…"]',
        '["d.md"] lacks:\n"| b | never |" = ["tests/…::test_…"]',
        '["d.md"] has a line whose sentence is gone:\n"Gone." = ["c"]',
    ]


@pytest.mark.parametrize(
    ("test", "wrong"),
    [
        ("tests/test_promises.py::test_a_sentence_has_tests_or_a_reason", None),
        ("tests/test_promises.py::test_nothing", "has no such test"),
        ("tests/test_nothing.py::test_nothing", "there is no file"),
        ("pyproject.toml::nothing", "no such contract"),
    ],
)
def test_an_id_of_a_test_is_looked_for(test, wrong):
    assert (found := fault(test)) == wrong or wrong in found


def test_a_test_that_never_runs_is_no_witness(tmp_path):
    path = tmp_path / "test_off.py"
    path.write_text("@pytest.mark.skip\ndef test_a(): ...\n\ndef test_b(): ...\n")
    assert functions_of(path) == {"test_a": False, "test_b": True}
