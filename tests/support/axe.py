"""axe-core, which looks for what keeps people out: for tests only, fetched by npm and checked."""

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from service.config import Settings
from service.embedded.process import file_lock
from tests.support.browser import REQUIRED, Browser

PACKAGE = "axe-core-4.14.1.tgz"
SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
_RUN = """
  const done = arguments[arguments.length - 1];
  axe.run(document, { resultTypes: ["violations"] }).then((report) => done(report.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`)));
"""


def axe_source() -> str:
    """The script; the test is skipped where there is no npm to fetch it."""
    home = Settings.load().cache_dir / "npm"
    home.mkdir(parents=True, exist_ok=True)
    archive = home / PACKAGE
    with file_lock(home / "axe.lock"):
        if not archive.exists():
            _fetch(archive)
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    assert digest == SHA512, f"{archive} is another file than the one that was locked"
    with tarfile.open(archive) as packed:
        member = packed.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


def violations(browser: Browser, source: str) -> list[str]:
    browser.run(source)
    return browser.driver.execute_async_script(_RUN)


def _fetch(archive: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        missing = "no npm on PATH (Debian: npm)"
        if os.environ.get(REQUIRED):
            pytest.fail(missing)
        pytest.skip(missing)
    name, _, version = PACKAGE.removesuffix(".tgz").rpartition("-")
    with tempfile.TemporaryDirectory(dir=archive.parent) as aside:
        command = [npm, "pack", f"{name}@{version}", "--silent", "--pack-destination", aside]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=aside)
        (Path(aside) / PACKAGE).replace(archive)
