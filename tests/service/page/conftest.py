"""The control plane and the browser of a file of tests."""

import pytest

from tests.support.browser import open_browser
from tests.support.page_plane import Plane


@pytest.fixture(scope="module", autouse=True)
def secret(secret):
    """All pages show jobs that refer to it."""


@pytest.fixture(scope="module")
def plane(processes, secret, tmp_path_factory):
    plane = Plane(tmp_path_factory.mktemp("data"))
    plane.start()
    try:
        yield plane
    finally:
        plane.end()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory, processes):
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def shaken(chromium):
    """The browser of a test in which requests fail: its console tells of each."""
    chromium.complaints()
    chromium.screen(1280)
    chromium.scheme("light")
    return chromium


@pytest.fixture
def browser(shaken):
    yield shaken
    assert shaken.complaints() == []


@pytest.fixture
def page(plane, browser):
    """The browser with the first page of a control plane."""
    browser.open(plane.url)
    return browser
