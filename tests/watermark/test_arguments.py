"""Every public constructor and method refuses arguments that are not what its signature says."""

import enum
import importlib
import inspect
import pkgutil
import sys
import types
import typing
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

import pytest

import watermark
from watermark.errors import InvalidParameterError, SluiceError
from watermark.model import Watermark, WatermarkStatus
from watermark.reference.emission import SourceOperator, UndelegatedReader
from watermark.reference.generators import AscendingTimestamps, WatermarkStrategy
from watermark.reference.operator import Operator, ProcessContext, ProcessFunction, ProcessOperator
from watermark.reference.outputs import WatermarkMultiplexer
from watermark.reference.temporal import (
    BUILD,
    PROBE,
    Change,
    RowKind,
    TemporalJoinOperator,
    TemporalJoinSpec,
)
from watermark.reference.timers import OutputTag, Record, TimeDomain
from watermark.reference.windows import (
    CountEvictor,
    EventTimeTrigger,
    Evictor,
    Stream,
    Trigger,
    TumblingWindows,
    WindowAssigner,
    WindowOperator,
    WindowOperatorSpec,
)
from watermark.reference.windows.functions import ListedContents
from watermark.valve import StatusWatermarkValve

LEFT_OUT_MODULES = {
    "watermark.combine",
    "watermark.checks",
    "watermark.reference.windows.functions",
}
"""What stands behind the valve, the operators and the decorator itself."""
MADE_BY_THE_PACKAGE = {
    "ChannelState",
    "UndelegatedReader",
    "JoinedRow",
    "LoggedRecord",
    "SnapshotFacts",
    "SnapshotJournal",
    "TimeWindow",  # made and hashed for each record
    "Timer",
    "TimerQueue",
}
CALLED_BY_THE_PACKAGE = {
    "assign",
    "before",
    "after",
    "cleanup_ms",
    "clear",
    "is_record_late",
    "is_window_late",
    "on_element",
    "on_event",
    "on_event_time",
    "on_merge",
    "on_periodic_emit",
    "on_processing_time",
    "process",
    "on_timer",
    "put",
    "state_of",
}
"""For each record, with what was looked at before."""


class Silent(ProcessFunction):
    def process(self, value, context):
        return


def values_of(context, values):
    return values


class Total:
    """An aggregate function, as far as its names go."""

    create = add = result = merge = print


def window_operator():
    windowed = Stream().window_all(TumblingWindows(100))
    return windowed.process(values_of)


def multiplexer():
    made = WatermarkMultiplexer()
    made.register("a")
    return made


def source():
    return SourceOperator(WatermarkStrategy.for_monotonous_timestamps(), splits=["a", "main"])


EXAMPLES = {
    int: lambda: 5,
    float: lambda: 1.5,
    str: lambda: "a",
    bool: lambda: False,
    types.NoneType: lambda: None,
    Watermark: lambda: Watermark(5),
    Record: lambda: Record("a", 5),
    OutputTag: lambda: OutputTag("late"),
    Operator: lambda: ProcessOperator(Silent()),
    ProcessOperator: lambda: ProcessOperator(Silent()),
    ProcessFunction: Silent,
    ProcessContext: lambda: ProcessContext(ProcessOperator(Silent()), "key"),
    WatermarkStrategy: WatermarkStrategy.for_monotonous_timestamps,
    WatermarkMultiplexer: multiplexer,
    SourceOperator: source,
    WindowAssigner: lambda: TumblingWindows(100),
    WindowOperatorSpec: lambda: WindowOperatorSpec(TumblingWindows(100)),
    WindowOperator: window_operator,
    Trigger: EventTimeTrigger,
    Evictor: lambda: CountEvictor(2),
    "WatermarkGenerator": AscendingTimestamps,
    "SourceReader": UndelegatedReader,
    "AggregateFunction": lambda: Total,
    "WindowContents": lambda: ListedContents(values_of),
}
BY_NAME = {"uid": "window", "offset_ms": 1, "new_operator": window_operator}
SETS = (set, frozenset)
COLLECTIONS = {each: each for each in SETS}
ANYTHING = (typing.Any, Hashable, object)
WRONG = (None, 5, 1.5, True, "ab", b"ab", ["a"], [5], {"a": 5}, object())


