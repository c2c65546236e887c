"""The tables of results in `deploy/BENCHMARKS.md`: one a machine, a line a measure.

Lines of a benchmark that runs again are replaced, all others stay; another machine or another
version gets a table of its own, so that no line stands below what it was not measured with.
"""

import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from service.config import Settings
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from tests.bench.measure import Sense

_PACKAGES = ("pyspark", "delta-spark", "pyarrow", "deltalake", "kafka-python", "pymysql")
_HEAD = "| bench | measure | size | ours | reference | ratio | bar | met | spread | run |"
_RULE = "|" + "---|" * 10
_BY_SENSE = {
    Sense.RATIO_AT_LEAST: "≥ {}x",
    Sense.RATIO_AT_MOST: "≤ {}x",
    Sense.VALUE_AT_LEAST: "≥ {}",
    Sense.VALUE_AT_MOST: "≤ {}",
}


def machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def versions() -> str:
    """What it runs with."""
    settings = Settings.load()
    java = find_java(settings.cache_dir)
    cache = JarCache(settings.cache_dir, java)
    servers = [f"Kafka {_broker(cache)}", f"MariaDB {_database(cache)}"]
    packages = [f"{name} {version(name)}" for name in _PACKAGES]
    told = [f"Python {platform.python_version()}", f"Java {java.version}", *servers, *packages]
    return ", ".join(told)


def _broker(cache: JarCache) -> str:
    names = (jar.name for jar in cache.jars(JarSet.BROKER))
    found = (re.search(r"kafka-clients-([\d.]+)\.jar", name) for name in names)
    return next((match[1] for match in found if match), "of unknown version")


def _database(cache: JarCache) -> str:
    program = cache.database_home() / "bin" / "mariadbd"
    told = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Ver ([\d.]+)", told)
    return found[1] if found else "of unknown version"


def lines(told: Mapping[str, Any]) -> list[str]:
    when = now()
    parts = [told, *(part for part in told.get("parts", ()) if "value" in part)]
    return [line(told["bench"], part, when) for part in parts]


def line(bench: str, told: Mapping[str, Any], when: str) -> str:
    """One measure as a line of the table."""
    full, bar = told.get("full_size", True), told.get("bar")
    sense = Sense(told.get("judged") or Sense.RATIO_AT_LEAST)
    met = "yes" if told.get("met", told.get("ok")) else "**no**"
    spreads = (told.get("spread"), told.get("reference_spread"))
    cells = [
        f"`{bench}`",
        told.get("measure", bench),
        told.get("size", "") if full else f"{told['size']} (*smaller*)",
        f"{_number(told['value'])} {told['unit']}",
        _number(told["reference"]),
        _number(told["ratio"]),
        "-" if bar is None else _BY_SENSE[sense].format(_number(bar)),
        "-" if bar is None else met if full else f"{met}, at this size",
        ", ".join(f"{share:.0%}" for share in spreads if isinstance(share, float | int)),
        when,
    ]
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:g}"


def now() -> str:
    """Date and load of the last minutes, for the last column: ours alone makes 2 to 4."""
    return f"{datetime.now(UTC):%Y-%m-%d}, load {os.getloadavg()[2]:.0f}"


def save(path: Path, heading: str, told: str, new: Sequence[str]) -> None:
    """Put the `new` lines of a benchmark into the table below `heading` in the file at `path`.

    Args:
        path: of the file; what else it says stays as it is.
        heading: the machine.
        told: the versions; with the machine they name a table.
        new: all lines of one benchmark.
    """
    intro, *blocks = _blocks(path.read_text(encoding="utf-8"))
    mine = f"## {heading}\n{told}.\n"
    before = next((block for block in blocks if block.startswith(mine)), "")
    gone = f"| `{_bench_of(new[0])}` |"
    kept = [
        row for row in before.splitlines() if row.startswith("| `") and not row.startswith(gone)
    ]
    rows = sorted([*kept, *new], key=_bench_of)
    block = "\n".join([mine, _HEAD, _RULE, *rows, "", ""])
    if before:
        blocks[blocks.index(before)] = block
    else:
        blocks.insert(0, block)
    path.write_text("".join([intro, *blocks]).rstrip("\n") + "\n", encoding="utf-8")


def _bench_of(row: str) -> str:
    return row.split("`")[1]


def _blocks(text: str) -> list[str]:
    return re.split(r"^(?=## )", text.rstrip("\n") + "\n\n", flags=re.MULTILINE)
