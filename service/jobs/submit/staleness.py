"""Refuses a `join.max-staleness` that the machine cannot reach."""

from joins.adapters.mysql.clock import ask
from joins.adapters.mysql.connection import connected, is_mariadb
from joins.plan.errors import SourceError
from joins.plan.plan import Dimension, FileSource, MysqlCdcSource, SharedSource, TopicSource
from service.config import Settings
from service.security.resolution import connection_of

_QUESTIONS = 3


def check_staleness(dimension: Dimension, settings: Settings) -> None:
    """Raise SourceError if the bound is below the best freshness; asks a database for its time.

    T is at best as old as the pause between two questions, an answer and the pause between two
    commits; of a connector's topic also as the time that a record may be on its way.
    """
    bound_ms = dimension.max_staleness_ms
    if bound_ms is None or isinstance(dimension.source, FileSource):
        return
    answer_ms = _answer_ms(dimension)
    settings_ms = round(settings.freshness_interval_s * 1000) + settings.build_trigger_ms
    best_ms = settings_ms + answer_ms + _settle_ms(dimension)
    if bound_ms >= best_ms:
        return
    settle = f", on its way {_settle_ms(dimension)} ms" if _settle_ms(dimension) else ""
    raise SourceError(
        f"table \"{dimension.name}\" has 'join.max-staleness' of {bound_ms} ms, below the best "
        f"freshness of {best_ms} ms: asked each {settings.freshness_interval_s:g} s, answered in "
        f"{answer_ms} ms, committed each {settings.build_trigger_ms} ms{settle}",
        hint=f"Give it {best_ms} ms or more, best twice as much; or lower "
        "SLUICE_FRESHNESS_INTERVAL_S.",
    )


def _answer_ms(dimension: Dimension) -> int:
    """Measured: the longest of a few answers."""
    source = dimension.source
    if not isinstance(source, MysqlCdcSource):
        return 0
    with connected(connection_of(source)) as connection:
        mariadb = is_mariadb(connection)
        answers = [ask(connection, mariadb=mariadb) for _ in range(_QUESTIONS)]
    return max((2 * (answer.within_ms or 0) for answer in answers if answer is not None), default=0)


def _settle_ms(dimension: Dimension) -> int:
    source = dimension.source
    if isinstance(source, SharedSource) or not isinstance(source, TopicSource):
        return 0
    evidence = source.evidence
    if evidence is None or evidence.connect_url is not None:
        return 0
    return evidence.settle_ms if evidence.heartbeat_topic is not None else 0
