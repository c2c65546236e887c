"""The cache of jars: what is pinned, checked, shared, and how it fails."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from service.embedded.jars import Jar, JarCache, JarSet, proxy_options, read_lock
from service.embedded.java import Java
from service.embedded.process import JarCacheError
from tests.support.beside import at_once
from tests.support.relock import ROOTS, read_roots

SMALL = next(jar for jar in read_lock() if jar.name == "delta-storage")

MALFORMED = {
    "too_few_fields": "spark a:b:1 17",
    "unknown_set": "tomcat a:b:1 17 ff",
    "no_revision": "spark a:b 17 ff",
    "size_is_no_number": "spark a:b:1 big ff",
}
PROXIES = {
    "none": ({}, []),
    "with_port": (
        {"HTTPS_PROXY": "http://proxy.example:3128"},
        ["-Dhttps.proxyHost=proxy.example", "-Dhttps.proxyPort=3128"],
    ),
    "spares_hosts": (
        {"https_proxy": "proxy.example:3128", "no_proxy": "localhost,.example"},
        [
            "-Dhttps.proxyHost=proxy.example",
            "-Dhttps.proxyPort=3128",
            "-Dhttp.nonProxyHosts=localhost|*.example",
        ],
    ),
}


def local_ivy(directory: Path, *, fails: bool = False, content: bytes | None = None) -> Java:
    """A `java` that stands for an origin: it puts `content` under the name that is asked for."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    origin = directory / "origin.jar"
    origin.write_bytes(content or b"")
    copy = f'cp "{origin}" "${{target}}/{SMALL.file_name}"'
    answer = 'echo "java.net.UnknownHostException: nowhere"' if fails else copy
    program.write_text(
        f'#!/bin/sh\necho run >> "{directory}/runs"\nfor a do target="${{a%/*}}"; done\n{answer}\n'
    )
    program.chmod(0o755)
    return Java(directory, 17)


def pinned(content: bytes) -> Jar:
    return replace(SMALL, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def test_every_root_is_locked_with_size_and_hash() -> None:
    locked = {(jar.jar_set, jar.coordinates) for jar in read_lock()}
    roots = read_roots(ROOTS)
    assert {(jar.jar_set, jar.coordinates) for jar, _ in roots} <= locked
    assert {jar.jar_set for jar in read_lock()} == set(JarSet)
    assert all(len(jar.sha256) == 64 and jar.size_bytes > 0 for jar in read_lock())


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_lock_line_is_quoted(line: str, tmp_path: Path) -> None:
    (tmp_path / "jars.lock").write_text(f"# comment\n\n{line}\n")
    with pytest.raises(JarCacheError, match=line):
        read_lock(tmp_path / "jars.lock")


@pytest.mark.parametrize(("environ", "options"), PROXIES.values(), ids=PROXIES)
def test_a_proxy_is_handed_to_java(environ: dict[str, str], options: list[str]) -> None:
    assert proxy_options(environ) == options


@pytest.mark.usefixtures("processes")
def test_a_set_is_fetched_once_also_when_many_ask(tmp_path: Path) -> None:
    java = local_ivy(tmp_path / "java", content=b"jar")
    cache = JarCache(tmp_path / "cache", java, (pinned(b"jar"),))
    at_once(cache.jars, [JarSet.SPARK] * 8)
    assert [path.read_bytes() for path in cache.jars(JarSet.SPARK)] == [b"jar"]
    assert (tmp_path / "java" / "runs").read_text().splitlines() == ["run"]


@pytest.mark.usefixtures("processes")
def test_a_jar_that_differs_from_the_lock_is_refused_and_not_kept(tmp_path: Path) -> None:
    java = local_ivy(tmp_path / "java", content=b"changed")
    cache = JarCache(tmp_path / "cache", java, (pinned(b"jar"),))
    with pytest.raises(JarCacheError, match=r'"io.delta:delta-storage:.*has SHA-256'):
        cache.jars(JarSet.SPARK)
    assert list((tmp_path / "cache").rglob("*.jar")) == []


@pytest.mark.usefixtures("processes")
def test_a_cached_jar_that_was_changed_is_found_by_verify(tmp_path: Path) -> None:
    java = local_ivy(tmp_path / "java", content=b"jar")
    cache = JarCache(tmp_path / "cache", java, (pinned(b"jar"),))
    (path,) = cache.jars(JarSet.SPARK)
    cache.verify(JarSet.SPARK)
    path.write_bytes(b"bad")
    with pytest.raises(JarCacheError, match="has SHA-256"):
        cache.verify(JarSet.SPARK)


@pytest.mark.usefixtures("processes")
def test_without_a_network_the_error_names_the_jar_and_the_cause(tmp_path: Path) -> None:
    cache = JarCache(tmp_path / "cache", local_ivy(tmp_path / "java", fails=True), (SMALL,))
    with pytest.raises(JarCacheError, match=r"1 of 1 jars.*delta-storage.*UnknownHost") as caught:
        cache.jars(JarSet.SPARK)
    assert "network" in caught.value.hint


def test_a_full_disk_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    java = local_ivy(tmp_path / "java", content=b"jar")
    huge = replace(SMALL, size_bytes=1 << 60)
    with pytest.raises(JarCacheError, match=r"MiB free, needs \d+ MiB") as caught:
        JarCache(tmp_path / "cache", java, (huge,)).jars(JarSet.SPARK)
    assert "SLUICE_CACHE_DIR" in caught.value.hint
    assert not (tmp_path / "java" / "runs").exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    cache = JarCache(blocked / "cache", local_ivy(tmp_path / "java"), (SMALL,))
    with pytest.raises(JarCacheError, match="cannot be used: not a directory"):
        cache.jars(JarSet.SPARK)


def test_the_shared_cache_holds_what_the_lock_pins(jar_cache: JarCache) -> None:
    for jar_set in (JarSet.SPARK, JarSet.BROKER):
        jar_cache.verify(jar_set)


def test_an_interrupted_fetch_leaves_a_cache_that_works(
    jar_cache: JarCache, tmp_path: Path
) -> None:
    (source,) = (p for p in jar_cache.jars(JarSet.SPARK) if p.name == SMALL.file_name)
    java = local_ivy(tmp_path / "java", content=source.read_bytes())
    cache = JarCache(tmp_path / "cache", java, (SMALL,))
    expected = cache.jars(JarSet.SPARK)[0].parent
    shutil.rmtree(expected)
    halfway = expected.parent / f"{expected.name}.new-halfway"
    halfway.mkdir()
    assert cache.jars(JarSet.SPARK)[0].read_bytes() == source.read_bytes()
    assert not halfway.exists()
