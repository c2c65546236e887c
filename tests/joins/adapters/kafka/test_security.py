"""Every client of ours comes to a broker that asks who it is, or says why it does not."""

import time
from dataclasses import replace

import pyarrow as pa
import pytest

from joins.adapters.kafka.batch_producer import BatchProducer
from joins.adapters.kafka.changelog_producer import ChangelogProducer
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import commit_offsets, committed_offsets
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.topic.check import newest_records
from joins.kernels.changelog.envelope import RECORDS_SCHEMA
from joins.kernels.records.encode import encode_bodies
from joins.plan.errors import SinkError, SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from service.embedded.process import free_port
from tests.support.certificates import encrypted_key, self_signed
from tests.support.secured import PASSWORD, PLAIN_PASSWORD, USER, secured_broker
from tests.support.token_key import TokenKey
from tests.support.tokens import CLIENT_SECRET, token_endpoint
from tests.support.topics import create_topic, produce
from tests.support.wait import wait_until

SCRAM = {"sasl.username": USER, "sasl.password": PASSWORD}
LOGINS = {
    "plain": {"sasl.mechanism": "PLAIN", **SCRAM, "sasl.password": PLAIN_PASSWORD},
    "scram_256": {"sasl.mechanism": "SCRAM-SHA-256", **SCRAM},
    "scram_512": {"sasl.mechanism": "SCRAM-SHA-512", **SCRAM},
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory, java, broker_jars):
    with secured_broker(tmp_path_factory.mktemp("secured"), java, broker_jars) as found:
        yield found


@pytest.fixture(scope="module")
def topic(broker):
    name = create_topic(broker.open)
    produce(broker.open, name, [{"n": 1}])
    return name


@pytest.fixture
def tokens():
    with token_endpoint() as endpoint:
        yield endpoint


def options(servers, topic, **properties):
    return KafkaOptions(servers, topic, tuple(sorted(properties.items())))


def by_login(broker, topic, login):
    trusted = {"ssl.truststore.certificates": broker.trusted.read_text()}
    return options(broker.by_login, topic, **{"security.protocol": "SASL_SSL", **trusted, **login})


def by_token(broker, topic, login):
    return options(broker.by_token, topic, **{"security.protocol": "SASL_PLAINTEXT", **login})


def by_certificate(broker, topic, **more):
    cert, key = (path.read_text() for path in broker.client)
    own = {"ssl.keystore.certificate.chain": cert, "ssl.keystore.key": key}
    trusted = {"ssl.truststore.certificates": broker.trusted.read_text()}
    return options(
        broker.by_certificate, topic, **{"security.protocol": "SSL", **trusted, **own, **more}
    )


def every_client_comes_in(kafka):
    """Admin, both producers, the reader of records and the look at the newest ones."""
    cluster = KafkaCluster(kafka)
    description = cluster.require(kafka.topic)
    first = cluster.end_offsets(description)[0]
    producer = BatchProducer(kafka)
    rows = pa.array([b"sent"], pa.binary())
    producer.send([encode_bodies(rows, rows, {}, pa.array([0]).to_numpy(), 1 << 20)])
    producer.close()
    changelog = ChangelogProducer(kafka, 1, "t")
    changelog.send(pa.record_batch([[b"k"], [b"sent too"], [0]], schema=RECORDS_SCHEMA))
    changelog.close()
    with KafkaRecords(kafka) as records:
        name = StreamTopics.one(description.name, description.topic_id)
        (batch,) = records.batches(name, {0: (first, first + 1)})
        assert batch.column("value").to_pylist() == [b"sent"]
        (batch,) = records.batches(name, {0: (first + 1, first + 2)})
        assert batch.column("value").to_pylist() == [b"sent too"]
    assert newest_records(kafka, 1)[0].value == b"sent too"
    commit_offsets(cluster.connection, "g", kafka.topic, {0: first})
    assert committed_offsets(cluster.connection, "g", kafka.topic) == {0: first}


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
def test_a_password_lets_every_client_in(broker, topic, login):
    every_client_comes_in(by_login(broker, topic, login))


