"""Where the archive of a JVM's classes is, and what happens when it cannot be made."""

import os
from pathlib import Path

import pytest

from service.embedded.java import Java, archive_path, class_archive, provide_class_archive

JARS = [Path("/jars/delta.jar"), Path("/jars/kafka.jar")]


@pytest.fixture
def home(tmp_path):
    """A Java that says what it is and cannot run."""
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.1"')
    return tmp_path / "java"


def test_another_java_or_other_jars_have_an_archive_of_their_own(tmp_path, home):
    java = Java(home, 17)
    first = archive_path(tmp_path, java, JARS)
    assert archive_path(tmp_path, java, JARS) == first
    assert archive_path(tmp_path, java, JARS[:1]) != first
    (home / "release").write_text('JAVA_VERSION="17.0.2"')
    assert archive_path(tmp_path, java, JARS) != first


def test_a_jar_that_is_installed_anew_needs_an_archive_made_anew(tmp_path, home):
    java = Java(home, 17)
    jar = tmp_path / "delta.jar"
    jar.write_bytes(b"classes")
    first = archive_path(tmp_path, java, [jar])
    os.utime(jar, (1, 1))
    assert archive_path(tmp_path, java, [jar]) != first, "a JVM does not take the one of before"


def test_an_archive_that_is_made_replaces_the_one_of_what_was_there_before(
    tmp_path, java, spark_jars, class_archive
):
    if class_archive is None:
        pytest.skip(f"no archive can be made for Java {java.version} here")
    place = class_archive.name.rpartition("-")[0]
    assert [f.stem for f in class_archive.parent.glob(f"{place}-*.jsa")] == [class_archive.stem]


def test_there_is_none_before_it_is_made(tmp_path, home, capsys):
    java = Java(home, 17)
    assert class_archive(tmp_path, java, JARS) is None
    path = archive_path(tmp_path, java, JARS)
    path.parent.mkdir()
    path.write_bytes(b"classes")
    assert class_archive(tmp_path, java, JARS) == path
    assert provide_class_archive(tmp_path, java, JARS) == path, "it is not made again"
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("processes")
def test_where_it_cannot_be_made_nothing_is_left_and_nobody_is_stopped(tmp_path, home, capsys):
    java = Java(home, 17)
    assert provide_class_archive(tmp_path, java, JARS) is None
    assert "preparing Spark for a faster start, once" in capsys.readouterr().err
    assert class_archive(tmp_path, java, JARS) is None
    assert [f.suffix for f in (tmp_path / "classes").iterdir()] == [".lock"]
