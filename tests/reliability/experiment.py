"""What every experiment shares: the laboratory it runs in, its seed, its progress, its result.

An experiment is a module of this package with `run(lab: Lab) -> dict[str, Any]`; the name on the
command line is the module's, with dashes. `listing() -> list[str]` is optional: what `--list` says;
so is `SERVERS = False`: it needs neither broker nor database.
"""

import dataclasses
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.server import DatabaseSettings
from tests.reliability.oracle import Verdict
from tests.support.object_store import ObjectStore, object_store
from tests.support.services import running_services

T = TypeVar("T")
R = TypeVar("R")
SMALL, FULL = "small", "full"
MYSQL_CDC, DEBEZIUM = "mysql-cdc", "debezium"
SOURCES = (MYSQL_CDC, DEBEZIUM)  # of a dimension
COUNTS = tuple(name for name in Verdict.FAULTS if name != "unreadable")
_BROKER = {
    SMALL: BrokerSettings(heap="384m"),
    FULL: BrokerSettings(
        heap="1g", properties={"log.segment.bytes": str(256 << 20)}, jvm_options=()
    ),
}
_DATABASE = {
    SMALL: DatabaseSettings(),
    FULL: DatabaseSettings(options={"innodb-buffer-pool-size": "512M"}),
}


@dataclass(frozen=True)
class Lab:
    """Where one experiment runs.

    Attributes:
        directory: its own scratch directory, there already.
        kafka, mariadb: None for an experiment that needs no servers.
        options: what the command line gave besides: `cases`, `writer`, `source`, `store`, or what
            a test wants to be smaller.
        store: where all of the job under test is; None if it is in directories.
    """

    directory: Path
    kafka: KafkaBroker | None
    mariadb: MariaDb | None
    scale: str = SMALL
    seed: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    store: ObjectStore | None = None
    started_at: float = field(default_factory=time.monotonic)

    @property
    def full(self) -> bool:
        return self.scale == FULL

    def size(self, small: Any, full: Any) -> Any:
        return full if self.full else small

    def cases(self, small: int, full: int) -> int:
        given = self.options.get("cases")
        return int(given) if given else int(self.size(small, full))

    @property
    def runners(self) -> str:
        """At small scale they share a driver; crash-points and kill-storm do not."""
        return str(self.size("shared", "own"))

    @property
    def writer(self) -> str:
        return str(self.options.get("writer") or "columnar")

    @property
    def warehouse(self) -> str | None:
        return None if self.store is None else self.store.warehouse

    @property
    def is_captured(self) -> bool:
        """Whether the dimension is a topic that a real Debezium fills, not `mysql-cdc`."""
        return self.options.get("source") == DEBEZIUM

    def random(self, *names: object) -> random.Random:
        return random.Random(":".join(map(str, (self.seed, *names))))

    def seconds(self) -> float:
        return round(time.monotonic() - self.started_at, 1)

    def place(self, name: str) -> Path:
        path = self.directory / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def say(self, text: str) -> None:
        sys.stderr.write(f"[{self.seconds():7.1f} s] {text}\n")
        sys.stderr.flush()


@contextmanager
def open_lab(
    directory: Path,
    *,
    servers: bool = True,
    scale: str = SMALL,
    seed: int = 1,
    options: Mapping[str, Any] | None = None,
) -> Iterator[Lab]:
    """A laboratory with a broker and a database of its own, both ended with it; or without."""
    running = running_services(directory, _BROKER[scale], _DATABASE[scale])
    with running if servers else nullcontext((None, None)) as (kafka, mariadb):
        scratch = directory / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        given = dict(options or {})
        with _store(given.get("store")) as store:
            yield Lab(scratch, kafka, mariadb, scale, seed, given, store)


@contextmanager
def _store(kind: str | None) -> Iterator[ObjectStore | None]:
    """A store of that kind, which processes of ours reach by their environment."""
    if kind is None:
        yield None
        return
    with object_store() as store, pytest.MonkeyPatch.context() as environment:
        for name, value in store.environment.items():
            environment.setenv(name, value)
        yield store


def in_lanes(lanes: int, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The results of `work`, that many at a time; one lane is this thread."""
    if lanes == 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(lanes) as pool:
        return list(pool.map(work, items))


def as_dict(verdict: Any) -> dict[str, Any]:
    """A verdict as JSON values, whether it is a dataclass or a mapping."""
    if isinstance(verdict, Mapping):
        return dict(verdict)
    values = dataclasses.asdict(verdict)
    return {**values, "ok": bool(verdict.ok)}


def sum_verdicts(verdicts: Iterable[Any]) -> dict[str, Any]:
    """Several verdicts of the oracle as one: counts summed, `ok` when all are, some examples."""
    merged: dict[str, Any] = dict.fromkeys(("records", "rows", "dead", *COUNTS), 0)
    merged["ok"], examples = True, []
    for one in map(as_dict, verdicts):
        for name in merged:
            if name != "ok":
                merged[name] += int(one.get(name, 0))
        merged["ok"] = merged["ok"] and bool(one["ok"])
        examples.extend(one.get("examples", ()))
    return {**merged, "examples": examples[:20]}


def result(
    lab: Lab, experiment: str, cases: int, passed: int, verdicts: Iterable[Any], **more: Any
) -> dict[str, Any]:
    """The JSON object of an experiment; `ok` needs all cases passed and every verdict clean."""
    merged = sum_verdicts(verdicts)
    ok = bool(merged.pop("ok")) and passed == cases and cases > 0 and bool(more.pop("ok", True))
    examples = merged.pop("examples")
    return {
        "experiment": experiment,
        "scale": lab.scale,
        "seed": lab.seed,
        **({"source": DEBEZIUM} if lab.is_captured else {}),
        "cases": cases,
        "passed": passed,
        **merged,
        **more,
        **({"examples": examples} if examples else {}),
        "seconds": lab.seconds(),
        "ok": ok,
    }
