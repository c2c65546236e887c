// How far a job is: the valve and its channels, the stream that waits, the tables that are copied.

import { h } from "./dom.js";
import { standing } from "./event_time.js";
import { bytes, count, duration, isComplete, many, percent, plain, position, watermark } from "./format.js";
import { cell, facts, panel, said, shape, table, time } from "./parts.js";

const CHANNEL = ["Channel", "Status", "Says"];
const OFFSETS = ["Partition", "Start", "Next", "End", "Waiting"];

/** The valve: open or closed, and what each channel says. */
export function valve(job) {
  const channels = (job.dimensions ?? []).flatMap((dimension) =>
    dimension.channels.map((channel) => ({ ...channel, dimension: dimension.name })),
  );
  const isOpen = job.phase === "JOIN";
  const combined = job.combined_watermark;
  return panel(
    "valve",
    "Valve",
    h(
      "p",
      { class: `valve ${isOpen ? "open" : "closed"}` },
      shape(isOpen ? "≋" : "▥"),
      h("strong", {}, isOpen ? "OPEN" : "CLOSED"),
      isOpen && job.opened_at_ms ? [" since ", time(job.opened_at_ms)] : null,
    ),
    h("p", { class: "quiet" }, valveSays(isOpen, channels, job)),
    channels.length > 0 && table("Channels of the valve", CHANNEL, channels.map(row)),
    combined && !joinsNothing(job) && h("p", { class: "quiet" }, `The output of the valve ${watermark(combined)}.`),
  );
}

/** Whether the job has no table to wait for: only windows over its stream. */
export function joinsNothing(job) {
  const isKnown = job.phase === "JOIN" || Boolean(job.probe); // what the runner has told
  return isKnown && !job.dimensions?.length && !Object.keys(job.versions_at_open ?? {}).length;
}

function valveSays(isOpen, channels, job) {
  if (joinsNothing(job)) return "The job joins no table, so nothing had to be copied first.";
  if (isOpen) {
    const held = job.held_at_open;
    const told = Number.isFinite(held) ? ` ${held ? `At most ${many(held, "record")}` : "No record"} had been held.` : "";
    return `Every snapshot is complete and committed; it stays open.${told}`;
  }
  const open = channels.filter((channel) => isComplete(channel.watermark)).length;
  if (!channels.length) return "No channel has been reported yet; without one it never opens.";
  return `${open} of ${many(channels.length, "channel")} complete. It opens once, when all of them are.`;
}

function row(channel) {
  const isMet = isComplete(channel.watermark);
  const tone = isMet ? "good" : "warn";
  return h(
    "tr",
    { "data-key": channel.channel },
    cell("Channel", said(channel.channel)),
    cell("Status", standing(channel.status, channel.aligned)),
    cell("Says", h("span", { class: tone }, shape(isMet ? "✓" : "…")), watermark(channel.watermark)),
  );
}

/** The stream: what is held, how far behind the join is, and what has become of the records. */
export function probe(job) {
  const { probe: stream } = job;
  if (!stream) return panel("stream", "Stream", h("p", { class: "quiet" }, "No report yet."));
  const isOpen = job.phase === "JOIN";
  const partitions = Object.keys(stream.end_offsets ?? {});
  const size = Number.isFinite(stream.held_bytes) ? ` (about ${bytes(stream.held_bytes)})` : "";
  return panel(
    "stream",
    "Stream",
    facts([
      ["stream", stream.generated && said(stream.generated)],
      ["topic", said(stream.topic)],
      isOpen
        ? ["lag", atMost(stream, stream.lag_records, asOf(stream))]
        : ["held records", atMost(stream, stream.held_records, [size, asOf(stream)])],
      ...(stream.open_transactions ?? []).map((found) => ["waits for", said(found.text)]),
      ["newest batch", stream.batch ?? "none yet"],
      ["age of the newest change", freshness(stream.freshness_ms)],
      ["ends at", stream.bounded_offsets ? offsets(stream.bounded_offsets) : null],
    ]),
    partitions.length > 0 && h(
      "details",
      {},
      h("summary", {}, `Offsets of ${many(partitions.length, "partition")}`),
      table("Offsets", OFFSETS, partitions.map((name) => offsetRow(stream, name))),
    ),
  );
}

/** Offsets are counted, and not each of them need have a record; null where unknown. */
function atMost(stream, value, more) {
  if (!Number.isFinite(value)) return null;
  return [value > 0 && stream.held_is_upper_bound !== false && "at most ", ...big(value, more)];
}

function big(value, more) {
  return [h("strong", { class: "big" }, count(value)), more];
}

/** When the ends of the topic were read. */
function asOf({ ends_at_ms: at }) {
  return Number.isFinite(at) ? [h("span", { class: "quiet" }, " as of ", time(at))] : null;
}

/** How long ago the table was as it is now, as its source proves it. */
function asOfTable(freshness) {
  if (!Number.isFinite(freshness?.age_ms)) return freshness?.waits_for ? said(freshness.waits_for) : null;
  return `${(freshness.age_ms / 1000).toFixed(1)} s ago`;
}

