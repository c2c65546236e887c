"""Spark session settings from Sluice's settings."""

from pathlib import Path

from joins.job.session import SparkSettings, local_cores
from service.config import Settings
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import class_archive, find_java

_MOST_RESIDENTS = 4  # more serve batches that are so large that Spark's scheduling costs little


def resident_tasks(settings: Settings) -> int:
    if settings.resident_tasks >= 0:
        return settings.resident_tasks
    return min(_MOST_RESIDENTS, local_cores(settings.spark_master) or 0)


def spark_settings(
    settings: Settings, app_name: str, scratch: Path, *, residents: int = 0
) -> SparkSettings:
    java = find_java(settings.cache_dir)
    jars = JarCache(settings.cache_dir, java).jars(JarSet.SPARK)
    return SparkSettings(
        app_name=app_name,
        jars=jars,
        scratch_directory=scratch,
        master=settings.spark_master,
        residents=residents,
        driver_memory=settings.spark_driver_memory,
        java_home=java.home,
        class_archive=class_archive(settings.cache_dir, java, jars),
        extra=settings.spark_conf,
    )
