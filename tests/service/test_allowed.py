"""The operator's lists: what a plan reaches for must be on them."""

from dataclasses import replace

import pytest

from joins.plan.connections import RegistryOptions
from joins.plan.formats import JSON_FORMAT, KafkaFormat, RecordFormat
from joins.plan.plan import (
    DeltaSink,
    DeltaTableSource,
    FileFormat,
    FileSource,
    FurtherInsert,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    SnapshotEvidence,
    TopicHistory,
    TopicSource,
)
from service.config import Settings
from service.connectors.plans import check_allowed
from service.errors import ConfigError, NotAllowedError
from service.security.allowed import confined_path
from service.security.resolution import output_path
from service.sql.planner.planner import plan
from tests.service.sql.scripts import selecting

PLAN = plan(selecting("t"))  # database db:3306, broker broker:9092
ALLOWED = {
    "no_lists": {},
    "by_name": {"allowed_databases": "other:1,db:3306", "allowed_brokers": "broker:9092"},
    "by_pattern": {"allowed_databases": "d*:3306", "allowed_brokers": "*:*"},
    "in_other_letters": {"allowed_databases": "DB:3306"},
    "the_clusters_own_broker": {
        "allowed_brokers": "other:9092",
        "kafka_bootstrap_servers": "x:1,broker:9092",
    },
}
DENIED = {
    "another_database": ({"allowed_databases": "db2:3306"}, "db:3306", "SLUICE_ALLOWED_DATABASES"),
    "another_port": ({"allowed_databases": "db:3307"}, "db:3306", "SLUICE_ALLOWED_DATABASES"),
    "a_part_of_it": ({"allowed_databases": "d:3306"}, "db:3306", "SLUICE_ALLOWED_DATABASES"),
    "no_regular_expression": ({"allowed_databases": "d.:3306"}, "db:3306", "SLUICE_ALLOWED"),
    "a_star_is_not_a_port": ({"allowed_databases": "*:1"}, "db:3306", "SLUICE_ALLOWED_DATABASES"),
    "another_broker": ({"allowed_brokers": "b:9092"}, "broker:9092", "SLUICE_ALLOWED_BROKERS"),
}


@pytest.mark.parametrize("lists", ALLOWED.values(), ids=ALLOWED)
def test_what_is_on_the_lists_is_allowed(lists, tmp_path):
    check_allowed(PLAN, Settings.load(data_dir=tmp_path, **lists))


@pytest.mark.parametrize(("lists", "server", "setting"), DENIED.values(), ids=DENIED)
def test_what_is_not_on_a_list_is_denied_with_the_setting(lists, server, setting, tmp_path):
    with pytest.raises(NotAllowedError, match=server) as caught:
        check_allowed(PLAN, Settings.load(data_dir=tmp_path, **lists))
    assert setting in caught.value.hint


def test_each_broker_of_a_list_is_compared(tmp_path):
    source = PLAN.probe.source
    kafka = replace(source.kafka, bootstrap_servers="broker:9092,evil:9092")
    probe = replace(PLAN.probe, source=replace(source, kafka=kafka))
    with pytest.raises(NotAllowedError, match="evil:9092"):
        check_allowed(
            replace(PLAN, probe=probe),
            Settings.load(data_dir=tmp_path, allowed_brokers="broker:9092"),
        )


def with_connect(url):
    """The plan with a topic as its dimension, whose connector is at `url`."""
    kafka = KafkaOptions("broker:9092", "shop.shop.d")
    evidence = SnapshotEvidence(connect_url=url, connector="shop")
    source = TopicSource(kafka, RecordFormat(KafkaFormat.DEBEZIUM_JSON), evidence=evidence)
    return replace(PLAN, dimensions=(replace(PLAN.dimensions[0], source=source),))


@pytest.mark.parametrize("url", ["http://connect:8083", "https://Connect:8083/api"])
def test_an_allowed_connect_is_reached(url, tmp_path):
    check_allowed(with_connect(url), Settings.load(data_dir=tmp_path))
    lists = {"allowed_connect": "connect:8083", "allowed_brokers": "broker:9092"}
    check_allowed(with_connect(url), Settings.load(data_dir=tmp_path, **lists))


