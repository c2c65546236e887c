"""Rewrite the lock file of the jars: ``python -m tests.support.relock`` (`make lock`).

Ivy resolves the jars in `deploy/jars.txt` of the checkout; every jar is pinned.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from service.config import Settings
from service.embedded.jars import (
    LOCK_FILE,
    Jar,
    JarSet,
    at,
    ivy_description,
    proxy_options,
    run_ivy,
    sha256_of,
)
from service.embedded.java import Java, find_java, trust_store_options
from service.embedded.process import JarCacheError
from watermark.errors import SluiceError

ROOTS = Path(__file__).parents[2] / "deploy" / "jars.txt"
_HEADER = (
    "# Made from deploy/jars.txt by `make lock`; do not edit.\n"
    "# set organisation:name:revision size-in-bytes sha-256\n"
)


def read_roots(path: Path) -> list[tuple[Jar, bool]]:
    """The roots in `path`, each with True if its dependencies are included."""
    roots = []
    for line in path.read_text().split("\n"):
        if line.strip() and not line.startswith("#"):
            jar_set, coordinates, extent = line.split()
            roots.append((at(JarSet(jar_set), coordinates), extent == "complete"))
    return roots


def resolve(roots: Sequence[tuple[Jar, bool]], *, java: Java, scratch: Path) -> list[Jar]:
    """`roots` of one set and the dependencies of the complete ones: one revision each, hashed."""
    target = Path(tempfile.mkdtemp(dir=scratch))
    description = scratch / "ivy.xml"
    description.write_text(ivy_description(roots))
    options = [*trust_store_options(scratch), *proxy_options(os.environ)]
    pattern = f"{target}/[organisation]/[artifact]/[revision].[ext]"
    report = run_ivy(java, description, scratch / "ivy", pattern, options)
    jar_set = roots[0][0].jar_set
    jars = [_pin(jar_set, path) for path in target.glob("*/*/*.jar")]
    for root, _ in roots:
        path = target / root.organisation / root.name / f"{root.revision}.{root.extension}"
        if root.archive and path.exists():
            jars.append(replace(root, size_bytes=path.stat().st_size, sha256=sha256_of(path)))
        if root.coordinates not in [jar.coordinates for jar in jars]:
            raise JarCacheError(
                f'jar "{root.coordinates}" cannot be resolved: {report.strip()[-200:]}',
                hint="Check its coordinates in deploy/jars.txt and the network.",
            )
    return jars


def _pin(jar_set: JarSet, path: Path) -> Jar:
    organisation, name = path.parts[-3:-1]
    return Jar(jar_set, organisation, name, path.stem, path.stat().st_size, sha256_of(path))


def main() -> int:
    try:
        java = find_java(Settings.load().cache_dir)
        with tempfile.TemporaryDirectory() as scratch:
            roots = read_roots(ROOTS)
            jars: list[Jar] = []
            for jar_set in JarSet:
                of_set = [root for root in roots if root[0].jar_set is jar_set]
                jars += resolve(of_set, java=java, scratch=Path(scratch))
    except SluiceError as exc:
        typer.echo(f"{exc.message}\n{exc.hint}", err=True)
        return 1
    LOCK_FILE.write_text(_HEADER + "".join(f"{line}\n" for line in sorted(j.line() for j in jars)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
