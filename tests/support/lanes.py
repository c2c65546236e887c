"""Parameters of which `make test` runs some, and `.ci/run` all."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest


def some_of(cases: Iterable[Any] | Mapping[str, Any], *in_every_run: Any) -> list[Any]:
    """`cases` as parameters: those not among `in_every_run` get the mark `matrix`.

    A mapping gives its keys as ids, and its values as the parameters.
    """
    named = cases.items() if isinstance(cases, Mapping) else [(case, case) for case in cases]
    found = []
    for name, case in named:
        values = case if isinstance(case, tuple) and isinstance(cases, Mapping) else (case,)
        marks = () if name in in_every_run else (pytest.mark.matrix,)
        found.append(pytest.param(*values, id=str(name), marks=marks))
    missing = set(in_every_run) - {name for name, _ in named}
    assert not missing, f"no case is named {missing}"
    return found
