"""The process that Spark's Python workers are forked from: what they need is loaded already.

Spark ends idle workers each minute, and a killed one is replaced: loading the modules takes a new
worker 2 s, in which its batch waits. A worker collects all garbage after each task, which takes
30 ms with the modules and nothing once they are frozen (both measured).
"""

import gc
from importlib import import_module

from pyspark.daemon import manager

LOADED = (
    "pyspark.worker",
    "joins.sinks.console",
    "joins.sinks.delta",
    "joins.sinks.kafka",
    "joins.sinks.merge",
    "joins.sinks.spark",
    "joins.dimension.build_side",
    "joins.worker.event_task",
    "joins.worker.topic_reader",
    "joins.batch.shuffle",
    "joins.source.chunk_reader",
)
COMPILED = (
    "joins.kernels.records.encode",
    "joins.kernels.records.decode",
    "joins.kernels.json.plain",
    "joins.adapters.mysql.text",
)


def main() -> None:
    """Load the modules, then fork workers as Spark's own daemon does."""
    gc.disable()  # nothing that is loaded is garbage: looking for it takes a tenth of the time
    for name in LOADED:
        import_module(name)
    for name in COMPILED:
        import_module(name).warm_up()
    gc.freeze()
    gc.enable()
    manager()


if __name__ == "__main__":
    main()
