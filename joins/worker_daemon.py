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
    "joins.adapters.console_sink",
    "joins.adapters.delta_sink",
    "joins.adapters.kafka_sink",
    "joins.adapters.merge_sink",
    "joins.adapters.spark_delta_sink",
    "joins.build_side",
    "joins.event_task",
    "joins.shuffle",
    "joins.snapshot",
)

if __name__ == "__main__":
    for name in LOADED:
        import_module(name)
    gc.freeze()
    manager()