function verifiedTable(verified) {
  if (!Number.isFinite(verified?.at_ms)) return null;
  const found = verified.differences ? many(verified.differences, "difference") : "equal";
  return `${found}, ${many(verified.rows, "row")}, ${duration(Date.now() - verified.at_ms)} ago`;
}

function freshness(ages) {
  const found = Object.entries(ages ?? {});
  if (!found.length) return null;
  const text = (age) => (age === null ? "no change yet" : `${duration(age)} old`);
  return found.map(([name, age], at) => [at > 0 && ", ", said(name), `: ${text(age)}`]);
}

function offsets(found) {
  return Object.entries(found).map(([name, offset]) => `${plain(name)}: ${count(offset)}`).join(", ");
}

function offsetRow(stream, name) {
  const start = stream.start_offsets?.[name];
  const next = stream.next_offsets?.[name] ?? start;
  const end = stream.end_offsets[name];
  return [plain(name), count(start), count(next), count(end), count(Math.max(0, end - next))];
}

/** Each table: its copy, then how closely it is followed. */
export function tables(watch) {
  const found = watch.job.dimensions ?? [];
  return found.map((dimension) => dimensionPanel(dimension, watch));
}

function dimensionPanel(dimension, watch) {
  const { snapshot, emitted, binlog_delay_ms: delay, index_version: indexed, fold_version: folded } = dimension;
  const source = dimension.source ? [" · ", plain(dimension.source)] : null;
  return panel(
    `table-${dimension.name}`,
    ["Table ", said(dimension.name), source],
    bar(snapshot, dimension.name),
    h("p", {}, h("a", { href: `#/jobs/${watch.job.id}/tables/${encodeURIComponent(dimension.name)}` }, "Look at its rows")),
    h("p", { class: "quiet" }, pace(snapshot, watch.pace(dimension.name))),
    facts([
      ["complete because", dimension.evidence ? plain(dimension.evidence).replaceAll("_", " ") : null],
      ["lag of its topic", Number.isFinite(dimension.lag_records) ? many(dimension.lag_records, "record") : null],
      ["behind the database", Number.isFinite(delay) ? duration(delay) : null],
      ["as of", asOfTable(dimension.freshness)],
      ["verified", verifiedTable(dimension.verified) ?? "never"],
      ["streamed changes", count(dimension.streamed_records)],
      ["version", count(dimension.changelog_version)],
      ["version at opening", watch.job.versions_at_open?.[dimension.name] ?? null],
      ["indexed version", Number.isFinite(indexed) ? count(indexed) : null],
      ["folded version", Number.isFinite(folded) ? count(folded) : null],
      ["source has emitted", emitted ? `it ${watermark(emitted.watermark)}` : null],
      ["LOW", dimension.low ? position(dimension.low, dimension.source) : null],
      ["HIGH", dimension.high ? position(dimension.high, dimension.source) : null],
      ["now at", dimension.position ? position(dimension.position, dimension.source) : null],
      ["waits for", dimension.waits_for ? plain(dimension.waits_for) : null],
      ["copy", dimension.generation > 1 ? `number ${dimension.generation}: it was copied again` : null],
    ]),
    h(
      "p",
      { class: "quiet" },
      "Compare it with its source: ",
      h("code", {}, `sluice verify ${plain(watch.job.id)} --table ${plain(dimension.name)}`),
      ". Wait until the output has all changes made by now: ",
      h("code", {}, `sluice wait ${plain(watch.job.id)} --table ${plain(dimension.name)} --position now`),
      ".",
    ),
  );
}

function bar(snapshot, name) {
  const { rows_done: done, rows_total: total, rows_total_is_estimate: isGuess } = snapshot;
  const share = isGuess ? Math.min(percent(done, total) ?? 0, 99) : percent(done, total);
  const isKnown = share !== null && total !== null && !(isGuess && !total);
  const label = `Snapshot of ${plain(name)}`;
  const end = share === 100 && !isGuess ? ", complete" : "";
  const text = isKnown ? `${share} %${end}` : done > 0 ? many(done, "row") : "starting";
  return h(
    "div",
    { class: "bar" },
    h("progress", { "aria-label": label, max: "100", value: isKnown ? String(share) : null }),
    h("span", { class: "bar-text" }, text),
  );
}

function pace(snapshot, { rowsPerSecond, leftMs }) {
  const { rows_done: done, rows_total: total, chunks_done: read, chunks_total: parts } = snapshot;
  const about = snapshot.rows_total_is_estimate ? "about " : "";
  const of = total === null ? "" : ` of ${about}${count(total)}`;
  const rows = `${count(done)}${of} snapshot rows committed`;
  const chunks = parts ? `, ${count(read)} of ${many(parts, "chunk")} read` : "";
  const speed = rowsPerSecond ? `, ${count(Math.round(rowsPerSecond))} rows a second` : "";
  const left = leftMs ? `, about ${duration(leftMs)} left` : "";
  return `${rows}${chunks}${speed}${left}`;
}
