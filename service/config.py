"""The settings of control plane and runner: `SLUICE_*`, read once into a frozen value.

Precedence: a value given in code (an option of a command), the environment, the default. The
control plane hands its values to a runner in the job's `settings.json`, so that both always agree.
"""

# reads better long: one table of settings, each with its default, text and range
import os
import re
import socket
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.failpoints import parse_failpoints
from joins.plan.connections import STORE_PATH
from joins.plan.errors import JoinError
from service.errors import ConfigError
from service.version import DEFAULT_HOST, DEFAULT_PORT

PREFIX = "SLUICE_"
SETTINGS_FILE = "settings.json"
LEADERLESS_STOP_S = 10.0  # a runner stops before another leader takes over
_NOT_SETTINGS = ("SLUICE_SECRET_", "SLUICE_SERVER", "SLUICE_TOKEN", "SLUICE_CA_FILE")
_SECRETS = r"^[\w.*-]+@[^\s,@]+:[0-9*]+(,[\w.*-]+@[^\s,@]+:[0-9*]+)*$"
_HINTS = {
    "trusted_proxies": "Name the addresses of the proxy, such as 10.0.0.5 or 10.0.0.0/24.",
}


def _xdg(variable: str, fallback: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / fallback) / "sluice"


def _setting(
    default: object,
    description: str,
    accepts: str,
    **rules: Any,  # noqa: ANN401 (pydantic's constraints)
) -> Any:  # noqa: ANN401 (stands where the field's own type is expected)
    rules["default_factory" if callable(default) else "default"] = default
    return Field(description=description, json_schema_extra={"accepts": accepts}, **rules)


def _number(default: float, description: str, least: float, most: float) -> Any:  # noqa: ANN401
    return _setting(default, description, f"{least} to {most}", ge=least, le=most)


def _flag(default: bool, description: str) -> Any:  # noqa: ANN401
    return _setting(default, description, "true or false")


def _servers(description: str) -> Any:  # noqa: ANN401
    accepts = "host:port[,host:port…]; * stands for any characters but a colon"
    return _setting(None, description, accepts, pattern=r"^[^\s,]+:[0-9*]+(,[^\s,]+:[0-9*]+)*$")


