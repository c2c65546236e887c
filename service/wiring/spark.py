"""Spark session settings from Sluice's settings."""

from pathlib import Path

from joins.job.session import SparkSettings
from service.config import Settings
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import class_archive, find_java


def spark_settings(settings: Settings, app_name: str, scratch: Path) -> SparkSettings:
    java = find_java(settings.cache_dir)
    jars = JarCache(settings.cache_dir, java).jars(JarSet.SPARK)
    return SparkSettings(
        app_name=app_name,
        jars=jars,
        scratch_directory=scratch,
        master=settings.spark_master,
        driver_memory=settings.spark_driver_memory,
        java_home=java.home,
        class_archive=class_archive(settings.cache_dir, java, jars),
        extra=settings.spark_conf,
    )
