"""A registry's schemas by number, over real HTTP."""

import ssl
from dataclasses import replace

import pytest

from joins.adapters.registry import SchemaRegistry, check_registries
from joins.plan.connections import RegistryOptions
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.formats import KafkaFormat, RecordFormat, RecordKey
from tests.support.certificates import self_signed
from tests.support.registry import registry

pytestmark = pytest.mark.usefixtures("processes")  # openssl, and what the HTTP client imports


def test_a_schema_is_asked_for_once():
    with registry() as own:
        own.add(7, "int")
        with SchemaRegistry(RegistryOptions(f"{own.url}/")) as schemas:
            assert [schemas.avro_schema(7) for _ in range(3)] == ['"int"'] * 3
        assert own.paths == ["/schemas/ids/7"]


def test_a_number_that_nobody_has_may_come():
    with registry() as own, SchemaRegistry(RegistryOptions(own.url)) as schemas:
        assert schemas.avro_schema(7) is None
        own.add(7, "int")
        assert schemas.avro_schema(7) == '"int"'


REFUSED = {
    "of_another_type": ({"schemaType": "PROTOBUF"}, 'of type "PROTOBUF"'),
    "made_of_others": ({"references": [{"name": "a"}]}, "refers to other schemas"),
}


@pytest.mark.parametrize(("more", "message"), REFUSED.values(), ids=REFUSED)
def test_a_schema_that_cannot_be_used_is_refused(more, message):
    with registry() as own, SchemaRegistry(RegistryOptions(own.url)) as schemas:
        own.add(7, "int", **more)
        with pytest.raises(SourceError, match=message):
            schemas.avro_schema(7)
        own.add(7, "int")  # as the hint says
        assert schemas.avro_schema(7) == '"int"'


def test_who_asks_is_told_to_the_registry():
    with registry() as own:
        own.add(7, "int")
        own.user = ("me", "secret")
        with (
            SchemaRegistry(RegistryOptions(own.url)) as schemas,
            pytest.raises(SourceError, match="status 401") as raised,
        ):
            schemas.avro_schema(7)
        with SchemaRegistry(RegistryOptions(own.url, "me:secret")) as schemas:
            assert schemas.avro_schema(7) == '"int"'
    assert not isinstance(raised.value, SourceUnavailableError)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_registry_that_cannot_now_is_asked_again(status):
    with registry() as own, SchemaRegistry(RegistryOptions(own.url)) as schemas:
        own.add(7, "int")
        own.refusals = [status]
        with pytest.raises(SourceUnavailableError, match=f"status {status}"):
            schemas.avro_schema(7)
        assert schemas.avro_schema(7) == '"int"'


def test_a_registry_that_is_away_is_unavailable():
    with registry() as own:
        url = own.url
    with (
        SchemaRegistry(RegistryOptions(url)) as schemas,
        pytest.raises(SourceUnavailableError, match="does not answer"),
    ):
        schemas.avro_schema(7)


def test_an_address_of_something_else_is_told():
    with registry() as own:
        own.add(7, "int")
        with (
            SchemaRegistry(RegistryOptions(f"{own.url}/apis")) as schemas,
            pytest.raises(SourceError, match="is no schema registry"),
        ):
            schemas.avro_schema(7)
        with SchemaRegistry(RegistryOptions(own.url)) as schemas:
            assert schemas.avro_schema(7) == '"int"'


def test_a_registry_is_known_by_its_certificate(tmp_path):
    cert, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with registry(context) as own:
        own.add(7, "int")
        options = RegistryOptions(own.url)
        with (
            SchemaRegistry(options) as schemas,
            pytest.raises(SourceUnavailableError, match="ConnectError"),
        ):
            schemas.avro_schema(7)
        with SchemaRegistry(replace(options, ca=cert.read_text())) as schemas:
            assert schemas.avro_schema(7) == '"int"'


def test_a_registry_may_want_our_certificate(tmp_path):
    cert, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(cert)
    context.verify_mode = ssl.CERT_REQUIRED
    with registry(context) as own:
        own.add(7, "int")
        pem = cert.read_text()
        options = RegistryOptions(own.url, ca=pem, cert=pem, key=key.read_text())
        with SchemaRegistry(options) as schemas:
            assert schemas.avro_schema(7) == '"int"'


def test_certificates_that_cannot_be_used_are_told(tmp_path):
    cert, key = (path.read_text() for path in self_signed(tmp_path))
    options = RegistryOptions("https://127.0.0.1:1", cert=cert, key=key)
    for bad in ({"ca": "odd"}, {"cert": "odd"}, {"key": "odd"}, {"key": None}):
        with pytest.raises(SourceError, match=r"certificates .* cannot be used"):
            SchemaRegistry(replace(options, **bad))
    SchemaRegistry(options).close()


def test_a_password_is_not_shown():
    assert "secret" not in repr(RegistryOptions("http://a", "me:secret", key="secret"))


def test_the_newest_schema_of_a_subject_is_known_by_its_name():
    with registry() as own, SchemaRegistry(RegistryOptions(own.url)) as schemas:
        assert schemas.newest_avro_schema("a/b-value") is None
        own.add(7, "int")
        own.subjects["a/b-value"] = 7
        assert schemas.newest_avro_schema("a/b-value") == '"int"'


def test_a_schema_is_registered_once_under_its_subject():
    with registry() as own, SchemaRegistry(RegistryOptions(own.url)) as schemas:
        assert [schemas.number_of("t-value", '"int"') for _ in range(3)] == [1, 1, 1]
        assert own.paths == ["/subjects/t-value", "/subjects/t-value/versions"]
        assert schemas.number_of("t/key", '"long"') == 2
        assert schemas.number_of("other", '"int"') == 1
        assert own.subjects == {"t-value": 1, "t/key": 2, "other": 1}
    with registry() as own, SchemaRegistry(RegistryOptions(own.url)) as schemas:
        own.add(7, "int")
        own.subjects["t-value"] = 7
        assert schemas.number_of("t-value", '"int"') == 7
        assert own.paths == ["/subjects/t-value"]


def test_a_schema_that_does_not_go_with_others_is_refused():
    with registry() as own, SchemaRegistry(RegistryOptions(own.url)) as schemas:
        own.closed.add("t-value")
        with pytest.raises(SourceError, match="Incompatible schema") as raised:
            schemas.number_of("t-value", '"int"')
        assert "another subject" in raised.value.hint
        assert schemas.number_of("u-value", '"int"') == 1  # as the hint says


def test_whether_a_registry_is_there_is_seen_before():
    form = RecordFormat(KafkaFormat.AVRO_CONFLUENT, (), RegistryOptions("http://127.0.0.1:1"))
    with pytest.raises(SourceUnavailableError):
        check_registries(RecordFormat(), RecordKey(("k",), form))
    check_registries(RecordFormat(), None)
    with registry() as own:
        check_registries(replace(form, registry=RegistryOptions(own.url)), None)
