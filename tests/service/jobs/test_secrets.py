import pytest

from joins.plan.plan import KafkaOptions
from service.errors import NotAllowedError, SecretError
from service.security.resolution import with_login
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
    "nobody_provides_it": ("${secret:d}", "does not exist"),
    "no_name": ("${secret:}", "malformed"),
    "another_kind": ("${env:HOME}", "malformed"),
    "leaves_the_directory": ("${secret:../b}", "malformed"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_reference_is_refused(places, text, message):
    with pytest.raises(SecretError, match=message):
        places.resolve(text)


def test_a_pem_file_is_read_where_files_may_be_named_and_its_text_is_never_shown(tmp_path):
    pem = tmp_path / "pem"
    pem.mkdir()
    (pem / "own.pem").write_text("-----BEGIN PRIVATE KEY-----")
    resolver = SecretResolver(None, pem_directories=[pem])
    text = resolver.pem_file(str(pem / "own.pem"))
    assert text == "-----BEGIN PRIVATE KEY-----"
    assert "PRIVATE" not in repr(text)
    with pytest.raises(NotAllowedError):
        SecretResolver(None).pem_file(str(pem / "own.pem"))
    with pytest.raises(SecretError, match="cannot be read") as caught:
        resolver.pem_file(str(pem / "none.pem"))
    assert "correct the path" in caught.value.hint
    (pem / "large.pem").write_text("x" * (1 << 20) + "x")
    with pytest.raises(SecretError, match="more than") as caught:
        resolver.pem_file(str(pem / "large.pem"))
    assert "the required certificates" in caught.value.hint


def test_what_a_client_of_kafka_needs_goes_to_whom_it_is_for(tmp_path, monkeypatch):
    """A broker's password to brokers only, a client's secret to the token endpoint only."""
    for name in ("word", "id", "client-secret"):
        monkeypatch.setenv(f"SLUICE_SECRET_{name.upper().replace('-', '_')}", f"{name} value")
    (tmp_path / "ca.pem").write_text("PEM")
    endpoint, prefix = "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.credentials"
    properties = {
        endpoint: "https://login/token",
        f"{prefix}.client.id": "${secret:id}",
        f"{prefix}.client.secret": "${secret:client-secret}",
        "sasl.password": "${secret:word}",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    kafka = KafkaOptions("broker:9092", "t", tuple(properties.items()))
    allowed = "word@broker:9092,id@login:443,client-secret@login:443"
    secrets = SecretResolver(None, allowed=allowed, pem_directories=[tmp_path])
    assert dict(with_login(kafka, secrets).properties) == {
        endpoint: "https://login/token",
        f"{prefix}.client.id": "id value",
        f"{prefix}.client.secret": "client-secret value",
        "sasl.password": "word value",
        "ssl.truststore.certificates": "PEM",
    }
    for swapped in ("word@login:443,id@login:443,client-secret@login:443", "*@broker:9092"):
        with pytest.raises(NotAllowedError):
            with_login(kafka, SecretResolver(None, allowed=swapped, pem_directories=[tmp_path]))
