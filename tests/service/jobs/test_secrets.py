import pytest

from service.errors import SecretError
from service.security.secrets import SecretResolver, write_secrets


@pytest.fixture
def places(tmp_path, monkeypatch):
    job_dir, secrets_dir = tmp_path / "job", tmp_path / "secrets"
    job_dir.mkdir()
    secrets_dir.mkdir()
    write_secrets(job_dir, {"a": "of job"})
    for name in ("a", "b"):
        monkeypatch.setenv(f"SLUICE_SECRET_{name.upper()}", "of environment")
    for name in ("a", "b", "c"):
        (secrets_dir / name).write_text("of file\n")
    return SecretResolver(secrets_dir, job_dir)


RESOLVED = {
    "plain_text": ("secret", "secret"),
    "job_comes_first": ("${secret:a}", "of job"),
    "environment_comes_second": ("${secret:b}", "of environment"),
    "file_comes_last_without_its_line_end": ("${secret:c}", "of file"),
    "inside_text": ("x${secret:c}y", "xof filey"),
}


@pytest.mark.parametrize(("text", "value"), RESOLVED.values(), ids=RESOLVED)
def test_a_reference_is_resolved(places, text, value):
    assert places.resolve(text) == value


REFUSED = {
    "nobody_provides_it": ("${secret:d}", "not provided"),
    "no_name": ("${secret:}", "malformed"),
    "another_kind": ("${env:HOME}", "malformed"),
    "leaves_the_directory": ("${secret:../b}", "malformed"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_reference_is_refused(places, text, message):
    with pytest.raises(SecretError, match=message):
        places.resolve(text)
