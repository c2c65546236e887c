"""Which jobs Spark has run."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def jobs_of(spark: SparkSession) -> Iterator[list[int]]:
    """The ids of the jobs that this thread runs in the block; they are in the list behind it."""
    context, group = spark.sparkContext, uuid.uuid4().hex
    jobs: list[int] = []
    context.setJobGroup(group, "a test counts them")
    try:
        yield jobs
    finally:
        jobs.extend(context.statusTracker().getJobIdsForGroup(group))
        context.setLocalProperty("spark.jobGroup.id", None)
