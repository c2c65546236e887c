"""Pictures of the page for the documents, of a real run: `make screenshots`.

Kafka, MariaDB and a control plane are started as `sluice up` starts them, its first job runs until
it joins, and a browser looks. Nothing in the pictures is made up.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from service.client import Sluice
from service.config import Settings
from service.demo.servers import provide
from service.demo.up import Up, everything
from service.logs import configure_logs
from tests.support.browser import Browser, open_browser
from tests.support.wait import wait_until

IMAGES = Path(__file__).parents[1] / "docs" / "images"
MOST_BYTES = 150_000
_ROWS_DRAWN = 9  # of ten seconds each: a line, not a dot


@contextmanager
def running() -> Iterator[tuple[Up, Path]]:
    """All that `sluice up` starts, in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="sluice-pictures-") as name:
        directory = Path(name)
        binaries = provide(Settings.load().cache_dir)
        with everything(directory / "up", 0, binaries) as up:
            yield up, directory


def take(browser: Browser, name: str, *, width: int = 1000, height: int = 820) -> None:
    """Keep what is on the screen as `docs/images/<name>.png`."""
    browser.screen(width, height)
    path = IMAGES / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    assert browser.driver.save_screenshot(str(path))
    size = path.stat().st_size
    assert size <= MOST_BYTES, f"{path} has {size} bytes, expected at most {MOST_BYTES}"
    typer.echo(f"{path.name}: {size} bytes")


def main() -> None:
    """Make all pictures anew."""
    configure_logs("WARNING")
    with running() as (up, directory), open_browser(directory / "profile") as browser:
        client = Sluice(up.url)
        browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        browser.screen(1000, 820)
        browser.open(f"{up.url}/#/new")
        browser.until("Script (Flink SQL)", "main")
        browser.find("[data-action=example]").click()
        browser.find("[data-action=check]").click()
        browser.until("It can be submitted", ".answers")
        take(browser, "editor")
        job = client.submit(up.script.read_text(encoding="utf-8"))
        job.wait_until("JOIN", timeout_s=300)
        browser.open(f"{up.url}/#/jobs/{job.id}")
        path = (
            "return document.querySelector('[data-plot=rates] path.line')?.getAttribute('d') ?? ''"
        )
        wait_until(
            lambda: browser.run(path).count("L") >= _ROWS_DRAWN, deadline_s=300, what="a line"
        )
        take(browser, "job", height=1180)
        take(browser, "job-phone", width=390, height=1150)
        browser.open(up.url)
        browser.until("records/s", "main table")
        take(browser, "jobs", height=360)
        job.stop()


if __name__ == "__main__":
    main()
