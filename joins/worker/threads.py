"""What the Spark jobs of a thread of the runner are: of a pool, and of a job."""

from pyspark.sql import SparkSession

TAG = "spark.sluice.job"
"""The setting of a session with the tag of its Spark jobs, where several runners share a driver."""


def enter_pool(spark: SparkSession, pool: str) -> None:
    """Let the Spark jobs of this thread share the cores as those of `pool` do."""
    context = spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", pool)
    tag = spark.conf.get(TAG, None)
    if tag is not None:
        context.addJobTag(tag)
