"""Which node is offered which task: the same each time, so that few nodes follow a table's index.

A node that has no index of the pinned version makes one, from an older one if it can. Where small
batches went to any node, each would do so now and then; so task n of a job's batches prefers one
node. Preferring is all: a task does not wait for a node that is busy or gone.
"""

import time
import zlib
from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from joins.worker.threads import TAG

_KNOWN_S = 5.0
_DRIVER = "driver"
Nodes = tuple[str, ...]


def nodes_for(spark: SparkSession) -> Nodes:
    """The hosts of executors, that of task 0 of the session's job first; none if all is here."""
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return ()
    nodes = _nodes(context, int(time.monotonic() / _KNOWN_S))
    if len(nodes) < 2:
        return ()
    job = str(spark.conf.get(TAG, None) or context.appName)
    first = zlib.crc32(job.encode()) % len(nodes)
    return nodes[first:] + nodes[:first]


def parallelism(spark: SparkSession) -> int:
    """Tasks that can run at the same time, as they were within the last seconds."""
    return _parallelism(spark.sparkContext, int(time.monotonic() / _KNOWN_S))


@lru_cache(maxsize=4)
def _parallelism(context: SparkContext, _: int) -> int:
    return int(context.defaultParallelism)


@lru_cache(maxsize=4)
def _nodes(context: SparkContext, _: int) -> Nodes:
    executors: Any = context._jsc.sc().statusStore().executorList(True)  # those that live
    known = (executors.apply(at) for at in range(executors.length()))
    hosts = {str(each.hostPort()).rpartition(":")[0] for each in known if each.id() != _DRIVER}
    return tuple(sorted(hosts))
