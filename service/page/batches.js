// The newest batches: what each has read, under which versions, and what it has committed.

import { h } from "./dom.js";
import { clock, count, plain } from "./format.js";
import { cell, panel, refusal, said, shape, table, time } from "./parts.js";

const HEADS = ["Batch", "Time", "Records", "Rows out", "Dead letters", "Table versions", "Committed"];

/** The panel; it is asked for when its tab is opened, not followed: looking takes another process. */
export function batches({ batches: found, batchesAtMs, batchesError, isAskingBatches, nowMs }) {
  return panel(
    "batches",
    "Newest batches",
    batchesError && refusal("The batches cannot be shown", batchesError),
    found && (found.length ? table("Newest batches", HEADS, found.map(row)) : none()),
    h(
      "p",
      { class: "quiet" },
      batchesAtMs ? `As of ${clock(batchesAtMs, nowMs)}. ` : null,
      again(isAskingBatches),
    ),
  );
}

function again(isAsking) {
  const label = isAsking ? "Looking …" : "Look again";
  return h("button", { type: "button", "data-action": "batches", disabled: isAsking }, label);
}

function none() {
  return h("p", { class: "quiet" }, "No batch yet.");
}

function row(batch) {
  const pin = batch.pin ?? {};
  const counts = batch.counts ?? {};
  return h(
    "tr",
    { "data-key": batch.batch },
    [
      count(batch.batch),
      time(batch.committed_at_ms ?? pin.batch_timestamp_ms),
      count(batch.records),
      count(counts.joined),
      count(counts.dead_letters),
      versions(pin.versions),
      committed(batch.committed),
    ].map((content, at) => cell(HEADS[at], content)),
  );
}

function versions(found) {
  const known = Object.entries(found ?? {});
  if (!known.length) return "–";
  return known.map(([name, version], at) => [at > 0 && ", ", said(name), ` ${plain(version)}`]);
}

function committed(value) {
  if (value === null || value === undefined) return "not known";
  return [shape(value ? "✓" : "…"), value ? "yes" : "not yet"];
}