@pytest.mark.parametrize("url", ["http://connect", "https://connect", "http://evil:8083"])
def test_another_connect_and_another_broker_are_denied(url, tmp_path):
    with pytest.raises(NotAllowedError, match="Kafka Connect") as caught:
        check_allowed(
            with_connect(url), Settings.load(data_dir=tmp_path, allowed_connect="connect:8083")
        )
    assert "SLUICE_ALLOWED_CONNECT" in caught.value.hint
    with pytest.raises(NotAllowedError, match="broker:9092"):
        check_allowed(with_connect(url), Settings.load(data_dir=tmp_path, allowed_brokers="b:1"))


@pytest.mark.parametrize(("path", "is_allowed"), [("users", True), ("/etc", False)])
def test_the_history_of_a_topic_is_where_files_may_be(path, is_allowed, tmp_path):
    history = TopicHistory(FileSource(path, FileFormat.JSON))
    source = TopicSource(KafkaOptions("broker:9092", "d"), JSON_FORMAT, history=history)
    plan_ = replace(PLAN, dimensions=(replace(PLAN.dimensions[0], source=source),))
    settings = Settings.load(data_dir=tmp_path)
    if is_allowed:
        check_allowed(plan_, settings)
        return
    with pytest.raises(NotAllowedError, match="outside of the warehouse"):
        check_allowed(plan_, settings)


@pytest.mark.parametrize("url", ["http://registry:8081", "https://Registry:8081/apis/ccompat/v7"])
def test_an_allowed_registry_is_reached_and_no_other(url, tmp_path):
    kafka = KafkaOptions("broker:9092", "shop.shop.d")
    format_ = KafkaFormat.DEBEZIUM_AVRO_CONFLUENT
    source = TopicSource(kafka, RecordFormat(format_, registry=RegistryOptions(url)))
    plan_ = replace(PLAN, dimensions=(replace(PLAN.dimensions[0], source=source),))
    check_allowed(plan_, Settings.load(data_dir=tmp_path))
    check_allowed(plan_, Settings.load(data_dir=tmp_path, allowed_registries="registry:8081"))
    with pytest.raises(NotAllowedError, match="schema registry") as caught:
        check_allowed(plan_, Settings.load(data_dir=tmp_path, allowed_registries="evil:8081"))
    assert "SLUICE_ALLOWED_REGISTRIES" in caught.value.hint


def with_client(**properties):
    kafka = KafkaOptions("broker:9092", "s", tuple(properties.items()))
    return replace(PLAN, probe=replace(PLAN.probe, source=KafkaSource(kafka)))


@pytest.mark.parametrize("url", ["http://login:8080/t", "https://Login:8080", "http://login:8080"])
def test_an_allowed_token_endpoint_is_asked_and_no_other(url, tmp_path):
    plan_ = with_client(**{"sasl.oauthbearer.token.endpoint.url": url})
    check_allowed(plan_, Settings.load(data_dir=tmp_path))
    allowed = {"allowed_token_endpoints": "login:8080", "allowed_brokers": "broker:9092"}
    check_allowed(plan_, Settings.load(data_dir=tmp_path, **allowed))
    with pytest.raises(NotAllowedError, match="token endpoint") as caught:
        check_allowed(plan_, Settings.load(data_dir=tmp_path, allowed_token_endpoints="evil:80"))
    assert "SLUICE_ALLOWED_TOKEN_ENDPOINTS" in caught.value.hint


@pytest.mark.parametrize("store", ["ssl.truststore.location", "ssl.keystore.location"])
def test_a_pem_file_is_where_the_operator_has_allowed_some(store, tmp_path):
    """None without the setting; no link and no .. leads out of its directories."""
    pem = tmp_path / "pem"
    pem.mkdir()
    (pem / "ca.pem").write_text("x")
    (pem / "out.pem").symlink_to("/etc/passwd")
    inside = with_client(**{store: str(pem / "ca.pem")})
    settings = Settings.load(data_dir=tmp_path, allowed_pem_paths=f"/nowhere:{pem}")
    check_allowed(inside, settings)
    with pytest.raises(NotAllowedError, match="PEM file") as caught:
        check_allowed(inside, Settings.load(data_dir=tmp_path))
    assert "SLUICE_ALLOWED_PEM_PATHS" in caught.value.hint
    for path in ("/etc/passwd", f"{pem}/../jobs", str(pem / "out.pem")):
        with pytest.raises(NotAllowedError, match="PEM file"):
            check_allowed(with_client(**{store: path}), settings)


