"""The list of planted faults fits the code and the tests; `tests.mutations` plants them."""

import pytest

from tests.mutations import ROOT, mutations
from tests.support.named_tests import fault

LISTED = mutations()
LEAST = 60
PACKAGES = {"watermark", *(f"joins/{name}" for name in ("adapters", "batch", "dimension"))}
PACKAGES |= {f"joins/{name}" for name in ("durable", "job", "kernels", "stream", "worker")}
PACKAGES |= {f"service/{name}" for name in ("api", "jobs", "security", "sql")}


@pytest.mark.parametrize("mutation", LISTED, ids=[each.name for each in LISTED])
def test_a_fault_can_be_planted_and_its_tests_are_there(mutation):
    source = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert mutation.planted(source) != source
    assert mutation.tests
    assert [found for test in mutation.tests if (found := fault(test))] == []


def test_faults_are_planted_in_all_large_packages():
    assert len(LISTED) >= LEAST
    files = [each.file for each in LISTED]
    assert [p for p in PACKAGES if not any(file.startswith(f"{p}/") for file in files)] == []


def test_a_text_that_is_not_there_once_is_no_fault():
    with pytest.raises(ValueError, match="not exactly once"):
        LISTED[0].planted("")
    with pytest.raises(ValueError, match="not exactly once"):
        LISTED[0].planted(LISTED[0].before * 2)
