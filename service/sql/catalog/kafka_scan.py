"""Which topics are read, from where and up to where, and which consumer group goes with that."""

from joins.kernels.strings.regular import UnknownAnswerError, compiled
from joins.plan.plan import BoundedMode, StartupMode
from service.sql.catalog.option_values import OptionValues
from service.sql.catalog.options import DISCOVERY, OF_A_GROUP

TOPIC, PATTERN = "topic", "topic-pattern"


def topics(values: OptionValues) -> list[str]:
    """The names of the topics; "" alone of a pattern, whose topics the cluster knows."""
    pattern = values.text(PATTERN)
    if pattern is not None:
        return [_checked(values, pattern)]
    if not values.is_set(TOPIC):
        raise values.error(
            TOPIC,
            'option "topic" is missing',
            hint="Add 'topic' = '…' to WITH (…), of a stream 'topic-pattern' will also do.",
        )
    names = values.required(TOPIC).split(";")
    for name in names:
        if names.count(name) > 1:
            raise values.error(
                TOPIC, f'topic "{name}" is given twice', hint="Name each topic once."
            )
    return names


def _checked(values: OptionValues, pattern: str) -> str:
    """Nothing, of a pattern that can be matched."""
    if values.is_set(TOPIC):
        raise values.error(
            PATTERN,
            'options "topic" and "topic-pattern" are both given',
            hint="Remove one of the two.",
        )
    try:
        usable = compiled(pattern) is not None
    except UnknownAnswerError as exc:
        raise values.error(
            PATTERN,
            f'option "topic-pattern" has what only Java can match: {exc}',
            hint="Write it without looking ahead or back, possessive repetition and references.",
        ) from exc
    if not usable:
        raise values.error(
            PATTERN,
            f'option "topic-pattern" is "{pattern[:100]}", which is no regular expression',
            hint="Write one as Java has it, such as 'clicks-.*'.",
        )
    return ""


def discovery_ms(values: OptionValues) -> int | None:
    """How often new topics are looked for; None for never."""
    if values.text(PATTERN) is not None:
        return values.milliseconds(DISCOVERY) or None
    if values.is_set(DISCOVERY):
        raise values.error(
            DISCOVERY,
            f'option "{DISCOVERY}" has no effect without "topic-pattern"',
            hint="Remove it: new partitions are found before each batch, and read from their "
            "beginning.",
        )
    return None


def check_group(values: OptionValues, start: StartupMode, end: BoundedMode) -> None:
    """See that what is asked of a consumer group has one, and has an effect."""
    group, reset, _ = OF_A_GROUP
    if start is StartupMode.GROUP:
        values.required(group)
    else:
        _refuse_without_effect(values, reset, "scan.startup.mode", needed="group-offsets")
    if end is BoundedMode.GROUP:
        values.required(group)
    check_commits(values)


def check_commits(values: OptionValues) -> None:
    group, _, commits = OF_A_GROUP
    if commits in values.nodes:
        values.require_beside(commits, group)


def timestamp(values: OptionValues, prefix: str, mode: StartupMode | BoundedMode) -> int | None:
    """The time of a start or of an end."""
    key = f"{prefix}.timestamp-millis"
    if mode.value == "timestamp":
        return int(values.required(key))
    _refuse_without_effect(values, key, f"{prefix}.mode", needed="timestamp")
    return None


def offsets(
    values: OptionValues, prefix: str, mode: StartupMode | BoundedMode
) -> tuple[tuple[int, int], ...]:
    """The offsets of a start or of an end, as (partition, offset) pairs."""
    key = f"{prefix}.specific-offsets"
    if mode.value != "specific-offsets":
        _refuse_without_effect(values, key, f"{prefix}.mode", needed="specific-offsets")
        return ()
    pairs: dict[int, int] = {}
    for part in values.required(key).rstrip(";").split(";"):
        partition, offset = (int(item.partition(":")[2]) for item in part.split(","))
        if partition in pairs:
            raise values.error(
                key, f"partition {partition} is given twice", hint="Name each partition once."
            )
        pairs[partition] = offset
    return tuple(sorted(pairs.items()))


def _refuse_without_effect(values: OptionValues, key: str, mode: str, *, needed: str) -> None:
    if key in values.nodes:
        raise values.error(
            key,
            f'option "{key}" has no effect with {mode} {values.text(mode)}',
            hint=f"Write '{mode}' = '{needed}' or remove the option.",
        )