def test_each_sink_of_a_statement_set_is_compared(tmp_path):
    def with_sink(sink):
        insert = FurtherInsert("s", (), PLAN.joins, None, PLAN.output, "other", sink)
        return replace(PLAN, more_inserts=(insert,))

    settings = Settings.load(data_dir=tmp_path, allowed_brokers="broker:9092")
    with pytest.raises(NotAllowedError, match='"other" names broker "evil:9092"'):
        check_allowed(with_sink(KafkaSink(KafkaOptions("evil:9092", "t"))), settings)
    with pytest.raises(NotAllowedError, match="outside of the warehouse"):
        check_allowed(with_sink(DeltaSink("/etc/t")), settings)
    check_allowed(with_sink(DeltaSink("t")), settings)


@pytest.fixture
def places(tmp_path):
    """Settings with a warehouse, and links in it that lead in and out."""
    settings = Settings.load(data_dir=tmp_path / "data", allowed_paths=str(tmp_path / "lake"))
    for directory in ("data/warehouse/in", "data/jobs/one", "lake", "outside"):
        (tmp_path / directory).mkdir(parents=True)
    (settings.warehouse_dir / "out").symlink_to(tmp_path / "outside")
    (settings.warehouse_dir / "inner").symlink_to(settings.warehouse_dir / "in")
    (settings.warehouse_dir / "shore").symlink_to(tmp_path / "lake")
    (settings.warehouse_dir / "loop").symlink_to("loop")
    (tmp_path / "lake/jobs").symlink_to(tmp_path / "data/jobs")
    (tmp_path / "lake_of_others").mkdir()
    return settings


INSIDE = ("a", "in/a", "inner/a", "shore/a", "{lake}/a", "file://{lake}/a", "{warehouse}/a")
OUTSIDE = (
    "/etc/a",
    "file:///etc/a",
    "out/a",
    "out",
    "{lake}_of_others/a",
    "{lake}/../outside",
    "loop/a",
)


def at(text, settings):
    lake = settings.allowed_directories[0]
    return text.format(lake=lake, warehouse=settings.warehouse_dir)


def tables_at(text, settings):
    path = at(text, settings)
    return DeltaSink(path), DeltaTableSource(path), FileSource(path, FileFormat.JSON)


@pytest.mark.parametrize("path", INSIDE)
def test_a_table_is_in_the_warehouse_or_in_an_allowed_directory(places, path):
    for table in tables_at(path, places):
        assert confined_path(table, places).name == "a"


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_and_no_link_leads_out(places, path):
    for table in tables_at(path, places):
        with pytest.raises(NotAllowedError):
            confined_path(table, places)


def test_an_output_and_files_of_users_are_never_among_our_own_files(places):
    everywhere = Settings.load(data_dir=places.data_dir, allowed_paths="/")
    for path in ("{lake}/jobs/one", "{lake}/jobs", "/"):
        with pytest.raises(NotAllowedError, match="own files"):
            confined_path(DeltaSink(at(path, places)), everywhere)
        with pytest.raises(NotAllowedError, match="own files"):
            confined_path(FileSource(at(path, places), FileFormat.JSON), everywhere)
    confined_path(DeltaTableSource(at("{lake}/jobs/one", places)), everywhere)


@pytest.mark.parametrize("given", [{"allowed_paths": "lake"}, {"allowed_brokers": "broker"}])
def test_a_list_that_is_none_is_refused(given):
    with pytest.raises(ConfigError, match="SLUICE_ALLOWED"):
        Settings.load(**given)


def test_the_path_of_late_records_is_confined_as_an_output(places):
    late = replace(PLAN, probe=replace(PLAN.probe, late_records_path=at("{lake}/late", places)))
    check_allowed(late, places)
    for path in ("/etc/late", at("{lake}/jobs/one", places)):
        outside = replace(PLAN.probe, late_records_path=path)
        with pytest.raises(NotAllowedError):
            check_allowed(replace(PLAN, probe=outside), places)


KEYS = (("s3.access-key", "id"), ("s3.secret-key", "secret"))
AT_MINIO = (*KEYS, ("s3.endpoint", "http://minio:9000"))
STORES_ALLOWED = {
    "any_with_own_keys": ("s3://lake/o", KEYS, None),
    "own_keys_to_an_endpoint": ("s3://lake/o", AT_MINIO, None),
    "listed_with_the_environments": ("s3://lake/o", (), "lake@s3.amazonaws.com:443"),
    "listed_by_pattern": ("s3a://lake/o", AT_MINIO, "*@minio:9000"),
    "a_container": (
        *("abfss://lake@shop.dfs.core.windows.net/o", ()),
        "lake@shop.blob.core.windows.net:443",
    ),
}
STORES_DENIED = {
    "the_environments_without_a_list": ("s3://lake/o", (), None),
    "another_bucket": ("s3://lake/o", KEYS, "pond@s3.amazonaws.com:443"),
    "another_server": ("s3://lake/o", AT_MINIO, "lake@s3.amazonaws.com:443"),
    "a_star_is_not_a_server": ("s3://lake/o", AT_MINIO, "*:9000@s3.amazonaws.com:443"),
}