class Settings(BaseSettings):
    """Everything that an operator can set; each field is the variable `SLUICE_<FIELD>`."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore"
    )

    data_dir: Path = _setting(
        lambda: _xdg("XDG_DATA_HOME", ".local/share"),
        "Job store, jobs and warehouse; default is sluice below the XDG data directory.",
        "a directory that may be created",
    )
    warehouse_dir: Path = _setting(
        lambda values: values.get("data_dir", Path()) / "warehouse",
        "Where relative paths of Delta tables start; default is warehouse below data_dir.",
        "a directory that may be created",
    )
    warehouse: str | None = _setting(
        None,
        "Object store for the jobs' own tables, their durable files, and relative paths of Delta "
        "tables, reached with the environment's credentials; default is none, then all are in "
        "directories.",
        "s3://bucket/key, abfss://container@account.dfs.core.windows.net/key or az://container/key",
    )
    cache_dir: Path = _setting(
        lambda: _xdg("XDG_CACHE_HOME", ".cache"),
        "Jars, embedded broker and database binaries, shared by all checkouts.",
        "a directory that may be created",
    )
    index_dir: Path | None = _setting(
        None,
        "Lookup indexes of all jobs, a directory of its own on each node; "
        "default is in the job's directory.",
        "a local directory; {host} is the node's name in it, {NAME} its environment variable NAME",
    )
    secrets_dir: Path | None = _setting(
        None,
        "Directory with one file per secret; SLUICE_SECRET_<NAME> variables come first.",
        "an existing directory",
    )
    allowed_brokers: str | None = _servers(
        "Brokers that scripts may name besides SLUICE_KAFKA_BOOTSTRAP_SERVERS; default is any."
    )
    allowed_databases: str | None = _servers(
        "Database servers that scripts may name; default is any."
    )
    allowed_connect: str | None = _servers(
        "Kafka Connect servers that scripts may name (snapshot.connect.url); default is any."
    )
    allowed_registries: str | None = _servers(
        "Schema registries that scripts may name (avro-confluent.url and "
        "debezium-avro-confluent.url); default is any."
    )
    allowed_token_endpoints: str | None = _servers(
        "Token endpoints that scripts may name (properties.sasl.oauthbearer.token.endpoint.url); "
        "default is any."
    )
    allowed_pem_paths: str | None = _setting(
        None,
        "Directories whose PEM files scripts may name (properties.ssl.…location); default is none.",
        "absolute paths, separated by colons",
        pattern=r"^/[^:]*(:/[^:]*)*$",
    )
    allowed_secrets: str | None = _setting(
        None,
        "Which server of a script may get which secret; inline ones are not asked. Default is any.",
        "name@host:port[,name@host:port…]; * stands for any characters but a colon or an at",
        pattern=_SECRETS,
    )
    allowed_stores: str | None = _setting(
        None,
        "Buckets and containers of object stores that tables of scripts may be in; default is any, "
        "for tables that bring credentials. Only listed ones are served by the environment's.",
        "bucket@host:port[,bucket@host:port…], Amazon's being s3.amazonaws.com:443; * stands for "
        "any characters but a colon or an at",
        pattern=_SECRETS,
    )
    allowed_paths: str | None = _setting(
        None,
        "Directories besides the warehouse in which Delta tables and files of scripts may be.",
        "absolute paths, separated by colons",
        pattern=r"^/[^:]*(:/[^:]*)*$",
    )
    database_url: str | None = _setting(
        None,
        "SQLAlchemy URL of the job store; default is SQLite at jobs.db below data_dir.",
        "sqlite:///… or postgresql://…, whose ?sslmode=verify-full looks at the certificate",
        repr=False,
    )
    host: str = _setting(
        DEFAULT_HOST,
        "Address that the control plane listens on.",
        "an IP address or localhost; other than loopback needs tokens, and TLS or a proxy",
    )
    port: int = _number(DEFAULT_PORT, "Port of the control plane; 0 takes a free one.", 0, 65535)
    auth_required: bool = _flag(
        False,
        "Ask every caller for a token, also on loopback; always so elsewhere and behind a proxy.",
    )
    trusted_proxies: str = _setting(
        "",
        "Proxies that end TLS in front of the control plane; only they may connect, and what "
        "they say of the client's address is believed.",
        "addresses or networks such as 10.0.0.5,10.1.0.0/24, or empty",
    )
    tls_cert: Path | None = _setting(
        None, "Certificate (chain) of the control plane; with it, it speaks TLS.", "a PEM file"
    )
    tls_key: Path | None = _setting(
        None, "Private key of the certificate, without a passphrase.", "a PEM file"
    )
    tls_min_version: str = _setting(
        "1.2", "Oldest version of TLS that is spoken.", "1.2 or 1.3", pattern=r"^1\.[23]$"
    )
    requests_per_s: float = _number(
        500.0,
        "Requests a second of each token or address; twice as many in a burst.",
        0.01,
        1_000_000,
    )
    max_requests: int = _number(
        512,
        "Requests and event streams at once; one address may have three quarters of them.",
        8,
        100_000,
    )
    request_timeout_s: float = _number(
        30.0, "Time in which the head of a request must arrive, and then its body.", 1, 3600
    )
    audit: str = _setting(
        "changes",
        "What of the requests audit.jsonl below data_dir keeps; changes has refusals, too.",
        "off, changes or all",
        pattern="^(off|changes|all)$",
    )
    audit_max_mib: int = _number(
        64, "MiB of audit.jsonl before a new one is begun; four old ones stay.", 1, 65_536
    )
    log_level: str = _setting(
        "INFO",
        "Least level that is logged to standard error.",
        "DEBUG, INFO, WARNING or ERROR",
        pattern="^(DEBUG|INFO|WARNING|ERROR)$",
    )
    kafka_bootstrap_servers: str | None = _setting(
        None,
        "Broker of changelog and datagen topics; default is that of the stream, else of the sink.",
        "host:port[,host:port…]",
        pattern=r"^[^\s,:]+:\d{1,5}(,[^\s,:]+:\d{1,5})*$",
    )
    changelog_partitions: int = _number(2, "Partitions of a new changelog topic.", 1, 1024)
    changelog_replication: int = _number(
        1, "Replication factor of topics that Sluice creates.", 1, 32
    )
    changelog_min_insync: int = _setting(
        1,
        "min.insync.replicas of topics that Sluice creates.",
        "1 to SLUICE_CHANGELOG_REPLICATION",
        ge=1,
    )
    changelog_retention_ms: int = _setting(
        -1,
        "retention.ms of topics that Sluice creates, -1 for no limit; a job that has not read them "
        "by then has to be submitted again.",
        "-1 to 9223372036854775807",
        ge=-1,
        le=2**63 - 1,
    )
    changelog_max_message_bytes: int = _number(
        64 << 20, "max.message.bytes of topics that Sluice creates.", 1 << 20, 1 << 30
    )
    spark_master: str = _setting(
        "local[*,4]",
        "Where Spark runs; with local, keep retries (the 4), or one killed worker ends the job.",
        "local[…], spark://…, k8s://… or yarn",
        pattern=r"^(local(\[.+\])?|yarn|spark://.+|k8s://.+)$",
    )
    spark_driver_memory: str = _setting(
        "2g", "Heap of a runner's JVM.", "a number with m or g, such as 2g", pattern=r"^\d+[mg]$"
    )
    spark_conf: dict[str, str] = _setting(
        dict,
        "Further Spark settings; they win over ours, arrow.* of a batch, too.",
        'a JSON object {"spark.…": "…"}',
        repr=False,
    )
    resident_tasks: int = _number(
        -1,
        "Spark tasks of a runner that stay and serve batches, which saves Spark's scheduling; -1 "
        "is one a core with a local master, 4 at the most, and none on a cluster, where they hold "
        "slots of it. Runners that share a driver have none.",
        -1,
        1000,
    )
    resident_task_timeout_s: float = _number(
        1_800.0,
        "A resident task that has not answered for this long is killed, and its work runs again.",
        1,
        86_400,
    )
    snapshot_parallelism: int = _number(
        2, "Connections by which a table is read at the same time.", 1, 256
    )
    snapshot_job_rows: int = _number(
        200_000,
        "Most rows of a Spark job of the snapshot, what is read again after a fault; where a chunk "
        "has more, each connection reads one.",
        1,
        50_000_000,
    )
    check_timeout_s: float = _number(
        15.0,
        "Time that each server has to answer when a script is checked or a job examined.",
        1,
        3600,
    )
    freshness_interval_s: float = _number(
        1.0,
        "Pause between two questions to a source about its time and the position of its log.",
        0.2,
        60,
    )
    build_trigger_ms: int = _number(
        100, "Least time between two commits of changes of a table.", 100, 60_000
    )
    probe_trigger_ms: int = _number(
        10,
        "Least time between the starts of two batches, and so how long the first record of a "
        "batch may wait for it while no other batch runs; more saves CPU.",
        1,
        60_000,
    )
    max_records_per_batch: int = _number(500_000, "Most records of a batch.", 1, 50_000_000)
    max_bytes_per_batch: int = _number(
        256 << 20,
        "About how many bytes the records of a batch have at the most.",
        1 << 10,
        1 << 40,
    )
    fold_interval_s: float = _number(
        30.0, "Least time between two folds of changelog into current.", 1, 86_400
    )
    fold_share: float = _number(
        0.1,
        "A table above 100,000 rows is folded when so large a share of its rows has changed.",
        0,
        1,
    )
    fold_max_interval_s: float = _number(
        600.0, "However few changes there are, they are folded after this time.", 1, 86_400
    )
    maintenance_interval_s: float = _number(
        300.0,
        "Least time between two rounds of compaction and clean-up of a job's own tables.",
        1,
        86_400,
    )
    current_retention_hours: float = _number(
        168.0,
        "How long files that current no longer needs are kept for reads of older versions.",
        0,
        87_600,
    )
    replay_batches: int = _number(
        10_000,
        "Newest batches whose pins and dimension versions are kept, so that they can be replayed.",
        10,
        10_000_000,
    )
    replay_state_max_mib: int = _number(
        4_096,
        "Room in each table of a job's state for files that only replays read; the newest stay.",
        0,
        1_000_000_000,
    )
    restart_backoff_min_s: float = _number(
        0.5, "Wait before the first restart of a crashed runner.", 0, 3600
    )
    restart_backoff_max_s: float = _number(30.0, "Longest wait before a restart.", 0, 3600)
    restart_limit: int = _number(
        50,
        "Crashes in a row after which a job is FAILED; a healthy minute, or a start by request, "
        "resets the count.",
        0,
        1_000_000,
    )
    start_limit: int = _number(
        4, "Runners that start at the same time; the others wait for their turn.", 1, 1000
    )
    stop_timeout_s: float = _number(
        45.0, "Time from SIGTERM to SIGKILL when a job is stopped.", 1, 3600
    )
    runner_hang_report_s: float = _number(
        15.0, "A living runner that has not reported for this long is shown as STALLED.", 2, 3600
    )
    runner_hang_kill_s: float = _number(
        120.0,
        "A living runner that has not reported for this long is killed and started again.",
        2,
        86_400,
    )
    runners: Literal["own", "shared"] = _setting(
        "own",
        "Whether each runner has a Spark driver of its own, or all of them share one: many small "
        "jobs then need a fraction of the memory.",
        "own or shared",
    )
    stop_with_parent: bool = _flag(
        False, "Runners end and start again with their control plane; always so with PostgreSQL."
    )
    runner_orphan_s: float = _number(
        86_400.0,
        "A runner ends when no control plane has been there for this long; the next control plane "
        "starts it again.",
        60,
        31_536_000,
    )
    failpoints: str = _setting(
        "",
        "Planted faults, for tests only.",
        "<point>=kill|stop|raise|enospc[@<n>|#<batch>][;…], or empty",
    )

    @field_validator("host")
    @classmethod
    def _an_address(cls, value: str) -> str:
        if value != "localhost":
            ip_address(value)
        return value

    @field_validator("changelog_min_insync")
    @classmethod
    def _replicas(cls, value: int, info: ValidationInfo) -> int:
        if value > info.data.get("changelog_replication", value):
            raise ValueError("no record could ever be written")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: str) -> str:
        for text in filter(None, map(str.strip, value.split(","))):
            ip_network(text)
        return value

    @field_validator("failpoints")
    @classmethod
    def _points(cls, value: str) -> str:
        try:
            parse_failpoints(value)
        except JoinError as exc:
            raise ValueError(exc.message) from exc
        return value

    @field_validator("data_dir", "warehouse_dir", "cache_dir", "secrets_dir", "tls_cert", "tls_key")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser().absolute()

    @field_validator("warehouse")
    @classmethod
    def _in_a_store(cls, value: str | None) -> str | None:
        if value is not None and re.fullmatch(STORE_PATH, value) is None:
            raise ValueError("no place in an object store")
        return value and value.rstrip("/")

    @field_validator("index_dir")
    @classmethod
    def _absolute_on_nodes(cls, value: Path | None) -> Path | None:
        if value is not None and not str(value).startswith(("/", "{")):
            raise ValueError("not absolute on every node")
        return value

    @property
    def jobs_dir(self) -> Path:
        return self.data_dir / "jobs"

    @property
    def host_dir(self) -> Path:
        node = f"-{socket.gethostname()}" if store_is_shared(self) else ""  # a shared directory
        return self.data_dir / f"host{node}"

    @property
    def kept_secrets_dir(self) -> Path:
        return self.data_dir / "secrets"

    @property
    def pem_directories(self) -> tuple[Path, ...]:
        return tuple(Path(path) for path in (self.allowed_pem_paths or "").split(":") if path)

    @property
    def allowed_directories(self) -> tuple[Path, ...]:
        return tuple(Path(path) for path in (self.allowed_paths or "").split(":") if path)

    @property
    def proxies(self) -> list[str]:
        return [text for text in map(str.strip, self.trusted_proxies.split(",")) if text]

    @property
    def on_loopback(self) -> bool:
        return self.host == "localhost" or ip_address(self.host).is_loopback

    @property
    def tokens_required(self) -> bool:
        return self.auth_required or bool(self.proxies) or not self.on_loopback

    @property
    def store_url(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir / 'jobs.db'}"

    def hand_over(self, job_dir: Path) -> None:
        """Write what a runner needs to `job_dir`; the job store's URL stays here."""
        values = self.model_dump(mode="json", exclude={"database_url"})
        values["stop_with_parent"] = ends_runners(self)
        if store_is_shared(self):
            values["stop_timeout_s"] = min(self.stop_timeout_s, LEADERLESS_STOP_S)
        content = {"settings": values, "control_plane_pid": os.getpid()}
        write_json_atomically(job_dir / SETTINGS_FILE, content)

    @classmethod
    def of_runner(cls, job_dir: Path) -> Self:
        """The settings from `hand_over`, else from the environment."""
        content = read_json(job_dir / SETTINGS_FILE)
        return cls.load(**(content["settings"] if content else {}))

    @classmethod
    def load(cls, **values: Any) -> Self:  # noqa: ANN401 (the fields have many types)
        """The settings of this process; None counts as not given. Raises ConfigError."""
        try:
            return cls(**{name: value for name, value in values.items() if value is not None})
        except ValidationError as exc:
            raise _config_error(exc) from exc
        except SettingsError as exc:
            raise _unreadable(exc) from exc


