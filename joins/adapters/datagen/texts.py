"""Texts that look like life, made once by Faker: rows choose among them."""

from collections.abc import Iterable

import pyarrow as pa

from joins.plan.faker import TEXTS, calls_of
from joins.plan.plan import DatagenField

_OF_EACH = 2_000


def texts_of(rules: Iterable[DatagenField], seed: int) -> dict[str, pa.Array]:
    """The name of each kind of text that `rules` have → values; the same for one seed."""
    names = {
        call.name
        for rule in rules
        if rule.expression is not None
        for call in calls_of(rule.expression)
        if call.name in TEXTS
    }
    if not names:
        return {}
    from faker import Faker  # a quarter of a second, and every runner imports this module

    made = {}
    for name in sorted(names):
        faker = Faker()
        faker.seed_instance(f"{seed} {name}")
        provide = getattr(faker, TEXTS[name])
        made[name] = pa.array([str(provide()) for _ in range(_OF_EACH)], pa.string())
    return made
