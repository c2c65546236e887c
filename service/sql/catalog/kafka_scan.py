"""Where a topic is read from and up to, and which consumer group goes with that."""

from joins.plan.plan import BoundedMode, StartupMode
from service.sql.catalog.option_values import OptionValues
from service.sql.catalog.options import OF_A_GROUP


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
    """See that who is told not to commit to a group has one."""
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
