import doctest
import importlib
import pkgutil

import pytest

import tests.reference
import watermark

MODULES = [
    "watermark",
    *(each.name for each in pkgutil.walk_packages(watermark.__path__, "watermark.")),
    *(each.name for each in pkgutil.walk_packages(tests.reference.__path__, "tests.reference.")),
]
SHOWN = [
    "watermark",
    "tests.reference.generators",
    "watermark.valve",
    "tests.reference.emission",
    "watermark.gate",
    "tests.reference.generators",
    "watermark.model",
    "watermark.gate",
    "tests.reference.testing",
    "tests.reference.timers",
    "watermark.valve",
    "tests.reference.windows.assigners",
    "tests.reference.windows.operator",
    "tests.reference.windows.functions",
    "tests.reference.windows.triggers",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0
    assert outcome.attempted > 0 or name not in SHOWN


def test_the_page_shows_the_table_and_the_valve():
    page = watermark.__doc__
    for part in ("(min(t1, t2), false)", "items/0", "gate", "(MIN_TIMESTAMP, true)"):
        assert part in page
