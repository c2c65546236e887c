"""What of a job's page is on the screen without scrolling."""

from dataclasses import dataclass

from tests.support.browser import Browser

SCREENS = ((1400, 900), (390, 844))
_ABOVE = """
  const inside = (node) => {
    const { top, bottom } = node.getBoundingClientRect();
    return top >= 0 && bottom <= window.innerHeight;
  };
  const text = (selector) => [...document.querySelectorAll(selector)].filter(inside)
    .map((node) => node.innerText).join(" ");
  return [text(".title .state"), text("#why .sentence"), text("#why > .hint")];
"""


@dataclass(frozen=True, slots=True)
class Fold:
    """Texts that are whole above the fold; empty where they are not."""

    state: str
    cause: str
    remedy: str


def above_the_fold(browser: Browser) -> Fold:
    return Fold(*browser.run(_ABOVE))