def store_is_shared(settings: Settings) -> bool:
    return settings.store_url.startswith("postgresql")


def runs_on_cluster(settings: Settings) -> bool:
    return not settings.spark_master.startswith("local")


def ends_runners(settings: Settings) -> bool:
    return settings.stop_with_parent or store_is_shared(settings)


def control_plane_pid(job_dir: Path) -> int | None:
    """The process that last called `Settings.hand_over`, dead or alive; None before."""
    content = read_json(job_dir / SETTINGS_FILE)
    return None if content is None else content.get("control_plane_pid")


def accepted(field: str) -> str:
    extra = Settings.model_fields[field].json_schema_extra
    return str(extra["accepts"]) if isinstance(extra, dict) else ""


def _config_error(exc: ValidationError) -> ConfigError:
    first = exc.errors()[0]
    return _unusable(str(first["loc"][0]), first["input"])


def _unreadable(exc: SettingsError) -> ConfigError:
    field = next((name for name in Settings.model_fields if f'"{name}"' in str(exc)), "spark_conf")
    return _unusable(field, os.environ.get(f"{PREFIX}{field.upper()}", ""))


def _unusable(field: str, value: object) -> ConfigError:
    variable, may_be_shown = f"{PREFIX}{field.upper()}", Settings.model_fields[field].repr
    shown = f'"{value}"' if may_be_shown else "(hidden)"  # credentials may be in it
    return ConfigError(
        f"setting {variable} is {shown}, expected {accepted(field)}",
        hint=_HINTS.get(field, f"Correct {variable} or unset it for the default."),
    )


def unknown_variables() -> list[str]:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    return sorted(
        name
        for name in os.environ
        if name.startswith(PREFIX) and name not in known and not name.startswith(_NOT_SETTINGS)
    )
