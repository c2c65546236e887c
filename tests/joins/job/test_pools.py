"""Spark's pools: probe before build, before the snapshot, before folds."""


def test_the_probe_has_the_greatest_share_and_the_fold_what_is_left(spark):
    pools = spark.sparkContext._jsc.sc().getAllPools()
    shares = {pools.apply(at).name(): pools.apply(at).minShare() for at in range(pools.size())}
    order = sorted(("probe", "build", "snapshot", "fold"), key=lambda name: -shares[name])
    assert order == ["probe", "build", "snapshot", "fold"]
    assert len({shares[name] for name in order}) == 4
    assert shares["fold"] == 0
