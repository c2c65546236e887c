"""A broker and a database of one's own, outside of pytest; and databases that are soon there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.config import Settings
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from service.embedded.server import DatabaseSettings

_INSTALL = """\
#!/bin/sh
set -e
for each; do case $each in --datadir=*) data=${each#--datadir=} ;; esac; done
if command -v flock >/dev/null; then exec 9>"$MADE.lock"; flock 9; fi
if [ -d "$MADE" ]; then cp -R "$MADE" "$data"; exit; fi
sh "$HOME_OF_ALL/scripts/mariadb-install-db" "$@"
cp -R "$data" "$MADE.part"
mv "$MADE.part" "$MADE"
"""


def home_that_installs_once(directory: Path, home: Path, made: Path) -> Path:
    """`home` as it is, but its system tables are made once, in `made`, and copied from then on."""
    directory.mkdir(parents=True)
    for part in home.iterdir():
        (directory / part.name).symlink_to(part)
    scripts = directory / "scripts"
    scripts.unlink()
    scripts.mkdir()
    places = f"MADE='{made}'\nHOME_OF_ALL='{home}'\n"
    (scripts / "mariadb-install-db").write_text(_INSTALL.replace("set -e\n", f"set -e\n{places}"))
    return directory


@contextmanager
def running_services(
    directory: Path, broker: BrokerSettings, database: DatabaseSettings
) -> Iterator[tuple[KafkaBroker, MariaDb]]:
    """Both below `directory`, ended with the block; Spark's Java and jars are provided, too."""
    settings = Settings.load()
    java = find_java(settings.cache_dir)
    os.environ.update(java.environment())
    cache = JarCache(settings.cache_dir, java)
    cache.jars(JarSet.SPARK)
    with (
        KafkaBroker(directory / "kafka", java, cache.jars(JarSet.BROKER), broker) as kafka,
        MariaDb(directory / "mariadb", cache.database_home(), database) as mariadb,
    ):
        yield kafka, mariadb


@contextmanager
def data_directory(given: Path | None) -> Iterator[Path]:
    """`given`, made and kept, or a temporary one that is removed."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="sluice-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