def test_a_token_lets_every_client_in(broker, topic, tokens):
    every_client_comes_in(by_token(broker, topic, tokens.login()))
    every_client_comes_in(by_login(broker, topic, tokens.login()))


@pytest.fixture
def signed(broker, tmp_path):
    """A provider with TLS whose tokens the broker checks, and a login there."""
    tls = self_signed(tmp_path)
    with token_endpoint(broker.token_key, tls) as endpoint:
        trusted = broker.trusted.read_text() + tls[0].read_text()
        login = {"security.protocol": "SASL_SSL", "ssl.truststore.certificates": trusted}
        yield endpoint, {**login, **endpoint.login()}


def test_a_signed_token_of_a_provider_with_tls_lets_every_client_in(broker, topic, signed):
    every_client_comes_in(options(broker.by_signed_token, topic, **signed[1]))


def test_a_token_of_another_key_or_for_others_is_told(broker, topic, signed, tokens, tmp_path):
    endpoint, login = signed
    (tmp_path / "other").mkdir()
    with token_endpoint(TokenKey(tmp_path / "other")) as other:
        for provider in (other, tokens):  # another key, none
            error = refused(options(broker.by_signed_token, topic, **{**login, **provider.login()}))
            assert "SaslAuthenticationFailedError" in error.message
    endpoint.audience = "others"
    error = refused(options(broker.by_signed_token, topic, **login))
    assert "SaslAuthenticationFailedError" in error.message
    assert CLIENT_SECRET not in error.message


def test_a_provider_that_nobody_trusts_is_told(broker, topic, signed):
    trusted = {"ssl.truststore.certificates": broker.trusted.read_text()}
    kafka = options(broker.by_signed_token, topic, **{**signed[1], **trusted})
    assert "token endpoint" in refused(kafka, SourceUnavailableError).message


def test_a_certificate_lets_every_client_in(broker, topic, tmp_path):
    every_client_comes_in(by_certificate(broker, topic))
    locked = encrypted_key(tmp_path, broker.client[1]).read_text()
    own = {"ssl.keystore.key": locked, "ssl.key.password": "x"}
    every_client_comes_in(by_certificate(broker, topic, **own))


def test_tuning_is_taken_by_every_client(broker, topic):
    tuned = {
        "client.id": "tuned",
        "fetch.max.bytes": "1000",
        "max.partition.fetch.bytes": "1000",
        **{f"{name}.buffer.bytes": "65536" for name in ("send", "receive")},
        **{f"reconnect.backoff{more}.ms": "100" for more in ("", ".max")},
        **{"retry.backoff.ms": "50", "metadata.max.age.ms": "60000"},
        "connections.max.idle.ms": "60000",
    }
    every_client_comes_in(options(broker.open, topic, **tuned))


def test_a_token_is_got_anew_before_the_session_ends(broker, topic, tokens):
    """The broker ends sessions with their tokens; what reads on must have had another one."""
    tokens.life_s = 2
    kafka = by_token(broker, topic, tokens.login())
    cluster = KafkaCluster(kafka, keep_open=True)
    wait_until(lambda: cluster.end_offsets(topic) and len(tokens.forms) >= 3, what="three tokens")
    cluster.close()


def refused(kafka, error=SourceError):
    """What each kind of client says."""
    with pytest.raises(error) as caught:
        KafkaCluster(kafka).describe(kafka.topic)
    with pytest.raises(SinkError):
        BatchProducer(kafka).partitions()
    return caught.value


WRONG = {
    "a_wrong_password": {**LOGINS["scram_512"], "sasl.password": "guessed"},
    "an_unknown_user": {**LOGINS["plain"], "sasl.username": "eve"},
}


@pytest.mark.parametrize("login", WRONG.values(), ids=WRONG)
def test_who_may_not_come_in_is_told_so_at_once(broker, topic, login):
    began_at = time.monotonic()
    error = refused(by_login(broker, topic, login))
    assert "SaslAuthenticationFailedError" in error.message
    assert not isinstance(error, SourceUnavailableError)
    assert time.monotonic() - began_at < 15
    assert "guessed" not in error.message
    every_client_comes_in(by_login(broker, topic, LOGINS["plain"]))


