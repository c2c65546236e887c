"""`sluice dim` and `sluice preview`, as their users run them."""

import json
from types import SimpleNamespace

import httpx
import pytest
from typer.testing import CliRunner

from service.cli import tables as cli_tables
from service.cli.main import app
from service.client import Sluice
from tests.support.lanes import some_of

pytestmark = pytest.mark.usefixtures("processes")

COMMANDS = {
    "tables": (["dim", "ls", "enriched"], 0, "country, item"),
    "row_that_was_deleted": (["dim", "get", "enriched", "users", "2"], 1, "user_id=2 was deleted"),
    "page_of_changes": (
        ["dim", "diff", "enriched", "users", "--from", "2", "--limit", "1"],
        0,
        "name=renamed",
    ),
    "history": (["dim", "history", "enriched", "users", "1"], 0, "version 0, the oldest"),
    "page_of_a_history": (
        ["dim", "history", "enriched", "users", "2", "--limit", "1"],
        0,
        "name=user 2",
    ),
    "output": (["preview", "enriched"], 0, "versions prices=1, users=2"),
}


@pytest.fixture
def sluice(tables_plane):
    def run(*arguments):
        return CliRunner().invoke(app, arguments, env={"SLUICE_SERVER": tables_plane.url})

    return run


@pytest.mark.parametrize(("arguments", "code", "shown"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_shows_what_it_was_asked_for(sluice, arguments, code, shown):
    done = sluice(*arguments)
    assert (done.exit_code, shown in done.output) == (code, True), done.output
    assert ("--cursor" in done.output) is ("--limit" in arguments)  # there are more


def test_json_is_the_answer_of_the_api_at_the_version(sluice):
    done = sluice("dim", "get", "enriched", "users", "1", "--version", "2", "-o", "json")
    (row,) = json.loads(done.stdout)["items"]
    assert row["values"] == {"user_id": 1, "name": "user 1"}


DOCUMENTS = {
    "tables": ("dim ls enriched", "dimensions"),
    "rows": ("dim get enriched users", "dimensions/users?limit=100"),
    "keys": ("dim get enriched users 1 2", "dimensions/users?limit=100&key=1&key=2"),
    "changes": ("dim diff enriched users --from 2", "dimensions/users/changes?from=2"),
    "history": ("dim history enriched users 1", "dimensions/users/history?key=1"),
    "output": ("preview enriched", "preview"),
    "letters": ("dlq ls enriched", "dead-letters"),
}


@pytest.mark.parametrize(("command", "path"), some_of(DOCUMENTS, "rows", "changes"))
def test_json_is_the_document_of_the_api_byte_by_byte(sluice, tables_plane, command, path):
    job = f"{tables_plane.url}/v1/jobs/{tables_plane.enriched}"
    found = httpx.get(f"{job}/{path}", trust_env=False, timeout=60).json()
    told = sluice(*command.split(), "-o", "json")
    found = found["items"] if path == "dimensions" else found
    assert told.stdout == json.dumps(found, indent=2, ensure_ascii=False) + "\n"


CONFLICTS = {
    "no_beginning": (["dim", "diff", "enriched", "users"], "--from is missing"),
    "reversed": (
        ["dim", "diff", "enriched", "users", "--from", "3", "--to", "1"],
        "--from 3 is not before --to 1",
    ),
    "cursor_and_from": (
        ["dim", "diff", "enriched", "users", "--from", "1", "--cursor", "x"],
        "--cursor cannot be combined with --from or --to",
    ),
    "no_key": (["dim", "history", "enriched", "users"], "the key is missing"),
    "cursor_and_key_of_a_history": (
        ["dim", "history", "enriched", "users", "1", "--cursor", "x"],
        "--cursor cannot be combined with a key",
    ),
    "cursor_and_key": (
        ["dim", "get", "enriched", "users", "1", "--cursor", "x"],
        "--cursor cannot be combined with keys or --version",
    ),
}


@pytest.mark.parametrize(("arguments", "told"), CONFLICTS.values(), ids=CONFLICTS)
def test_what_does_not_go_together_is_told_in_the_words_of_options(sluice, arguments, told):
    done = sluice(*arguments)
    assert done.exit_code == 2
    assert told in " ".join(done.output.replace("│", " ").split())


def test_a_terminal_gets_two_columns_for_where_a_row_is_from(tables_plane, monkeypatch, capsys):
    with Sluice(tables_plane.url) as client:
        answer = client.job("enriched").inspect.preview(limit=1)
    monkeypatch.setattr(cli_tables, "console", lambda: SimpleNamespace(is_terminal=True))
    cli_tables._show_preview(answer)
    heads, row, _, topic, *_ = capsys.readouterr().out.splitlines()
    assert heads.split() == ["user_id", "name", "price", "RECORD", "BATCH"]
    assert row.split()[-2:] == ["0/0", "0"]
    assert topic.split() == ["topic", "clicks"]
    columns = [each for each in answer.columns if each.name not in cli_tables._COORDINATES]
    cli_tables._show_preview(answer.model_copy(update={"columns": columns}))
    heads, row, *_ = capsys.readouterr().out.splitlines()
    assert heads.split() == ["user_id", "name", "price", "BATCH"], "rows of windows"
    assert row.split()[-1] == "0"