@pytest.mark.parametrize(("path", "store", "allowed"), STORES_ALLOWED.values(), ids=STORES_ALLOWED)
def test_a_store_may_be_written_and_read(path, store, allowed, tmp_path):
    settings = Settings.load(data_dir=tmp_path, allowed_stores=allowed)
    check_allowed(replace(PLAN, sink=DeltaSink(path, store=store)), settings)
    probe = replace(PLAN.probe, late_records_path=path, late_store=store)
    check_allowed(replace(PLAN, probe=probe), settings)


@pytest.mark.parametrize(("path", "store", "allowed"), STORES_DENIED.values(), ids=STORES_DENIED)
def test_a_store_is_denied_with_the_setting(path, store, allowed, tmp_path):
    if allowed is not None and ":9000@" in allowed:
        with pytest.raises(ConfigError):
            Settings.load(data_dir=tmp_path, allowed_stores=allowed)
        return
    settings = Settings.load(data_dir=tmp_path, allowed_stores=allowed)
    dimension = replace(PLAN.dimensions[0], source=DeltaTableSource(path, store=store))
    for plan_ in (
        replace(PLAN, sink=DeltaSink(path, store=store)),
        replace(PLAN, dimensions=(dimension,)),
    ):
        with pytest.raises(NotAllowedError, match=r"lake@|has no credentials") as caught:
            check_allowed(plan_, settings)
        assert "SLUICE_ALLOWED_STORES" in caught.value.hint


@pytest.mark.parametrize("allowed", [None, "pond@s3.amazonaws.com:443"], ids=["none", "another"])
def test_hints_of_a_store_are_followed(allowed, tmp_path):
    denied = replace(PLAN, sink=DeltaSink("s3://lake/o"))
    with pytest.raises(NotAllowedError, match=r"lake@s3\.amazonaws\.com:443"):
        check_allowed(denied, Settings.load(data_dir=tmp_path, allowed_stores=allowed))
    listed = "lake@s3.amazonaws.com:443"
    check_allowed(denied, Settings.load(data_dir=tmp_path, allowed_stores=listed))
    with_keys = replace(PLAN, sink=DeltaSink("s3://lake/o", store=KEYS))
    check_allowed(with_keys, Settings.load(data_dir=tmp_path))


def test_an_output_is_apart_from_the_jobs_own_tables(tmp_path):
    settings = Settings.load(data_dir=tmp_path, warehouse="s3://lake/shop/")
    listed = Settings.load(
        data_dir=tmp_path, warehouse="s3://lake/shop", allowed_stores="lake@s3.amazonaws.com:443"
    )
    for path in ("_sluice/jobs/1/dead_letters", "_sluice"):
        with pytest.raises(NotAllowedError, match="holds tables of Sluice"):
            check_allowed(replace(PLAN, sink=DeltaSink(path)), settings)
        with pytest.raises(NotAllowedError, match="holds tables of Sluice"):
            check_allowed(replace(PLAN, sink=DeltaSink(f"s3a://lake/shop/{path}")), listed)
    check_allowed(replace(PLAN, sink=DeltaSink("orders")), settings)
    check_allowed(replace(PLAN, sink=DeltaSink("s3://lake/shop/orders")), listed)
    place = output_path(DeltaSink("orders"), settings)
    assert str(place) == "s3://lake/shop/orders"
    assert str(output_path(DeltaSink("/lake/o"), of_both(tmp_path))) == "/lake/o"


def of_both(directory):
    return Settings.load(data_dir=directory, warehouse="s3://lake/shop", allowed_paths="/lake")


def test_a_warehouse_that_is_no_store_is_refused(tmp_path):
    for warehouse in ("lake", "http://lake/x", "s3://lake", "s3://lake/../x"):
        with pytest.raises(ConfigError, match="SLUICE_WAREHOUSE"):
            Settings.load(data_dir=tmp_path, warehouse=warehouse)
