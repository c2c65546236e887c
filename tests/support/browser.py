"""A real Chromium without a window, from Debian's packages chromium and chromium-driver."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.support.wait import wait_until

REQUIRED = "CI_NEEDS_BROWSER"  # .ci/run sets it: a missing browser is an error then
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--no-proxy-server",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--window-size=1280,1000",
)


class Browser:
    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get("about:blank")  # an address that differs in its hash only is not loaded
        self.driver.get(url)

    def text(self, selector: str = "body") -> str:
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join('\\n')",
            selector,
        )

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def call(self, module: str, body: str, *arguments: object) -> Any:
        """Run `body` with the module of the page as `m` and arguments `a`, and await its value."""
        script = (
            "const done = arguments[arguments.length - 1], a = [...arguments].slice(1, -1);"
            f"import(arguments[0]).then(async (m) => {{ {body} }}).then("
            "(value) => done({value}), (error) => done({error: String(error)}));"
        )
        answer = self.driver.execute_async_script(script, f"/ui/{module}", *arguments)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def until(self, expected: str, selector: str = "body", *, deadline_s: float = 60) -> str:
        def says() -> bool:
            return expected in self.text(selector)

        return self.wait(says, expected, selector, deadline_s=deadline_s)

    def wait(
        self,
        condition: Callable[[], Any],
        what: str,
        selector: str = "body",
        *,
        deadline_s: float = 60,
    ) -> str:
        def holds() -> bool:
            try:
                return bool(condition())
            except StaleElementReferenceException:
                return False

        try:
            wait_until(holds, deadline_s=deadline_s, what=what)
        except TimeoutError as exc:
            raise AssertionError(f"{what!r} not in:\n{self.text(selector)}") from exc
        return self.text(selector)

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, selector: str, *, most: int = 30) -> bool:
        """Whether the Tab key comes to an element."""
        for _ in range(most):
            self.press(Keys.TAB)
            if self.run("return document.activeElement.matches(arguments[0])", selector):
                return True
        return False

    def screen(self, width: int, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def complaints(self) -> list[str]:
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own; the test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    driver_program = shutil.which("chromedriver")
    if program is None or driver_program is None:
        told = "no chromium and chromedriver on PATH (Debian: chromium chromium-driver)"
        if os.environ.get(REQUIRED):
            pytest.fail(told)
        pytest.skip(told)
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "localhost,127.0.0.1")  # between us and chromedriver
        patch.setenv("no_proxy", "localhost,127.0.0.1")
        driver = webdriver.Chrome(options, Service(driver_program))
        try:
            driver.set_script_timeout(60)
            yield Browser(driver)
        finally:
            driver.quit()
