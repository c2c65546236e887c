from pathlib import Path

import pytest

from service.config import Settings, accepted, unknown_variables
from service.errors import ConfigError
from service.jobs.store.layout import JobLayout
from service.security.resolution import index_directory

BAD = {
    "port_too_large": ("SLUICE_PORT", "99999"),
    "port_no_number": ("SLUICE_PORT", "x"),
    "host_no_address": ("SLUICE_HOST", "example"),
    "proxies_no_networks": ("SLUICE_TRUSTED_PROXIES", "10.0.0.5,proxy"),
    "tls_too_old": ("SLUICE_TLS_MIN_VERSION", "1.1"),
    "audit_of_nothing_known": ("SLUICE_AUDIT", "some"),
    "spark_master_unknown": ("SLUICE_SPARK_MASTER", "mesos"),
    "failpoint_unknown": ("SLUICE_FAILPOINTS", "C99=kill"),
    "index_dir_of_a_working_directory": ("SLUICE_INDEX_DIR", "index/{host}"),
    "more_replicas_in_sync_than_there_are": ("SLUICE_CHANGELOG_MIN_INSYNC", "2"),
    "trigger_below_range": ("SLUICE_BUILD_TRIGGER_MS", "5"),
}


@pytest.mark.parametrize(("variable", "value"), BAD.values(), ids=BAD)
def test_a_bad_value_names_variable_value_and_what_is_accepted(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        Settings.load()
    field = variable.removeprefix("SLUICE_").lower()
    for part in (variable, f'"{value}"', accepted(field)):
        assert part in caught.value.message


CREDENTIALS = {
    "spark_conf_no_json": ("SLUICE_SPARK_CONF", '{"spark.hadoop.fs.s3a.secret.key": "hunter2"'),
    "spark_conf_no_object": ("SLUICE_SPARK_CONF", '["hunter2"]'),
    "spark_conf_no_text": ("SLUICE_SPARK_CONF", '{"spark.password": ["hunter2"]}'),
}


@pytest.mark.parametrize(("variable", "value"), CREDENTIALS.values(), ids=CREDENTIALS)
def test_a_bad_value_that_may_have_credentials_is_not_shown(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=rf"{variable} is \(hidden\), expected") as caught:
        Settings.load()
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv(variable, '{"spark.password": "hunter2"}')
    assert "hunter2" not in repr(Settings.load())


def test_a_runner_gets_the_settings_of_the_control_plane(tmp_path, monkeypatch):
    settings = Settings.load(
        data_dir=tmp_path, changelog_partitions=7, database_url="postgresql://u:p@h/d"
    )
    settings.hand_over(tmp_path)
    monkeypatch.setenv("SLUICE_CHANGELOG_PARTITIONS", "3")
    handed = Settings.of_runner(tmp_path)
    assert handed.changelog_partitions == 7
    assert handed.warehouse_dir == tmp_path / "warehouse"
    assert "u:p" not in (tmp_path / "settings.json").read_text()


INDEX_DIRS = {
    "none": (None, "jobs/job-1/index"),
    "a_local_disk": ("/ssd/sluice", "/ssd/sluice/job-1"),
    "by_host": ("/shared/{host}", "/shared/{host}/job-1"),
    "by_variable": ("{LOCAL_DIR}/index", "{LOCAL_DIR}/index/job-1"),
}


@pytest.mark.parametrize(("given", "expected"), INDEX_DIRS.values(), ids=INDEX_DIRS)
def test_each_job_has_its_indexes_below_a_directory_that_each_node_reads_itself(
    tmp_path, given, expected
):
    Settings.load(data_dir=tmp_path, index_dir=given).hand_over(tmp_path)
    settings = Settings.of_runner(tmp_path)
    found = index_directory(JobLayout(settings.jobs_dir / "job-1"), settings)
    assert found == (tmp_path / expected if given is None else Path(expected))


ASKED = {
    "loopback": ({}, False),
    "loopback_by_name": ({"host": "localhost"}, False),
    "loopback_and_wanted": ({"auth_required": True}, True),
    "behind_a_proxy": ({"trusted_proxies": "127.0.0.1"}, True),
    "everywhere": ({"host": "0.0.0.0"}, True),
    "another_address": ({"host": "fd00::1"}, True),
}


@pytest.mark.parametrize(("given", "asked"), ASKED.values(), ids=ASKED)
def test_tokens_are_asked_for_wherever_others_could_come_in(given, asked):
    assert Settings.load(**given).tokens_required is asked


def test_every_setting_says_what_it_is_and_what_it_accepts():
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert accepted(name), name


def test_a_misspelled_variable_is_noticed(monkeypatch):
    monkeypatch.setenv("SLUICE_PROT", "1")
    for known in ("SLUICE_SECRET_SHOP", "SLUICE_TOKEN", "SLUICE_TOKEN_FILE", "SLUICE_CA_FILE"):
        monkeypatch.setenv(known, "x")
    assert unknown_variables() == ["SLUICE_PROT"]
