"""`page`: what the control plane needs in memory, and how soon the page is there, with many jobs.

100 jobs run and report twice a second, and each has a day of history; a browser follows the list
and a job, all histories are read, and metrics are scraped meanwhile. Processes that sleep stand for
the runners; what they would report is written for them. Then 500 jobs that rest, with a day of
history each: the list, and one job with its 24 hours, are opened in a browser that has nothing of
them in its cache.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import httpx
import psutil

from service.embedded.process import free_port
from service.jobs.store.job import JobState
from service.jobs.store.layout import JobLayout
from tests.bench.measure import Bar, Measure, Sense, Sizes
from tests.bench.place import Place
from tests.bench.plane_process import plane_process
from tests.support.beside import beside
from tests.support.browser import Browser, open_browser
from tests.support.page_jobs import joining
from tests.support.stored_jobs import rest, store_copies, stored_services
from tests.support.wait import wait_until

RUNNING, RESTING = 100, 500
_FOLLOWED_S = 60
_REPORT_EVERY_S = 0.5
_RESIDENT = Bar(Sense.VALUE_AT_MOST, 250.0)
_PAINT = Bar(Sense.VALUE_AT_MOST, 1_000.0)
_FIRST_PAINT, _FIRST_JOBS = "first paint", "the first 100 jobs are drawn"
_JOB, _DAY_OF_IT = "a job is drawn", "its 24 h are drawn"
_BARS = dict.fromkeys((_FIRST_PAINT, _FIRST_JOBS, _JOB, _DAY_OF_IT), _PAINT)
_RANGES = ((3_600_000, 10), (86_400_000, 300))  # of the page's charts
_ROWS = "return document.querySelectorAll('main tbody tr').length"
# When the rows of the list, or a job's charts, were drawn; the observer is there before any script
# of the page.
_OBSERVER = """
  const drawn = "main tbody tr .spark path, [data-plot=rates] path.line";
  const all = (text) => document.querySelector("main .quiet")?.textContent.startsWith(text);
  const note = (name) =>
    requestAnimationFrame(() => setTimeout(() => (window[name] ??= performance.now())));
  new MutationObserver(() => {
    if (document.querySelector(drawn)) note("drawnMs");
    if (all("%d jobs: ")) note("allMs");
  }).observe(document, { childList: true, subtree: true, characterData: true });
"""
_DAY = """
  const done = arguments[0], began = performance.now();
  const line = () => document.querySelector("[data-plot=rates] path.line").getAttribute("d");
  const before = line();
  const observer = new MutationObserver(() => {
    if (line() === before) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
  });
  observer.observe(document.querySelector("main"), { attributes: true, subtree: true });
  document.querySelector("[data-range=day]").click();
