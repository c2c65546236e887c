"""Pictures of a job's page in twelve states, each of a real job: `make screenshots`.

A picture is only taken if state, cause with its object, and remedy are above the fold, on a desktop
and on a phone. The pictures are for eyes, in `build/states`; the repository has none of them.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import typer

from service.client import RemoteJob, Sluice
from service.demo.up import Up
from service.jobs.store.layout import JobLayout
from tests.support.browser import Browser
from tests.support.page_fold import SCREENS, above_the_fold
from tests.support.topics import create_topic, produce
from tests.support.wait import wait_until

STATES = Path(__file__).parents[1] / "build" / "states"
_WITHIN_S = 600.0
_ROWS = 800_000  # so that the copy is seen
_WINDOWS = """\
CREATE TABLE clicks (user_id BIGINT, at TIMESTAMP_LTZ(3), WATERMARK FOR at AS at) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601',
  'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE counted (window_end TIMESTAMP_LTZ(3), n BIGINT) WITH ('connector' = 'print');
INSERT INTO counted SELECT window_end, COUNT(*) FROM TABLE(
  TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' HOUR)) GROUP BY window_start, window_end;
"""
_LETTERS = """\
CREATE TABLE clicks (user_id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE shown (user_id BIGINT) WITH ('connector' = 'print');
INSERT INTO shown SELECT user_id FROM clicks;
"""
_BOUNDED = """\
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '100');
CREATE TABLE shown (n BIGINT) WITH ('connector' = 'print');
INSERT INTO shown SELECT n FROM numbers;
"""


class Gallery:
    """Takes the pictures of one run; each job is removed when its last picture is taken."""

    def __init__(self, browser: Browser, up: Up, client: Sluice) -> None:
        self._browser = browser
        self._up = up
        self._client = client
        self.taken: list[str] = []

    def take(
        self, name: str, job: RemoteJob, word: str, cause: str, remedy: str = "", shown: str = ""
    ) -> None:
        """Wait for the state, check what is above the fold, and keep both pictures.

        `shown` is a text that is awaited anywhere on the page.
        """
        for width, height in SCREENS:
            self._browser.screen(width, height)
            self._browser.open(f"{self._up.url}/#/jobs/{job.id}")
            self._browser.until(word, ".title .state", deadline_s=_WITHIN_S)
            self._browser.until(cause, "#why .sentence", deadline_s=_WITHIN_S)
            self._browser.until(shown, "main", deadline_s=_WITHIN_S)
            fold = above_the_fold(self._browser)
            assert word in fold.state, (name, width, fold)
            assert cause in fold.cause, (name, width, fold)
            assert remedy in fold.remedy, (name, width, fold)
            STATES.mkdir(parents=True, exist_ok=True)
            assert self._browser.driver.save_screenshot(str(STATES / f"{name}-{width}.png"))
        self.taken.append(name)
        typer.echo(f"{name}: {' '.join(fold.state.split())} | {fold.cause} | {fold.remedy}")

    def submit(self, script: str, name: str) -> RemoteJob:
        return self._client.submit(script, name=name)

    def first_job(self, script: str) -> None:
        """The states of one join: start, copy, run, servers that are away, pause, stop, failure."""
        up = self._up
        with up.database.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                "INSERT IGNORE INTO shop.user_info (user_id, gender, name) "
                f"SELECT seq, 'f', CONCAT('user ', seq) FROM shop.seq_2000_to_{_ROWS}"
            )
            connection.commit()
        job = self.submit(script, "clicks-with-users")
        self.take("starting", job, "Starting", "runner")
        wait_until(lambda: _copied(job) > 0, deadline_s=_WITHIN_S, what="the first rows")
        self.take("copying", job, "Copying (", '"user_info"')
        self.take("running", job, "Running", "joined as they", shown="rows/s")
        up.database.stop()
        at = f"{up.database.host}:{up.database.port}"
        self.take("waiting-for-database", job, "Stalled", at, "Start the server")
        up.database.start()
        self._until(job, "JOINING")
        up.kafka.stop()
        servers = up.kafka.bootstrap_servers
        self.take("waiting-for-kafka", job, "Stalled", servers, "the broker runs")
        up.kafka.start()
        self._until(job, "JOINING")
        job.pause()
        self.take("paused", job, "Paused", "paused by request", "sluice jobs resume")
        job.stop()
        self.take("stopped", job, "Stopped", "stopped by request", "sluice jobs resume")
        layout = JobLayout(up.directory / "data" / "jobs" / job.id)
        for file in layout.checkpoint.glob("progress*.json"):
            file.write_text("{", encoding="utf-8")
        job.start()
        self.take("failed", job, "Failed", "is not valid JSON", "Remove this file")
        job.delete()

    def stale(self, script: str) -> None:
        """The database hangs: its table becomes older than the job allows."""
        bound = "'table-name' = 'user_info', 'join.max-staleness' = '5 s'"
        job = self.submit(script.replace("'table-name' = 'user_info'", bound), "fresh-clicks")
        self._until(job, "JOINING")
        server = psutil.Process(self._up.database.pid)
        server.suspend()
        try:
            self.take(
                "holding-stale",
                job,
                "Holding (stale)",
                '"user_info"',
                'Check what "user_info" is copied from',
            )
        finally:
            server.resume()
        job.delete()

    def topics(self) -> None:
        """Records that cannot be read, and windows that are open."""
        servers = self._up.kafka.bootstrap_servers
        topic = create_topic(servers, "payments")
        produce(servers, topic, [b"{", b"no json"])
        job = self.submit(_LETTERS.format(topic=topic, servers=servers), "payments-in")
        self.take(
            "dead-letters", job, "Running", "All 2 records", "sluice dlq ls", shown="The oldest, "
        )
        job.delete()
        topic = create_topic(servers, "visits")
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        produce(servers, topic, [{"user_id": 1, "at": now}])
        job = self.submit(_WINDOWS.format(topic=topic, servers=servers), "visits-by-hour")
        self.take("windows", job, "Running", "window")
        job.delete()
        job = self.submit(_BOUNDED, "hundred-numbers")
        self.take("finished", job, "Finished", "end of its stream")
        job.delete()

    def _until(self, job: RemoteJob, state: str) -> None:
        wait_until(lambda: job.status().state == state, deadline_s=_WITHIN_S, what=state)


def _copied(job: RemoteJob) -> int:
    return sum(table.snapshot.rows_done for table in job.status().dimensions)


def take_states(browser: Browser, up: Up, client: Sluice, script: str) -> None:
    """All pictures; a state that cannot be shown is reported at the end, after the others."""
    gallery, wrong = Gallery(browser, up, client), []
    for part in _parts(gallery, script):
        try:
            part()
        except (AssertionError, TimeoutError) as exc:
            wrong.append(str(exc))
            for job in client.jobs():
                with suppress(Exception):
                    client.job(job.id).delete()
    typer.echo(f"{len(gallery.taken)} states in {STATES}")
    assert not wrong, "\n".join(wrong)


def _parts(gallery: Gallery, script: str) -> Iterator[Callable[[], None]]:
    yield gallery.topics
    yield lambda: gallery.stale(script)
    yield lambda: gallery.first_job(script)