def public_classes():
    for each in pkgutil.walk_packages(watermark.__path__, "watermark."):
        module = importlib.import_module(each.name)
        for name, member in vars(module).items():
            if (
                isinstance(member, type)
                and member.__module__ == each.name not in LEFT_OUT_MODULES
                and not name.startswith("_")
                and name not in MADE_BY_THE_PACKAGE
                and not issubclass(member, enum.Enum | BaseException)
                and not getattr(member, "_is_protocol", False)
            ):
                yield member


CLASSES = sorted(public_classes(), key=lambda each: each.__qualname__)


def fits(value, hint):
    """Whether `value` is what an annotation says, by a rule of this test's own."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in ANYTHING or isinstance(hint, typing.TypeVar):
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in arguments)
    if origin is Callable or hint is Callable:
        return callable(value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(
            fits(key, arguments[0]) and fits(each, arguments[1]) for key, each in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, Collection):
        is_one = isinstance(value, origin if origin in SETS else list | tuple)
        return is_one and all(fits(each, arguments[0]) for each in value)
    if origin is Iterable:
        return isinstance(value, Iterable)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint if hint in (int, str, bool, types.NoneType) else False


def example(hint):
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    for known in (hint, getattr(hint, "__name__", "")):
        if isinstance(known, Hashable) and known in EXAMPLES:
            return EXAMPLES[known]()
    if hint in ANYTHING:
        return "a"
    if origin in (typing.Union, types.UnionType):
        return example(arguments[0])
    if origin is Callable:
        return lambda *args, **kwargs: 1
    if isinstance(origin, type):
        given = [example(each) for each in arguments if each is not ...]
        is_mapping = issubclass(origin, Mapping)
        return {given[0]: given[1]} if is_mapping else COLLECTIONS.get(origin, tuple)(given[:1])
    if issubclass(hint, enum.Enum):
        return next(iter(hint))
    return instance_of(hint)


def instance_of(cls):
    if cls in EXAMPLES:
        return EXAMPLES[cls]()
    return cls(**valid_arguments(cls, cls.__init__))


def valid_arguments(cls, function):
    return {
        name: BY_NAME.get(name) or example(hint)
        for name, hint, required in parameters(function)
        if required
    }


def parameters(function):
    hints = typing.get_type_hints(function)
    for name, each in inspect.signature(function).parameters.items():
        if name not in ("self", "cls") and each.kind is not each.VAR_KEYWORD:
            yield name, hints.get(name, typing.Any), each.default is each.empty


def entries(cls):
    """Constructor and methods of a class: name, function, and how to call it with arguments."""
    if not inspect.isabstract(cls) and "__init__" in vars(cls):
        yield "__init__", cls.__init__, lambda **given: cls(**given)
    for name, member in vars(cls).items():
        if name.startswith("_") or name in CALLED_BY_THE_PACKAGE:
            continue
        if isinstance(member, classmethod):
            yield name, member.__func__, getattr(cls, name)
        elif isinstance(member, types.FunctionType):
            yield (
                name,
                member,
                lambda _name=name, **given: getattr(instance_of(cls), _name)(**given),
            )


def wrong_calls(cls):
    for name, function, call in entries(cls):
        for parameter, hint, _ in parameters(function):
            for value in WRONG:
                if not fits(value, hint):
                    given = {**valid_arguments(cls, function), parameter: value}
                    yield f"{name}({parameter}={value!r})", call, given, (parameter, str(value))


def outcome(call, given, named):
    """What is wrong about how a call with a wrong argument ended, None if it was refused by name.

    Args:
        named: the parameter and the value, of which the message has to have one.
    """
    try:
        call(**given)
    except SluiceError as error:
        fine = any(each in error.message for each in named) and error.hint.endswith(".")
        return None if fine else error.message
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda each: each.__qualname__)
def test_arguments_of_another_type_are_refused_by_name(cls):
    ended = {shown: outcome(call, given, named) for shown, call, given, named in wrong_calls(cls)}
    assert {shown: found for shown, found in ended.items() if found is not None} == {}


def test_the_classes_that_people_use_are_among_them():
    names = {each.__qualname__ for each in CLASSES}
    assert {
        "StatusWatermarkValve",
        "TumblingWindows",
        "SourceOperator",
        "WindowOperatorSpec",
    } <= names
    assert len(names) >= 40


@pytest.mark.parametrize("size", ["5 s", 1.5, True, None])
def test_a_window_of_no_whole_size_is_refused_with_its_name(size):
    with pytest.raises(InvalidParameterError) as raised:
        TumblingWindows(size)
    assert raised.value.message == f"TumblingWindows got size_ms {size!r}, expected int"


def test_a_string_is_neither_a_list_of_channels_nor_a_status():
    with pytest.raises(InvalidParameterError, match="got channels 'items/0', expected Sequence"):
        StatusWatermarkValve("items/0")
    with pytest.raises(InvalidParameterError, match="got status 'idle', expected WatermarkStatus"):
        StatusWatermarkValve(["items/0"]).input_status("items/0", "idle")


def test_a_gap_that_a_function_gives_is_looked_at_too():
    sessions = watermark.reference.windows.SessionWindows(lambda value: "5 s")
    with pytest.raises(InvalidParameterError, match="gap '5 s'"):
        sessions.assign("row", 5, 0)


def test_a_build_record_of_a_join_is_a_change():
    spec = TemporalJoinSpec(probe_key=str, build_key=str)
    join = TemporalJoinOperator(spec)
    join.process_record(Record("row", 5), now_ms=0, source=PROBE)
    join.process_record(Record(Change(RowKind.INSERT, "row"), 5), now_ms=0, source=BUILD)
    with pytest.raises(InvalidParameterError, match="build record 'row', expected Change"):
        join.process_record(Record("row", 5), now_ms=0, source=BUILD)


def test_a_timer_of_a_trigger_is_at_a_whole_time():
    class Halves(EventTimeTrigger):
        def on_element(self, value, timestamp_ms, window, context):
            context.register(TimeDomain.EVENT, timestamp_ms / 2)
            return super().on_element(value, timestamp_ms, window, context)

    operator = Stream().window_all(TumblingWindows(100)).trigger(Halves()).process(values_of)
    with pytest.raises(InvalidParameterError, match=r"timestamp_ms 2\.5, expected int"):
        operator.process_record(Record("row", 5), now_ms=0)


def test_a_status_of_its_own_is_taken():
    valve = StatusWatermarkValve(["a"])
    assert valve.input_status("a", WatermarkStatus.IDLE) == (WatermarkStatus.IDLE,)


def into_source():
    operator = source()
    return lambda at: operator.process_record(at, at, now_ms=5)


def into_process():
    class Passing(ProcessFunction):
        def process(self, value, context):
            context.emit(value)

    operator = ProcessOperator(Passing())
    return lambda at: operator.process_record(Record(at, at), now_ms=5)


def into_windows():
    operator = Stream().key_by(abs).window(TumblingWindows(100)).reduce(max)
    return lambda at: operator.process_record(Record(at, at), now_ms=5)


PER_RECORD = {
    "source": (into_source, 0),
    "process": (into_process, 1),
    "windows": (into_windows, 0),
}


@pytest.mark.parametrize(("into", "most"), PER_RECORD.values(), ids=PER_RECORD)
def test_a_record_does_not_wait_for_checks_of_signatures(into, most):
    process, held = into(), 0

    def count(frame, event, _):
        nonlocal held
        held += event == "call" and frame.f_code.co_qualname.startswith("_holding.")

    process(1)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for at in range(2, 12):
            process(at)
    finally:
        sys.setprofile(before)
    assert held <= 10 * most
