"""Spark's pools: a query's jobs run in the pool that it was started in, probe before build."""

import pytest

from tests.support.wait import wait_until


@pytest.mark.timeout(600)
def test_the_jobs_of_a_query_are_in_the_pool_of_its_start(spark, tmp_path):
    seen: dict[str, str] = {}
    queries = []
    for pool in ("probe", "build"):
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)

        def note(frame, _batch, pool=pool):
            frame.count()
            seen[pool] = frame.sparkSession.sparkContext.getLocalProperty("spark.scheduler.pool")

        stream = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
        writer = stream.writeStream.option("checkpointLocation", str(tmp_path / pool))
        queries.append(writer.foreachBatch(note).start())
    try:
        wait_until(lambda: len(seen) == 2, deadline_s=500, what="both queries ran a batch")
    finally:
        for query in queries:
            query.stop()
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
    assert seen == {"probe": "probe", "build": "build"}


def test_the_probe_has_the_greatest_share_and_the_fold_what_is_left(spark):
    pools = spark.sparkContext._jsc.sc().getAllPools()
    shares = {pools.apply(at).name(): pools.apply(at).minShare() for at in range(pools.size())}
    order = sorted(("probe", "build", "snapshot", "fold"), key=lambda name: -shares[name])
    assert order == ["probe", "build", "snapshot", "fold"]
    assert len({shares[name] for name in order}) == 4
    assert shares["fold"] == 0
