"""The numeric examples of the sources, read from `seed_vectors.json`."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from watermark.model import MIN_TIMESTAMP, Watermark
from watermark.reference.timers import Record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VECTORS = {
    vector["name"]: vector
    for vector in json.loads(Path(__file__).with_name("seed_vectors.json").read_text())
}


def millis(text: str) -> int:
    """Epoch milliseconds of `2018-11-08T13:00:00.099`, taken as UTC."""
    if text == "Long.MIN_VALUE":
        return MIN_TIMESTAMP
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def clock(text: str) -> int:
    """Milliseconds of `8:06` or `8:04:59.999` on some day."""
    hours, minutes, *seconds = text.split(":")
    return (int(hours) * 60 + int(minutes)) * 60_000 + round(float((seconds or ["0"])[0]) * 1000)


def elements(vector: dict) -> list[Record | Watermark]:
    return [
        Watermark(millis(each["watermark"]))
        if "watermark" in each
        else Record((each["key"], each["value"]), millis(each["event_time"]))
        for each in vector["input"]
    ]
