"""Provide Java, jars and binaries beforehand: ``python -m service.embedded.provide``.

Exit codes: 0 all provided, 1 failed with a message, 3 no usable Java. `make` then adds one; its
first call is with ``--quiet-without-java``. ``--debezium`` adds Connect, PostgreSQL and the
registry, which are otherwise fetched at first use.
"""

import sys

import typer

from service.config import Settings
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java, provide_class_archive
from service.embedded.process import JavaNotFoundError
from watermark.errors import SluiceError

NO_JAVA = 3


def main() -> int:
    try:
        cache_dir = Settings.load().cache_dir
        java = find_java(cache_dir)
        cache = JarCache(cache_dir, java)
        jars = cache.jars(JarSet.SPARK)
        cache.jars(JarSet.BROKER)
        cache.database_home()
        if "--debezium" in sys.argv:
            cache.jars(JarSet.CONNECT)
            cache.postgres_home()
            cache.registry_home()
        provide_class_archive(cache_dir, java, jars)
    except JavaNotFoundError as exc:
        if "--quiet-without-java" not in sys.argv:
            typer.echo(f"error: {exc.message}\nhint: {exc.hint}", err=True)
        return NO_JAVA
    except SluiceError as exc:
        typer.echo(f"error: {exc.message}\nhint: {exc.hint}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
