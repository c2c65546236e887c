"""Histories of producers on one topic: transactions of several of them interleaved, and the model.

A history is what one producer does: transactions that it commits, aborts or leaves open, and plain
records beside them. The model is told what the broker has acknowledged, and nothing else.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaProducer

from tests.support.transactions import Transactions, transactions

COMMIT, ABORT, PLAIN, HANG = "commit", "abort", "plain", "hang"
USERS = 40
_NUMBERS = 10_000  # of each producer
_LONG_MS = 600_000
Where = tuple[int, int]


@dataclass(frozen=True)
class Step:
    """One transaction, or plain records; `sends` are partitions, in order, with repeats."""

    kind: str
    sends: tuple[int, ...]


@dataclass
class Model:
    """What must be read, by what the broker has acknowledged.

    Attributes:
        committed: coordinates → value, of plain records and of committed transactions.
        aborted: likewise, of aborted transactions.
        owners: coordinates → number of the producer, of all records.
    """

    committed: dict[Where, dict[str, Any]] = field(default_factory=dict)
    aborted: dict[Where, dict[str, Any]] = field(default_factory=dict)
    owners: dict[Where, int] = field(default_factory=dict)

    def before(self, ends: dict[int, int]) -> dict[Where, dict[str, Any]]:
        return {at: value for at, value in self.committed.items() if at[1] < ends.get(at[0], 0)}


def generate(rng: random.Random, partitions: int, steps: int, *, hangs: bool) -> tuple[Step, ...]:
    """A history of `steps` steps; one that hangs does so at last."""

    def sends() -> tuple[int, ...]:
        return tuple(rng.randrange(partitions) for _ in range(rng.randint(1, 6)))

    kinds = [rng.choice((COMMIT, COMMIT, ABORT, ABORT, PLAIN)) for _ in range(steps)]
    return tuple(Step(kind, sends()) for kind in (*kinds, *((HANG,) if hangs else ())))


class Producer:
    """One producer at work; each `next` of `acts` is one call to the broker.

    Args:
        number: of the history.
        plain: sends what is in no transaction.
        hanging_ms: after which the broker aborts a transaction that hangs; the others have time.
    """

    def __init__(
        self, number: int, topic: str, plain: KafkaProducer, model: Model, hanging_ms: int
    ) -> None:
        self._number = number
        self._topic = topic
        self._plain = plain
        self._model = model
        self._sent = 0
        self._hanging_ms = hanging_ms
        self._servers = plain.config["bootstrap_servers"]
        self.transactions = Transactions(self._servers, timeout_ms=_LONG_MS)

    def _value(self) -> dict[str, Any]:
        self._sent += 1
        number = self._number * _NUMBERS + self._sent
        return {"user_id": 1 + number % USERS, "item_id": number, "ts": _time(number)}

    def acts(self, steps: Sequence[Step]) -> Iterator[None]:
        does = {PLAIN: self._plainly, HANG: self._hang}
        for step in steps:
            yield from does.get(step.kind, self._together)(step)

    def _plainly(self, step: Step) -> Iterator[None]:
        for partition in step.sends:
            value = self._value()
            text = json.dumps(value).encode()
            sent = self._plain.send(self._topic, text, partition=partition).get(timeout=60)
            self._keep({(partition, sent.offset): value}, COMMIT)
            yield

    def _together(self, step: Step) -> Iterator[None]:
        found: dict[Where, dict[str, Any]] = {}
        self.transactions.begin()
        for partition in step.sends:
            value = self._value()
            (where,) = self.transactions.send(self._topic, {partition: [value]})
            found[where] = value
            yield
        if step.kind == COMMIT:
            self.transactions.commit()
        else:
            self.transactions.abort()
        self._keep(found, step.kind)
        yield

    def _hang(self, step: Step) -> Iterator[None]:
        """The producer is gone in the middle of its transaction."""
        values = [(partition, self._value()) for partition in step.sends]
        with transactions(self._servers, timeout_ms=self._hanging_ms) as gone:
            gone.begin()
            for partition, value in values:
                self._keep(dict.fromkeys(gone.send(self._topic, {partition: [value]}), value), HANG)
        yield

    def _keep(self, found: dict[Where, dict[str, Any]], kind: str) -> None:
        (self._model.committed if kind == COMMIT else self._model.aborted).update(found)
        self._model.owners.update(dict.fromkeys(found, self._number))


def _time(number: int) -> str:
    return f"2026-01-01 {number % 24:02}:{number % 60:02}:{number % 59:02}"


def interleave(rng: random.Random, several: Sequence[Iterator[None]]) -> None:
    """Let all of them come to their end, a random one going on at a time."""
    going = list(several)
    while going:
        one = rng.choice(going)
        if next(one, going) is going:
            going.remove(one)
