// Event time: each partition's watermark, the combined one, and what waits for it.

import { h } from "./dom.js";
import { bytes, count, duration, isBound, many, plain } from "./format.js";
import { cell, facts, panel, said, shape, table, time } from "./parts.js";

const HEADS = ["Channel", "Status", "Watermark", "Behind the clock", "Active at"];

/** The panel; nothing for a job whose records wait for no watermark. */
export function eventTime({ job, nowMs }) {
  const { event_time: found } = job;
  if (!found) return null;
  const cause = found.waits_for;
  return panel(
    "event-time",
    found.late_rows ? "Late rows" : "Event time",
    cause && h("p", { class: "sentence" }, shape("…"), said(cause.text)),
    facts([
      ...(found.late_rows ? [] : [["combined watermark", combined(found)]]),
      ["waiting records", waiting(found)],
      ["oldest of them", found.oldest_waiting_ms === null ? null : instant(found.oldest_waiting_ms)],
      ...windows(found),
      ...lateRows(found.late_rows),
      ["late records", late(found.late_records)],
    ]),
    found.inputs?.length > 0 && h("p", { class: "quiet" }, inputs(found.inputs)),
    found.channels?.length > 0 &&
      table("Watermarks of the channels", HEADS, found.channels.map((channel) => row(channel, nowMs))),
  );
}

function combined({ watermark_ms: at, use_processing_time: isClock }) {
  return [instant(at), isClock ? ", and processing time" : null];
}

function waiting({ waiting_rows: rows, waiting_bytes: size }) {
  return [h("strong", { class: "big" }, count(rows)), size ? ` (about ${bytes(size)})` : null];
}

function windows({ window_watermark_ms: at, window_rows: rows, next_window_ms: next, fired_rows: fired }) {
  if (at === null && !rows) return [];
  return [
    ["open windows", `${many(rows, "row")} of state`],
    ["next window is due", next === null ? "none is open" : instant(next)],
    ["rows out of windows", count(fired)],
  ];
}

function lateRows(found) {
  if (!found) return [];
  return [
    ["they wait for", said(found.tables.join(", "))],
    ["left with a match", count(found.matched)],
    ["left without one", count(found.expired)],
    ...(found.correct_ms ? [["corrected after that", count(found.corrected)]] : []),
  ];
}

function late(records) {
  return records ? h("strong", { class: "warn" }, count(records)) : count(records ?? 0);
}

function inputs(found) {
  return found.map(({ input, status, watermark_ms: at, use_processing_time: isClock }, place) => [
    place > 0 && " · ",
    said(input === "probe" ? "stream" : input),
    ` is ${plain(status)} at `,
    isClock ? "processing time" : instant(at),
  ]);
}

function row(channel, nowMs) {
  const { status, aligned, watermark_ms: at, active_at_ms: active } = channel;
  const isIdle = status === "IDLE";
  const isClock = Boolean(channel.use_processing_time);
  const isHolding = !isIdle && !isClock && at === null;
  return h(
    "tr",
    { "data-key": channel.channel },
    cell("Channel", said(channel.channel.replace(/^probe\//, "stream/"))),
    cell("Status", standing(status, aligned)),
    cell("Watermark", h("span", { class: isHolding ? "warn" : null }, isClock ? "processing time" : instant(at))),
    cell("Behind the clock", at === null || isBound(at) ? "–" : duration(nowMs - at)),
    cell("Active at", Number.isFinite(active) ? time(active) : "–"),
  );
}

/** The status of a channel; idle and ended ones are never aligned, of those it says enough. */
export function standing(status, aligned) {
  return status === "ACTIVE" && aligned === false ? "ACTIVE, not aligned" : plain(status);
}

/** An instant of event time, which may be a bound or none. */
function instant(at) {
  if (at === null || at === undefined) return "none yet";
  if (isBound(at)) return at < 0 ? "MIN" : "MAX, the end of the stream";
  return time(at);
}