"""
_DRAWN = "return window.drawnMs"
_PAINTED = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


@dataclass(frozen=True, slots=True)
class Told:
    """Runners that are told about: the process of each, and where its report goes."""

    pids: dict[Path, int]
    started_at_ms: int

    def write(self, second: float) -> None:
        """What each of them reports after so many seconds of its life."""
        now_ms = time.time_ns() // 1_000_000
        for number, (job_dir, pid) in enumerate(self.pids.items()):
            joined = int(200_000 + second * (50 + number))
            report = {
                "format_version": 1,
                "job_id": job_dir.name,
                "pid": pid,
                "updated_at_ms": now_ms,
                "started_at_ms": self.started_at_ms,
                **joining(self.started_at_ms, joined_records=joined, batch=int(second * 2)),
            }
            aside = job_dir / "told.part"
            aside.write_text(json.dumps(report))
            aside.replace(JobLayout(job_dir).status)


def measure(place: Place, sizes: Sizes) -> list[Measure]:
    """`records` are seconds that the jobs are followed, `dim` the jobs that rest."""
    followed_s, resting = sizes.records or _FOLLOWED_S, sizes.dim or RESTING
    os.environ["SLUICE_SECRET_SHOP"] = "open sesame"
    with open_browser(place.new("profile")) as browser:
        shared, resident = _memory(place, browser, followed_s, sizes.runs)
        paint = _paint(place, browser, resting, sizes.runs)
    of_memory = f"{RUNNING} jobs that run, a day of history each, {followed_s} s a run"
    of_paint = f"{resting} jobs, a day of history each"
    full, many = followed_s >= _FOLLOWED_S, resting >= RESTING
    facts = {"resident_mb": max(resident)}
    return [
        Measure("control plane, PSS", "MB", of_memory, full, shared, bar=_RESIDENT, facts=facts),
        *(
            Measure(name, "ms", of_paint, many, ms, bar=_BARS.get(name))
            for name, ms in paint.items()
        ),
    ]


# Memory
# --------------------------------------------------------------------------------------------------


def _memory(
    place: Place, browser: Browser, followed_s: int, runs: int
) -> tuple[list[float], list[float]]:
    data, shared, resident = place.new("running"), list[float](), list[float]()
    ids = _store(data, RUNNING, JobState.JOINING)
    with _plane(data, start_limit=RUNNING) as (client, process), _reports(client, data, ids):
        _wait_joining(client, ids)
        place.say(f"{len(ids)} jobs report")
        for _ in range(runs):
            most_shared = most_resident = 0.0
            for number in range(followed_s):
                began = time.monotonic()
                _look(client, browser, ids, number)
                memory = process.memory_full_info()
                most_shared = max(most_shared, memory.pss / 1e6)
                most_resident = max(most_resident, memory.rss / 1e6)
                time.sleep(max(0.0, began + 1 - time.monotonic()))
            shared.append(most_shared)
            resident.append(most_resident)
            place.say(f"MB: PSS {most_shared:.0f}, resident {most_resident:.0f}")
        browser.driver.get("about:blank")
    return shared, resident


def _look(client: httpx.Client, browser: Browser, ids: list[str], number: int) -> None:
    """What is asked in one second: ten histories, the list; now and then metrics and a view."""
    now_ms = time.time_ns() // 1_000_000
    for at in range(10):
        job_id = ids[(number * 10 + at) % len(ids)]
        length_ms, step = _RANGES[at % 2]
        path = f"/v1/jobs/{job_id}/history?since={now_ms - length_ms}&step={step}"
        client.get(path).raise_for_status()
    client.get("/v1/jobs?recent=true&limit=100").raise_for_status()
    if number % 5 == 0:
        client.get("/metrics").raise_for_status()
    if number % 20 == 0:
        view = f"#/jobs/{ids[number % len(ids)]}" if number % 40 else "#/"
        browser.open(f"{client.base_url}/{view}")


def _wait_joining(client: httpx.Client, ids: list[str]) -> None:
    def all_join() -> bool:
        jobs = client.get("/v1/jobs?limit=500").json()["items"]
        return sum(job["state"] == "JOINING" for job in jobs) == len(ids)

    wait_until(all_join, deadline_s=120, what="every job is JOINING")


@contextmanager
def _reports(client: httpx.Client, data: Path, ids: list[str]) -> Iterator[None]:
    """Reports of the runners, written from here on."""

    def pids() -> dict[Path, int] | None:
        runners = {i: client.get(f"/v1/jobs/{i}").json()["runner"] for i in ids}
        if not all(runner["alive"] for runner in runners.values()):
            return None
        return {data / "jobs" / i: int(runner["pid"]) for i, runner in runners.items()}

    began = time.monotonic()
    found = wait_until(pids, deadline_s=120, what="every runner lives")
    assert found is not None
    told = Told(found, time.time_ns() // 1_000_000)

    def write(ended: Event) -> None:
        while not ended.wait(_REPORT_EVERY_S):
            told.write(time.monotonic() - began)

    with beside(write):
        yield


# First paint
# --------------------------------------------------------------------------------------------------


def _paint(place: Place, browser: Browser, resting: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds of each run by what is there."""
    data = place.new("resting")
    ids = _store(data, resting, JobState.STOPPED)
    found: dict[str, list[float]] = {
        name: [] for name in (_FIRST_PAINT, _FIRST_JOBS, "all jobs are drawn", _JOB, _DAY_OF_IT)
    }
    driver = browser.driver
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _OBSERVER % resting})
    with _plane(data) as (client, _):
        for _ in range(runs):
            _open_cold(browser, f"{client.base_url}/")
            browser.wait(lambda: browser.run("return window.allMs"), "all jobs are drawn")
            assert browser.run(_ROWS) == resting
            ms = [browser.run(each) for each in (_PAINTED, _DRAWN, "return window.allMs")]
            _open_cold(browser, f"{client.base_url}/#/jobs/{ids[0]}")
            ms += [browser.run(_DRAWN), driver.execute_async_script(_DAY)]
            for name, each in zip(found, ms, strict=True):
                found[name].append(float(each))
            place.say("ms: " + ", ".join(f"{name} {each[-1]:.0f}" for name, each in found.items()))
        driver.get("about:blank")
    return found


def _open_cold(browser: Browser, url: str) -> None:
    browser.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    browser.open(url)
    browser.wait(lambda: browser.run(_DRAWN), "it is drawn")


# Jobs and a control plane
# --------------------------------------------------------------------------------------------------


def _store(data: Path, count: int, state: JobState) -> list[str]:
    """So many jobs with a day of history each; runners are to be started if they are to run."""
    numbers = {name: _wave(50 + at) for at, name in enumerate(_SERIES)}
    with stored_services(data) as services:
        ids = store_copies(services, count, numbers)
        if state is JobState.STOPPED:
            rest(services, ids)
    return ids


_SERIES = ("records_per_s", "rows_per_s", "changes_per_s", "lag_records", "freshness_ms", "join_ms")


def _wave(base: int) -> Callable[[float], float]:
    return lambda age_s: base + age_s % 40


@contextmanager
def _plane(data: Path, **given: object) -> Iterator[tuple[httpx.Client, psutil.Process]]:
    """A control plane in a process of its own; nothing of it is loaded here."""
    port = free_port()
    settings = {"data_dir": data, "port": port, "requests_per_s": 100_000, **given}
    variables = {f"SLUICE_{name.upper()}": str(value) for name, value in settings.items()}
    with plane_process("nobody", port, variables) as answering:
        yield answering
