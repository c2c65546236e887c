"""Windows again, slow and from the definition: what the operator must equal.

A window is what its records are: for tumbling and sliding windows those with the same bounds, for
sessions those that are connected by touching spans. Only the accepted records are kept.
"""

from dataclasses import dataclass, field

from watermark.model import MIN_TIMESTAMP


@dataclass(frozen=True)
class Accepted:
    key: str
    start: int
    end: int
    value: int


@dataclass
class WindowModel:
    """`size` and `slide` (and `gap` None), or `gap` for sessions."""

    lateness: int
    size: int = 0
    slide: int = 0
    offset: int = 0
    gap: int | None = None
    watermark: int = MIN_TIMESTAMP
    records: list[Accepted] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def row(self, key, value, time):
        """What fires at once: (key, start, end, values)."""
        fired, taken = [], False
        for start, end in self.spans(time):
            group = self.group(Accepted(key, start, end, value))
            last = max(each.end for each in group) - 1
            if last + self.lateness <= self.watermark:
                continue
            taken = True
            self.records.append(group[0])
            if last <= self.watermark:
                fired.append(describe(group))
        if not taken and time + self.lateness <= self.watermark:
            self.late.append(value)
        return fired

    def advance(self, watermark):
        """What fires when event time goes to `watermark`."""
        if watermark <= self.watermark:
            return []
        fired, kept, seen = [], [], set()
        for record in self.records:
            group = self.group(record)
            last = max(each.end for each in group) - 1
            if describe(group)[:3] not in seen:
                seen.add(describe(group)[:3])
                if self.watermark < last <= watermark:
                    fired.append(describe(group))
            if last + self.lateness > watermark:
                kept.append(record)
        self.watermark = watermark
        self.records = kept
        return fired

    def spans(self, time):
        if self.gap is not None:
            return [(time, time + self.gap)]
        return [
            (start, start + self.size)
            for start in range(time - self.size + 1, time + 1)
            if (start - self.offset) % self.slide == 0
        ]

    def group(self, record):
        """The record and all that are in one window with it."""
        group = [record]
        for member in group:
            for other in self.records:
                if other.key == record.key and other not in group and self.together(member, other):
                    group.append(other)
        return group

    def together(self, one, other):
        if self.gap is None:
            return (one.start, one.end) == (other.start, other.end)
        return one.start <= other.end and one.end >= other.start


def describe(group):
    return (
        group[0].key,
        min(each.start for each in group),
        max(each.end for each in group),
        tuple(sorted(each.value for each in group)),
    )
