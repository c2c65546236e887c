"""What a hint names exists: each command and each setting.

Hints of the language are met and followed in `tests/service/sql/test_hints.py`.
"""

import re

import pytest
import typer
from typer.main import get_command

from service.cli.main import app
from service.config import PREFIX, Settings
from tests.support.hints import sites

OF_ENVIRONMENT = ("SLUICE_TOKEN", "SLUICE_TOKEN_FILE", "SLUICE_CA_FILE", "SLUICE_CACHE_DIR")
KEYS = list(dict.fromkeys(hint for site in sites() for hint in site.hints))


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
    for words in re.findall(r"sluice ((?:[a-z-]+ ?)+)", key):
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
