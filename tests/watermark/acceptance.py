"""Which test shows which acceptance id. `python -m tests.watermark.acceptance` prints the table."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).parent
TABLE = HERE / "ACCEPTANCE.md"
Test = TypeVar("Test", bound=Callable)


def ids(letter: str, first: int, last: int) -> list[str]:
    return [f"{letter}{number:02}" for number in range(first, last + 1)]


REQUIRED = [
    *ids("A", 1, 20),
    *ids("B", 4, 5),
    *ids("B", 7, 35),
    *ids("B", 39, 51),
    *ids("B", 54, 57),
    *ids("C", 1, 21),
    *ids("D", 1, 13),
    *ids("E", 1, 31),
]


def covers(*covered: str) -> Callable[[Test], Test]:
    """The test shows these behaviours."""
    unknown = set(covered) - set(REQUIRED)
    assert not unknown, f"not on the list: {sorted(unknown)}"

    def mark(test: Test) -> Test:
        test.covered_ids = covered
        return test

    return mark


def coverage() -> dict[str, list[str]]:
    """Ids with the tests that show them, as file::test."""
    found: dict[str, list[str]] = {each: [] for each in REQUIRED}
    for path in sorted(HERE.glob("test_*.py")):
        module = importlib.import_module(f"tests.watermark.{path.stem}")
        for name, test in vars(module).items():
            if name.startswith("test_"):
                for each in getattr(test, "covered_ids", ()):
                    found[each].append(f"{path.name}::{name}")
    return found


def table() -> str:
    lines = ["# Acceptance ids and the tests that show them", "", "| id | tests |", "|---|---|"]
    for each, tests in coverage().items():
        lines.append(f"| {each} | {'<br>'.join(f'`{test}`' for test in tests)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
