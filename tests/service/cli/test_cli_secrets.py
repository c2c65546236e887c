"""`sluice secrets`: values go in by standard input or a prompt, and never come out."""

import json
import stat

import pytest
from typer.testing import CliRunner

from service.cli.secrets import app
from service.config import Settings
from service.embedded.process import free_port
from service.errors import ControlPlaneError, SecretError, UnreachableError
from service.jobs.store.layout import JobLayout
from service.security.audit import AuditLog
from service.security.secrets import SecretResolver
from tests.support.certificates import self_signed
from tests.support.control_plane import control_plane, script
from tests.support.documents import Documents

VALUE = "c4n4ry 'ÿ"


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SLUICE_PORT", str(free_port()))  # no control plane answers there
    monkeypatch.delenv("SLUICE_SERVER", raising=False)
    monkeypatch.delenv("SLUICE_SECRET_SHOP", raising=False)  # other tests of this process have it
    return tmp_path / "data"


def run(*arguments, given=None):
    done = CliRunner().invoke(app, arguments, input=given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert VALUE not in done.output
    return done


def resolved(data_dir, name):
    return SecretResolver.of(Settings.load(data_dir=data_dir), None).resolve(f"${{secret:{name}}}")


def test_a_secret_is_kept_for_its_owner_replaced_and_removed(data_dir):
    run("set", "shop", given=f"{VALUE}\n")
    path = data_dir / "secrets" / "shop"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert resolved(data_dir, "shop") == VALUE
    run("set", "shop", given="other")
    assert resolved(data_dir, "shop") == "other"
    assert [file.name for file in path.parent.iterdir()] == ["shop"]
    run("rm", "shop")
    with pytest.raises(SecretError, match="does not exist") as caught:
        resolved(data_dir, "shop")
    assert "sluice secrets set shop" in caught.value.hint


def test_a_value_is_no_argument(data_dir):
    assert CliRunner().invoke(app, ["set", "shop", VALUE]).exit_code == 2
    assert not (data_dir / "secrets").exists()


REFUSED = {
    "empty": ("shop", "\n", "0 characters"),
    "two_lines": ("shop", "a\nb\n", "3 characters"),
    "too_long": ("shop", "x" * 1025, "1025 characters"),
    "control_characters": ("shop", "a\x1b[31m", "printable"),
    "a_name_that_leaves_the_directory": ("../shop", "x", "malformed"),
    "a_hidden_file": (".shop", "x", "malformed"),
}


@pytest.mark.parametrize(("name", "value", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_secret_is_refused(data_dir, name, value, message):
    with pytest.raises(SecretError, match=message):
        run("set", name, given=value)
    assert not list(data_dir.glob("secrets/*"))


def test_a_certificate_with_its_key_is_a_secret_of_many_lines(data_dir, tmp_path, processes):
    cert, key = self_signed(tmp_path)
    for name, path in {"ca": cert, "key": key}.items():
        run("set", name, given=path.read_text())
        assert (data_dir / "secrets" / name).read_text().strip() == path.read_text().strip()
    with pytest.raises(SecretError, match="printable"):
        run("set", "both", given=f"{cert.read_text()}and more")


def test_what_is_not_kept_here_cannot_be_removed(data_dir, monkeypatch):
    monkeypatch.setenv("SLUICE_SECRET_SHOP", "x")
    with pytest.raises(SecretError, match="does not exist in") as caught:
        run("rm", "shop")
    assert "environment" in caught.value.hint


def test_secrets_are_listed_with_their_places_and_jobs(data_dir, tmp_path, monkeypatch):
    directory = tmp_path / "mounted"
    directory.mkdir()
    (directory / "lake").write_text(VALUE)
    (directory / "..data").write_text("kubernetes' own")
    monkeypatch.setenv("SLUICE_SECRETS_DIR", str(directory))
    monkeypatch.setenv("SLUICE_SECRET_SHOP_A", VALUE)
    for name in ("shop-a", "lake", "alone"):
        run("set", name, given=VALUE)
    layout = JobLayout(data_dir / "jobs" / "one")
    layout.create()
    layout.plan.write_text("${secret:shop-a} ${secret:lake}")
    found = {(s["name"], s["source"]): s for s in json.loads(run("ls", "-o", "json").stdout)}
    assert {place: (s["jobs"], s["hidden_by"]) for place, s in found.items()} == {
        ("shop_a", "environment"): (["one"], None),
        ("lake", "directory"): (["one"], None),
        ("alone", "kept"): ([], None),
        ("lake", "kept"): (["one"], "directory"),
        ("shop-a", "kept"): (["one"], "environment"),
    }
    assert "takes precedence" in run("ls").output
    assert "takes precedence" in run("set", "lake", given=VALUE).output
    assert "job one references it" in run("rm", "lake").output


def test_without_a_control_plane_the_directory_is_named(data_dir):
    said = run("set", "shop", given=VALUE).output
    assert "no control plane answers" in said
    assert f'stored in "{data_dir / "secrets"}"' in said
    assert f'from "{data_dir / "secrets"}"' in run("rm", "shop").output


def test_a_server_that_is_named_must_answer(data_dir):
    server = f"http://127.0.0.1:{free_port()}"
    for command in (("set", "shop"), ("ls",), ("rm", "shop")):
        with pytest.raises(UnreachableError, match="cannot be reached"):
            run(*command, "--server", server, given=VALUE)
    assert not (data_dir / "secrets").exists()


def test_a_value_does_not_travel_in_the_clear(data_dir):
    with pytest.raises(ControlPlaneError, match="unencrypted"):
        run("set", "shop", "--server", "http://db.example:8326", given=VALUE)


@pytest.fixture
def plane(processes, tmp_path, monkeypatch):
    monkeypatch.delenv("SLUICE_SECRET_SHOP", raising=False)  # other tests of this process have it
    with control_plane(tmp_path / "of the server") as running:
        monkeypatch.setenv("SLUICE_DATA_DIR", str(tmp_path / "of this shell"))
        monkeypatch.setenv("SLUICE_SERVER", running.url)
        yield running


def test_the_server_that_runs_keeps_the_secret_where_it_reads_it(plane, tmp_path):
    settings = plane.services.settings
    said = run("set", "shop", given=f"{VALUE}\n").output
    assert f'by the control plane at {plane.url}, in "{settings.kept_secrets_dir}"' in said
    assert not (tmp_path / "of this shell").exists()
    resolver = SecretResolver.of(settings, None)
    assert resolver.resolve("${secret:shop}") == VALUE
    (known,) = json.loads(run("ls", "-o", "json").stdout)
    assert (known["name"], known["source"]) == ("shop", "kept")
    (entry,) = [e for e in audited(settings) if e["method"] == "PUT"]
    assert (entry["object"], entry["outcome"]) == ("/v1/secrets/shop", "done")
    assert VALUE not in AuditLog(settings).path.read_text()
    assert f"from the control plane at {plane.url}" in run("rm", "shop").output
    with pytest.raises(SecretError):
        resolver.resolve("${secret:shop}")
    run("set", "mine", "--data-dir", str(tmp_path / "of this shell"), given=VALUE)
    assert (tmp_path / "of this shell" / "secrets" / "mine").exists()


@pytest.mark.parametrize(("name", "value", "message"), REFUSED.values(), ids=REFUSED)
def test_the_server_refuses_what_cannot_be_a_secret(plane, name, value, message):
    with pytest.raises((SecretError, ControlPlaneError), match=message):
        run("set", name, given=value)
    assert not plane.services.settings.kept_secrets_dir.exists()


def test_a_job_that_refers_to_a_secret_is_named_with_what_makes_it_read_it(plane, monkeypatch):
    run("set", "shop", given="open sesame")
    with Documents(plane.url) as client:
        job_id = client.submit(script(), "reader")["id"]
    said = run("set", "shop", given="open sesame").output
    assert f"sluice jobs stop {job_id} and sluice jobs resume {job_id}" in said.replace("\n", " ")


def test_a_missing_secret_says_what_to_run_for_a_job_that_is_there(data_dir, tmp_path):
    settings, layout = Settings.load(data_dir=data_dir), JobLayout(tmp_path / "one")
    layout.create()
    resolver = SecretResolver.of(settings, layout.job_dir)
    for stored in (False, True):
        if stored:
            layout.plan.write_text("{}")
        with pytest.raises(SecretError) as missing:
            resolver.resolve("${secret:shop}")
        assert "sluice secrets set shop" in missing.value.hint
        assert ("; then run sluice jobs resume one." in missing.value.hint) is stored


def audited(settings):
    lines = AuditLog(settings).path.read_text().splitlines()
    return [json.loads(line) for line in lines]