def test_a_broker_that_nobody_trusts_is_told(broker, topic, tmp_path):
    other = self_signed(tmp_path)[0].read_text()
    kafka = by_login(broker, topic, LOGINS["plain"])
    wrong = replace(
        kafka,
        properties=tuple((n, other if "truststore" in n else v) for n, v in kafka.properties),
    )
    error = refused(wrong)
    assert "CERTIFICATE_VERIFY_FAILED" in error.message
    assert "properties of the connection" in error.hint
    every_client_comes_in(kafka)


def test_a_broker_that_wants_a_certificate_is_told(broker, topic):
    kafka = by_certificate(broker, topic)
    bare = replace(
        kafka, properties=tuple(each for each in kafka.properties if "keystore" not in each[0])
    )
    error = refused(bare)
    assert "certificate" in error.message
    assert "properties of the connection" in error.hint


def test_a_name_that_is_not_in_the_certificate_counts_unless_it_is_not_asked_for(broker, topic):
    kafka = by_login(broker, topic, LOGINS["plain"])
    named = replace(
        kafka, bootstrap_servers=kafka.bootstrap_servers.replace("127.0.0.1", "localhost")
    )
    assert "localhost" in refused(named).message
    unnamed = (("ssl.endpoint.identification.algorithm", ""), *named.properties)
    assert KafkaCluster(replace(named, properties=unnamed)).describe(topic)


BAD_PEM = {
    "no_certificates": {"ssl.truststore.certificates": "nothing"},
    "no_key": {"ssl.keystore.key": "nothing"},
    "another_key": {"ssl.key.password": "x", "ssl.keystore.key": "-----BEGIN PRIVATE KEY-----"},
}


@pytest.mark.parametrize("wrong", BAD_PEM.values(), ids=BAD_PEM)
def test_texts_that_are_no_pem_are_told(broker, topic, wrong):
    error = refused(by_certificate(broker, topic, **wrong))
    assert "PEM texts" in error.message
    assert not isinstance(error, SourceUnavailableError)


def test_a_client_without_a_token_is_told_why(broker, topic, tokens):
    login = tokens.login()
    secret = "sasl.oauthbearer.client.credentials.client.secret"
    error = refused(by_token(broker, topic, {**login, secret: "guessed"}))
    assert "answers 401" in error.message
    assert not isinstance(error, SourceUnavailableError)
    away = {**login, "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{free_port()}/"}
    assert (
        "does not answer" in refused(by_token(broker, topic, away), SourceUnavailableError).message
    )
    for status, body, error_type, what in (
        (503, None, SourceUnavailableError, "answers 503"),
        (200, b"<html>", SourceError, "no token endpoint"),
        (200, b'{"token_type":"Bearer"}', SourceError, "no access_token"),
        (302, None, SourceError, "answers 302"),
    ):
        tokens.status, tokens.body = status, body
        error = refused(by_token(broker, topic, login), error_type)
        assert what in error.message
        assert CLIENT_SECRET not in error.message


def test_a_token_that_the_broker_does_not_take_is_told(broker, topic, tokens):
    tokens.life_s = -100
    error = refused(by_token(broker, topic, tokens.login()))
    assert "SaslAuthenticationFailedError" in error.message


def test_one_token_serves_until_it_grows_old_and_has_the_scope(tokens):
    from joins.adapters.kafka.options import TokenProvider

    provider = TokenProvider({**tokens.login(), "sasl.oauthbearer.scope": "kafka"})
    assert provider.token() == provider.token()
    assert tokens.forms == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}]


@pytest.mark.parametrize(
    ("life", "asked"), [('"3599"', 1), ('"-1"', 3), ('"soon"', 1), ('"inf"', 1), ("NaN", 1)]
)
def test_the_life_of_a_token_may_be_a_text(tokens, life, asked):
    from joins.adapters.kafka.options import TokenProvider

    tokens.body = f'{{"access_token": "a.b.c", "expires_in": {life}}}'.encode()
    provider = TokenProvider(tokens.login())
    assert (provider.token(), provider.token()) == ("a.b.c", "a.b.c")
    assert len(tokens.forms) == asked
    assert provider._renewed_at_s < time.monotonic() + 3_600
