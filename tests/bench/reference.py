"""The reference: what Spark itself does with the same records. Whoever makes it faster is welcome.

Plain PySpark, nothing of Sluice: a stream from Kafka, parsed with `from_json`, joined with a Delta
table by Spark's stream-static broadcast join, written by Spark's own sink in micro-batches. The
table is not cached: each micro-batch sees its newest version, as ours does. Or the records are
counted in windows, with the state in RocksDB, or passed on in Spark's real-time mode. It runs as a
program (`python -m tests.bench.reference '<JSON>'`): a JVM for each run, as ours has.
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, col, from_json, struct, to_json, window
from pyspark.sql.streaming import DataStreamWriter

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.streaming.stateless.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
_REAL_TIME_BATCH = "5 minutes"  # the default: an interval of checkpoints, records pass at once


def session(config: dict[str, Any]) -> SparkSession:
    """A JVM with as many cores, as much memory and the same jars as ours."""
    values = {
        **SETTINGS,
        "spark.master": config["master"],
        "spark.driver.memory": config["memory"],
        "spark.jars": ",".join(config["jars"]),
        "spark.local.dir": config["scratch"],
        "spark.sql.warehouse.dir": config["scratch"] + "/warehouse",
    }
    builder = SparkSession.builder.appName("reference")
    for name, value in values.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stream(spark: SparkSession, config: dict[str, Any]) -> DataFrame:
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", config["bootstrap"])
        .option("subscribe", config["topic"])
        .option("startingOffsets", json.dumps(config["starting"]))
    )
    if not config["real_time"]:
        reader = reader.option("maxOffsetsPerTrigger", config["max_records"])
    return reader.load()


def parsed(records: DataFrame, config: dict[str, Any]) -> DataFrame:
    value = col("value").cast("string")
    return records.select(from_json(value, config["schema"]).alias("c")).select("c.*")


def counted(records: DataFrame, config: dict[str, Any]) -> DataFrame:
    """Clicks of each user in each window, once the watermark has passed its end."""
    windows = config["windows"]
    clicks = parsed(records, config).withWatermark("ts", windows["delay"])
    counts = clicks.groupBy(window("ts", windows["size"]), "user_id").count()
    return counts.select(
        "user_id",
        col("window.start").alias("window_start"),
        col("window.end").alias("window_end"),
        col("count").alias("clicks"),
    )


def joined(spark: SparkSession, records: DataFrame, config: dict[str, Any]) -> DataFrame:
    """Clicks with the user's gender and name, who may be unknown."""
    clicks = parsed(records, config)
    users = spark.read.format("delta").load(config["dimension"])
    wanted = users.select("user_id", "gender", "name")
    return clicks.join(broadcast(wanted), "user_id", "left")


def transformed(spark: SparkSession, records: DataFrame, config: dict[str, Any]) -> DataFrame:
    """What is to be made of the records; without anything they are passed on."""
    if config["windows"] is not None:
        return counted(records, config)
    if config["dimension"] is not None:
        return joined(spark, records, config)
    return records.select("value")


def written(rows: DataFrame, config: dict[str, Any]) -> DataStreamWriter:
    """`rows` on their way into the sink."""
    sink = config["sink"]
    if sink["format"] == "kafka":
        if "value" not in rows.columns:
            rows = rows.select(to_json(struct("*")).alias("value"))
        rows = rows.select("value")
    writer = rows.writeStream.format(sink["format"]).option(
        "checkpointLocation", config["checkpoint"]
    )
    for name, value in sink["options"].items():
        writer = writer.option(name, value)
    return writer


def main() -> None:
    """Run the query to the end of what is there, or until standard input closes."""
    config = json.loads(sys.argv[1])
    spark = session(config)
    writer = written(transformed(spark, stream(spark, config), config), config)
    if config["real_time"]:
        writer = writer.outputMode("update").trigger(realTime=_REAL_TIME_BATCH)
    if config["follow"]:
        query = writer.start()
        sys.stdout.write("started\n")
        sys.stdout.flush()
        sys.stdin.read()
        query.stop()
    else:
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
