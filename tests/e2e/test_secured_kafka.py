"""Two logins of one job: tokens for the stream and our own topics, a password for a foreign one.

A provider with TLS signs the tokens, and the broker checks them by a set of keys.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.java import Java
from tests.support.rig import Rig, running_rig
from tests.support.secured import PASSWORD, USER, SecuredBroker, secured_broker
from tests.support.shop import CLICKS_DDL, click
from tests.support.tokens import CLIENT_SECRET, TokenEndpoint, token_endpoint
from tests.support.topics import create_topic, produce

pytestmark = pytest.mark.experiment


def options(properties: dict[str, str]) -> str:
    return "".join(f", 'properties.{name}'='{value}'" for name, value in properties.items())


def enrich_sql(broker: SecuredBroker, tokens: TokenEndpoint, users: str, clicks: str) -> str:
    """The listener for tokens takes nothing else."""
    secret = "sasl.oauthbearer.client.credentials.client.secret"
    login = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(broker.trusted),
        **tokens.login(),
        secret: "${secret:client}",
        "group.id": "enrich",
    }
    password = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": "${secret:word}",
        "ssl.truststore.location": str(broker.trusted),
    }
    return (
        "CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id) NOT ENFORCED) "
        f"WITH ('connector'='upsert-kafka', 'topic'='{users}', 'key.format'='json', "
        f"'value.format'='json', 'properties.bootstrap.servers'='{broker.by_login}'"
        f"{options(password)});"
        f"CREATE TABLE clicks ({CLICKS_DDL}) WITH ('connector'='kafka', 'topic'='{clicks}', "
        f"'properties.bootstrap.servers'='{broker.by_signed_token}', 'format'='json', "
        f"'scan.startup.mode'='earliest-offset'{options(login)});"
        "CREATE TABLE enriched (item_id BIGINT, name STRING) "
        "WITH ('connector'='delta', 'path'='enriched');"
        "INSERT INTO enriched SELECT c.item_id, u.name FROM clicks AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;"
    )


@pytest.fixture
def broker(tmp_path: Path, java: Java, broker_jars: list[Path]) -> Iterator[SecuredBroker]:
    (tmp_path / "pem").mkdir()
    with secured_broker(tmp_path / "pem", java, broker_jars) as found:
        yield found


@pytest.fixture
def tokens(broker: SecuredBroker) -> Iterator[TokenEndpoint]:
    tls = (broker.trusted, broker.trusted.with_name("key.pem"))
    with token_endpoint(broker.token_key, tls) as endpoint:
        yield endpoint


@pytest.fixture
def rig(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rig]:
    monkeypatch.setenv("SLUICE_SECRET_WORD", PASSWORD)
    monkeypatch.setenv("SLUICE_SECRET_CLIENT", CLIENT_SECRET)
    own = {"kafka_bootstrap_servers": None, "allowed_pem_paths": str(tmp_path / "pem")}
    with running_rig(tmp_path / "sluice", kafka, mariadb, **own) as running:
        yield running


@pytest.mark.usefixtures("spark_jars")
def test_a_stream_by_tokens_joins_a_topic_by_password(
    broker: SecuredBroker, tokens: TokenEndpoint, rig: Rig
) -> None:
    users, clicks = (create_topic(broker.open) for _ in range(2))
    produce(broker.open, users, [{"user_id": 1, "name": "Ann"}], keys=[{"user_id": 1}])
    produce(broker.open, clicks, [click(1, 1), click(2, 2)])
    with rig.job(enrich_sql(broker, tokens, users, clicks)) as job:
        rows = job.wait_output("enriched", 2)
        assert {row["item_id"]: row["name"] for row in rows} == {1: "Ann", 2: None}
        before = job.status()["dimensions"][0]["index_version"]
        produce(broker.open, users, [{"user_id": 2, "name": "Bob"}], keys=[{"user_id": 2}])
        job.wait_for(lambda s: s["dimensions"][0]["index_version"] > before, "Bob is there")
        produce(broker.open, clicks, [click(2, 3)])
        rows = job.wait_output("enriched", 3)
        assert {row["item_id"]: row["name"] for row in rows}[3] == "Bob"
        assert job.status()["warnings"] == []
        texts = [job.directory / "plan.json", job.directory / "runner.log"]
        shown = "".join(path.read_text(errors="replace") for path in texts)
        for secret in (PASSWORD, CLIENT_SECRET, "BEGIN CERTIFICATE"):
            assert secret not in shown
