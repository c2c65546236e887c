"""Every error's hint is followed by a test, or `tests/hints.txt` says why none does.

Hints of the language are met and followed in `tests/service/sql/test_hints.py`. Of all others the
inventory names the test. What a hint names has to be there: a command, a setting.
"""

import re

import pytest
import typer
from typer.main import get_command

from service.cli.main import app
from service.config import PREFIX, Settings
from tests.support.hints import ROOT, inventory, listed, sites

MOST_LISTED = 381  # fewer are better; a new hint is followed by a test
OF_ENVIRONMENT = ("SLUICE_TOKEN", "SLUICE_TOKEN_FILE", "SLUICE_CA_FILE", "SLUICE_CACHE_DIR")
KEYS = list(dict.fromkeys(key for site in sites() for key in site.keys))
OTHERS = [key for key in KEYS if not key.startswith("service/sql/")]


def test_every_hint_is_in_the_inventory_and_nothing_else_is():
    known = [key for key in inventory() if not key.startswith("service/sql/")]
    assert sorted(set(OTHERS) - set(known)) == [], "say in tests/hints.txt which test follows it"
    assert sorted(set(known) - set(OTHERS)) == [], "they are no hints any more"
    assert sorted(set(listed()) - set(KEYS)) == [], "they are no hints any more"


def test_hints_that_no_test_follows_become_fewer():
    assert len(listed()) <= MOST_LISTED, f"{len(listed())} of {len(KEYS)} are listed only"


def test_the_tests_that_follow_hints_are_there():
    named = {why for kind, why in inventory().values() if kind == "followed"}
    for test in named:
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(), test


def commands():
    """Every command as it is typed: `sluice jobs get`."""
    pending = [("sluice", get_command(app))]
    while pending:
        name, command = pending.pop()
        yield name
        if isinstance(command, typer.core.TyperGroup):
            pending += [(f"{name} {word}", each) for word, each in command.commands.items()]


COMMANDS = set(commands())


@pytest.mark.parametrize("key", [key for key in KEYS if "sluice " in key])
def test_a_command_that_a_hint_names_exists(key):
    for words in re.findall(r"sluice ((?:[a-z-]+ ?)+)", key.partition(": ")[2]):
        first, *more = words.split()
        group = f"sluice {first}"
        assert group in COMMANDS, group
        if any(command.startswith(f"{group} ") for command in COMMANDS):
            assert more, f"{group} is a group of commands"
            assert f"{group} {more[0]}" in COMMANDS, f"{group} {more[0]}"


def test_a_setting_that_a_hint_names_exists():
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | set(OF_ENVIRONMENT)
    named = {name for key in KEYS for name in re.findall(r"SLUICE_[A-Z_]*[A-Z]", key)}
    assert sorted(named - known) == []
