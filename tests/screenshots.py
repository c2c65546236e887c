"""Pictures of page and terminal for the documents, of a real run: `make screenshots`.

`ARGS=documents` or `ARGS=states` makes those of the documents, or of a job's states, alone.

Kafka, MariaDB and a control plane are started as `sluice up` starts them, its first job runs until
it joins, and a browser looks; commands are typed on a terminal of their own. Nothing in the
pictures is made up.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from service.client import RemoteJob, Sluice
from service.config import Settings
from service.demo.shop import provide
from service.demo.up import Up, everything
from service.logs import configure_logs
from tests.screenshot_states import take_states
from tests.support.browser import Browser, open_browser
from tests.support.terminal import picture, shown
from tests.support.wait import wait_until

IMAGES = Path(__file__).parents[1] / "docs" / "images"
MOST_BYTES = 150_000
_ROWS_DRAWN = 9  # of ten seconds each: a line, not a dot
_WITHIN_S = 300
_COLUMNS = 104  # of the terminal
_FIRST_ROWS = 50  # the first batch of a JVM takes long
_WIDTH = 1000  # of its picture
_DRAWN_HEIGHT = """
  const { width, height } = document.documentElement.viewBox.baseVal;
  return (arguments[0] * height) / width;
"""
_SELECT = """\
SELECT c.user_id, c.item_id, u.gender, u.name FROM clicks AS c
LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id LIMIT 8
"""


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


def take_terminal(browser: Browser, up: Up, name: str, *commands: tuple[str, ...]) -> None:
    """Keep what commands show on a terminal as `docs/images/<name>.png`."""
    program = str(Path(sys.executable).with_name("sluice"))
    variables = {"SLUICE_SERVER": up.url}
    scenes = []
    for words in commands:
        text = shown([program, *words], width=_COLUMNS, at=up.directory, variables=variables)
        scenes.append((" ".join(("sluice", *words)), text))
    drawn = up.directory / f"{name}.svg"
    drawn.write_text(picture(scenes, width=_COLUMNS), encoding="utf-8")
    browser.open(drawn.as_uri())
    height = browser.run(_DRAWN_HEIGHT, _WIDTH)
    take(browser, name, width=_WIDTH, height=round(height))


def _joined(job: RemoteJob) -> int:
    probe = job.status().probe
    return 0 if probe is None else probe.joined_records


def take_commands(browser: Browser, up: Up, client: Sluice, script: str) -> None:
    """Pictures of commands, beside a job that joins and one that is paused."""
    paused = client.submit(script, name="nightly")
    paused.wait_until("JOIN", timeout_s=_WITHIN_S)
    wait_until(lambda: _joined(paused) > _FIRST_ROWS, deadline_s=120, what="its first batches")
    paused.pause()
    wait_until(lambda: paused.status().state == "PAUSED", deadline_s=120, what="it is paused")
    take_terminal(browser, up, "jobs-ls", ("jobs", "ls"))
    take_terminal(browser, up, "top", ("top", "--once"))
    tables = up.directory / "look.sql"
    declared = script.partition("CREATE TABLE enriched")[0]
    tables.write_text(f"{declared}{_SELECT};\n", encoding="utf-8")
    take_terminal(browser, up, "sql", ("sql", tables.name))


def take_documents(browser: Browser, up: Up, client: Sluice, script: str) -> None:
    """Pictures of the editor, of one job and of several."""
    browser.screen(1000, 820)
    browser.open(f"{up.url}/#/new")
    browser.until("Script (Flink SQL)", "main")
    browser.find("[data-action=example]").click()
    browser.find("[data-action=check]").click()
    browser.until("It can be submitted", ".answers", deadline_s=_WITHIN_S)
    take(browser, "editor")
    job = client.submit(script)
    job.wait_until("JOIN", timeout_s=_WITHIN_S)
    browser.open(f"{up.url}/#/jobs/{job.id}")
    path = "return document.querySelector('[data-plot=rates] path.line')?.getAttribute('d') ?? ''"
    wait_until(
        lambda: browser.run(path).count("L") >= _ROWS_DRAWN, deadline_s=_WITHIN_S, what="a line"
    )
    take(browser, "job", height=1180)
    take(browser, "job-phone", width=390, height=1150)
    browser.open(up.url)
    browser.until("/s", "main table")
    take(browser, "jobs", height=360)
    take_commands(browser, up, client, script)
    job.delete()


PARTS = {"documents": take_documents, "states": take_states}


def main() -> None:
    """Take the pictures of these parts again, or all."""
    configure_logs("WARNING")
    with running() as (up, directory), open_browser(directory / "profile") as browser:
        client, script = Sluice(up.url), up.script.read_text(encoding="utf-8")
        browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        for part in sys.argv[1:] or PARTS:
            PARTS[part](browser, up, client, script)


if __name__ == "__main__":
    main()
