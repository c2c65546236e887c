"""All kinds of sources and sinks, by the class of the plan that declares them."""

from typing import Any

from joins.plan.plan import (
    BlackholeSink,
    DeltaSink,
    DeltaTableSource,
    DimensionSource,
    FileSource,
    KafkaSink,
    MysqlCdcSource,
    PolledSource,
    PrintSink,
    SharedSource,
    Sink,
    TopicSource,
)
from service.connectors.mysql import MysqlTables
from service.connectors.polled import PolledTables
from service.connectors.port import SinkConnector, SourceConnector
from service.connectors.sinks import BlackholeSinks, DeltaSinks, KafkaSinks, PrintSinks
from service.connectors.tables import DeltaTables, FileTables, SharedTables
from service.connectors.topics import TopicTables

SOURCES: dict[type, SourceConnector[Any, Any]] = {
    MysqlCdcSource: MysqlTables(),
    PolledSource: PolledTables(),
    DeltaTableSource: DeltaTables(),
    FileSource: FileTables(),
    TopicSource: TopicTables(),
    SharedSource: SharedTables(),
}
SINKS: dict[type, SinkConnector[Any]] = {
    DeltaSink: DeltaSinks(),
    KafkaSink: KafkaSinks(),
    PrintSink: PrintSinks(),
    BlackholeSink: BlackholeSinks(),
}


def source_connector(source: DimensionSource) -> SourceConnector[Any, Any]:
    return SOURCES[type(source)]


def sink_connector(sink: Sink) -> SinkConnector[Any]:
    return SINKS[type(sink)]
