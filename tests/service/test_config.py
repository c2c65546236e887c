import pytest

from service.config import Settings, accepted, unknown_variables
from service.errors import ConfigError

BAD = {
    "port_too_large": ("SLUICE_PORT", "99999"),
    "port_no_number": ("SLUICE_PORT", "x"),
    "host_not_loopback": ("SLUICE_HOST", "0.0.0.0"),
    "host_no_address": ("SLUICE_HOST", "example"),
    "spark_conf_no_json": ("SLUICE_SPARK_CONF", "{a"),
    "spark_conf_no_object": ("SLUICE_SPARK_CONF", "[1]"),
    "spark_master_unknown": ("SLUICE_SPARK_MASTER", "mesos"),
    "failpoint_unknown": ("SLUICE_FAILPOINTS", "C99=kill"),
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


def test_every_setting_says_what_it_is_and_what_it_accepts():
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert accepted(name), name


def test_a_misspelled_variable_is_noticed(monkeypatch):
    monkeypatch.setenv("SLUICE_PROT", "1")
    monkeypatch.setenv("SLUICE_SECRET_SHOP", "x")
    assert unknown_variables() == ["SLUICE_PROT"]
