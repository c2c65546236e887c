"""`sluice tokens`, from the first token on."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from service.cli.main import app
from service.errors import ConfigError
from service.jobs.supervise.runner_process import environment
from service.security.tokens import Credentials
from tests.support.control_plane import ROOT, control_plane


def sluice(*arguments, **environment):
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    return subprocess.run(
        [sys.executable, "-m", "service.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**own, **environment},
    )


@pytest.mark.usefixtures("processes")
def test_the_first_token_opens_the_way_for_others(tmp_path):
    data_dir = tmp_path / "data"
    first = sluice(
        "tokens", "create", "--name", "root", "--scope", "admin", "--data-dir", str(data_dir)
    )
    assert first.returncode == 0, first.stderr
    token = first.stdout.strip()
    assert token.startswith("slc_")
    assert token not in first.stderr
    file = tmp_path / "token"
    file.write_text(token + "\n")
    with control_plane(data_dir, auth_required=True) as plane:
        without = sluice("jobs", "ls", SLUICE_SERVER=plane.url)
        assert without.returncode == 4
        assert without.stderr.startswith("error: request has no token\nhint: ")
        admin = {"SLUICE_SERVER": plane.url, "SLUICE_TOKEN_FILE": str(file), "SLUICE_TOKEN": None}

        def tokens(*arguments):
            done = CliRunner().invoke(app, ["tokens", *arguments], env=admin)
            assert done.exit_code == 0, done.exception
            return done.stdout

        made = tokens("create", "--name", "ci", "--days", "7", "-o", "json")
        assert json.loads(made)["scope"] == "viewer"
        tokens("revoke", "ci")
        listed = tokens("ls")
        assert "revoked" in listed
        assert token not in listed
    audit = (data_dir / "audit.jsonl").read_text().splitlines()
    assert json.loads(audit[0])["method"] == "tokens create"
    assert json.loads(audit[0])["address"] == "this machine"


FILES = {"empty": "", "two_words": "slc_a slc_b", "not_ascii": "slc_é"}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_token_file_has_one_token(tmp_path, monkeypatch, content):
    file = tmp_path / "token"
    file.write_text(content)
    monkeypatch.delenv("SLUICE_TOKEN", raising=False)
    monkeypatch.setenv("SLUICE_TOKEN_FILE", str(file))
    with pytest.raises(ConfigError, match="token file") as caught:
        Credentials.of_environment()
    assert "slc_" not in caught.value.message
    monkeypatch.setenv("SLUICE_TOKEN", "slc_c")
    assert Credentials.of_environment().token == "slc_c"


@pytest.mark.usefixtures("processes")
def test_the_first_token_of_a_store_elsewhere_is_audited_too(tmp_path):
    store, data_dir = f"sqlite:///{tmp_path / 'elsewhere.db'}", tmp_path / "data"
    places = {"SLUICE_DATABASE_URL": store, "SLUICE_DATA_DIR": str(data_dir)}
    done = sluice("tokens", "create", "--name", "root", **places)
    assert (done.returncode, "cannot be written" in done.stderr) == (0, False)
    (line,) = (data_dir / "audit.jsonl").read_text().splitlines()
    assert json.loads(line)["method"] == "tokens create"


def test_runners_do_not_inherit_the_operators_token(monkeypatch):
    monkeypatch.setenv("SLUICE_TOKEN", "slc_c")
    assert "SLUICE_TOKEN" not in environment()
