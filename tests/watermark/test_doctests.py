import doctest
import importlib
import pkgutil

import pytest

import watermark

MODULES = [
    "watermark",
    *(each.name for each in pkgutil.walk_packages(watermark.__path__, "watermark.")),
]
SHOWN = [
    "watermark",
    "watermark.reference.generators",
    "watermark.valve",
    "watermark.reference.emission",
    "watermark.gate",
    "watermark.reference.generators",
    "watermark.model",
    "watermark.gate",
    "watermark.reference.testing",
    "watermark.reference.timers",
    "watermark.valve",
    "watermark.reference.windows.assigners",
    "watermark.reference.windows.operator",
    "watermark.reference.windows.functions",
    "watermark.reference.windows.triggers",
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
