"""A function in Python tasks: what `mapPartitions(…).collect()` does, by fewer calls of the JVM.

PySpark asks about twenty times for each stage: for classes, and for an environment entry by entry.
That is a third of what only the driver does for a small batch, so what stays is asked for once.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from py4j.java_collections import ListConverter, MapConverter
from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer, UTF8Deserializer
from pyspark.util import _load_from_socket

from joins.worker.placement import Nodes

Texts = Callable[[Iterable[int]], Iterator[str]]
"""What a task does: it is given its numbers."""
_READS: Any = UTF8Deserializer
_PICKLES: Any = CloudPickleSerializer


@dataclass(frozen=True, slots=True)
class _OfAPartition:
    """As a Python worker calls it; picklable."""

    work: Texts

    def __call__(self, _: int, numbers: Iterator[str]) -> Iterator[str]:
        return self.work(map(int, numbers))


@dataclass(frozen=True, slots=True, eq=False)
class _Jvm:
    """What stays the same for all stages of a session; objects of its JVM.

    Attributes:
        function, rdd: classes.
        collect: runs an RDD, and says where what its tasks give can be read.
        environment, includes: of the workers.
        nothing: an empty list.
        largest_bytes: of a function that goes with each task; a larger one is broadcast.
    """

    function: Any
    rdd: Any
    collect: Any
    environment: Any
    includes: Any
    nothing: Any
    largest_bytes: int

    @classmethod
    def of(cls, context: SparkContext) -> "_Jvm":
        jvm: Any = context._jvm
        client = context._gateway._gateway_client  # type: ignore[union-attr] # of a live session
        return cls(
            jvm.SimplePythonFunction,
            jvm.PythonRDD,
            jvm.PythonRDD.collectAndServe,
            MapConverter().convert(context.environment, client),
            ListConverter().convert(context._python_includes, client),
            ListConverter().convert([], client),
            jvm.PythonUtils.getBroadcastThreshold(context._jsc),
        )


_jvm_of = lru_cache(maxsize=4)(_Jvm.of)


@lru_cache(maxsize=64)
def numbered(context: SparkContext, count: int, nodes: Nodes) -> Any:  # noqa: ANN401
    """An RDD of the JVM with a partition for each number; of `nodes` each prefers one, if any."""
    jvm: Any = context._jvm
    sequence, pair = jvm.PythonUtils.toSeq, jvm.scala.Tuple2
    places = [sequence([nodes[n % len(nodes)]] if nodes else []) for n in range(count)]
    placed = [pair(str(n), place) for n, place in enumerate(places)]
    text = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("java.lang.String"))
    spark: Any = context._jsc
    return spark.sc().makeRDD(sequence(placed), text)


def collected(context: SparkContext, count: int, nodes: Nodes, work: Texts) -> list[str]:
    """The texts of so many tasks, in their order; of `nodes` each task prefers one, if any.

    Raises:
        PySparkException: a task has failed for the last time, or its job was cancelled.
    """
    jvm, reads, pickles = _jvm_of(context), _READS(), _PICKLES()
    pickled = pickles.dumps((_OfAPartition(work), None, reads, context.serializer))
    if len(pickled) > jvm.largest_bytes:
        pickled = pickles.dumps(context.broadcast(pickled))  # it goes with the RDD
    sent = context._pickled_broadcast_vars  # those that the function has named
    broadcasts = [each._jbroadcast for each in sent] or jvm.nothing
    sent.clear()
    function = jvm.function(
        bytearray(pickled),
        jvm.environment,
        jvm.includes,
        context.pythonExec,
        context.pythonVer,
        broadcasts,
        context._javaAccumulator,
    )
    rdd = jvm.rdd(numbered(context, count, nodes), function, False, False)
    with _load_from_socket(jvm.collect(rdd), context.serializer) as stream:
        return list(stream)
