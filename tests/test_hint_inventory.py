"""What a hint names exists: each command and each setting.

Hints of the language are met and followed in `tests/service/sql/test_hints.py`.
"""

import re

import typer
from typer.main import get_command

from service.cli.main import app
from service.config import PREFIX, Settings
from tests.support.hints import sites

OF_ENVIRONMENT = ("SLUICE_TOKEN", "SLUICE_TOKEN_FILE", "SLUICE_CA_FILE", "SLUICE_CACHE_DIR")


def commands():
    """Every command as it is typed: `sluice jobs get`."""
    pending = [("sluice", get_command(app))]
    while pending:
        name, command = pending.pop()
        yield name
        if isinstance(command, typer.core.TyperGroup):
            pending += [(f"{name} {word}", each) for word, each in command.commands.items()]


def missing(hint, known):
    """What `hint` names as a command and is none."""
    for words in re.findall(r"sluice ((?:[a-z-]+ ?)+)", hint):
        first, *more = words.split()
        group = f"sluice {first}"
        is_group = any(command.startswith(f"{group} ") for command in known)
        typed = f"{group} {more[0] if more else '(none)'}" if is_group else group
        if typed not in known:
            yield typed


def test_a_command_that_a_hint_names_exists():
    known = set(commands())
    assert {
        key: typed
        for site in sites()
        for key, hint in zip(site.keys, site.hints, strict=True)
        if (typed := list(missing(hint, known)))
    } == {}


def test_a_setting_that_a_hint_names_exists():
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | set(OF_ENVIRONMENT)
    hints = [hint for site in sites() for hint in site.hints]
    named = {name for hint in hints for name in re.findall(r"SLUICE_[A-Z_]*[A-Z]", hint)}
    assert named
    assert sorted(named - known) == []
