// How far a job is: the valve and its channels, the stream that waits, the tables that are copied.

import { h } from "./dom.js";
import { bytes, count, duration, isComplete, many, percent, plain, position, watermark } from "./format.js";
import { cell, facts, panel, said, shape, table, time } from "./parts.js";

/** The valve: open or closed, and what each channel says. */
export function valve(job) {
  const channels = (job.dimensions ?? []).flatMap((dimension) =>
    dimension.channels.map((channel) => ({ ...channel, dimension: dimension.name })),
  );
  const isOpen = job.phase === "JOIN";
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
    channels.length > 0 && table("Channels of the valve", ["Channel", "Status", "Says"], channels.map(row)),
    job.combined_watermark && h("p", { class: "quiet" }, `The output of the valve ${watermark(job.combined_watermark)}.`),
  );
}

function valveSays(isOpen, channels, job) {
  if (isOpen) {
    const held = Number.isFinite(job.held_at_open) ? ` ${many(job.held_at_open, "record")} had been held.` : "";
    return `Every snapshot is complete and committed; it stays open.${held}`;
  }
  const open = channels.filter((channel) => isComplete(channel.watermark)).length;
  if (!channels.length) return "No channel has been reported yet; without one it never opens.";
  return `${open} of ${many(channels.length, "channel")} complete. It opens once, when all of them are.`;
}

function row(channel) {
  const isMet = isComplete(channel.watermark);
  const tone = isMet ? "good" : "warn";
  const aligned = channel.aligned === false ? ", not aligned" : "";
  return h(
    "tr",
    { "data-key": channel.channel },
    cell("Channel", said(channel.channel)),
    cell("Status", plain(channel.status), aligned),
    cell("Says", h("span", { class: tone }, shape(isMet ? "✓" : "…")), watermark(channel.watermark)),
  );
}

/** The stream: what is held, how far behind the join is, and what has become of the records. */
export function probe(job) {
  const { probe: stream } = job;
  if (!stream) return panel("stream", "Stream", h("p", { class: "quiet" }, "Nothing has been reported yet."));
  const isOpen = job.phase === "JOIN";
  const partitions = Object.keys(stream.end_offsets ?? {});
  const size = Number.isFinite(stream.held_bytes) ? ` (about ${bytes(stream.held_bytes)})` : "";
  return panel(
    "stream",
    "Stream",
    facts([
      ["topic", said(stream.topic)],
      [isOpen ? "lag" : "held records", big(isOpen ? stream.lag_records : stream.held_records, isOpen ? "" : size)],
      ["joined records", count(stream.joined_records)],
      ["matched / unmatched", `${count(stream.matched)} / ${count(stream.unmatched)}`],
      ["dead letters", letters(stream)],
      ["newest batch", stream.batch ?? "none yet"],
      ["newest change that it saw", freshness(stream.freshness_ms)],
      ["ends at", stream.bounded_offsets ? offsets(stream.bounded_offsets) : null],
    ]),
    partitions.length > 0 && h(
      "details",
      {},
      h("summary", {}, `Offsets of ${many(partitions.length, "partition")}`),
      table("Offsets", ["Partition", "Start", "Next", "End", "Waiting"], partitions.map((name) => offsetRow(stream, name))),
    ),
  );
}

function big(value, more) {
  return [h("strong", { class: "big" }, count(value)), more];
}

function letters({ dead_letters: found }) {
  if (!found) return count(found ?? 0);
  return [h("strong", { class: "warn" }, count(found)), " · look at them: ", h("code", {}, "sluice dlq ls JOB")];
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
  const { snapshot, emitted } = dimension;
  const source = dimension.source ? [" · ", plain(dimension.source)] : null;
  return panel(
    `table-${dimension.name}`,
    ["Table ", said(dimension.name), source],
    bar(snapshot, dimension.name),
    h("p", { class: "quiet" }, pace(snapshot, watch.pace(dimension.name))),
    facts([
      ["complete because", dimension.evidence ? plain(dimension.evidence).replaceAll("_", " ") : null],
      ["lag of its topic", many(dimension.lag_records, "record")],
      ["behind the database", dimension.binlog_delay_ms === null ? null : duration(dimension.binlog_delay_ms)],
      ["streamed changes", count(dimension.streamed_records)],
      ["version", count(dimension.changelog_version)],
      ["version at opening", watch.job.versions_at_open?.[dimension.name] ?? null],
      ["indexed version", dimension.index_version === null ? null : count(dimension.index_version)],
      ["folded version", dimension.fold_version === null ? null : count(dimension.fold_version)],
      ["source has emitted", emitted ? `it ${watermark(emitted.watermark)}` : null],
      ["LOW", dimension.low ? position(dimension.low, dimension.source) : null],
      ["HIGH", dimension.high ? position(dimension.high, dimension.source) : null],
      ["now at", dimension.position ? position(dimension.position, dimension.source) : null],
      ["copy", dimension.generation > 1 ? `number ${dimension.generation}: it was copied again` : null],
    ]),
  );
}

function bar(snapshot, name) {
  const { rows_done: done, rows_total: total, rows_total_is_estimate: isGuess } = snapshot;
  const share = isGuess ? Math.min(percent(done, total) ?? 0, 99) : percent(done, total);
  const isKnown = share !== null && total !== null && !(isGuess && !total);
  const label = `Snapshot of ${plain(name)}`;
  return h(
    "div",
    { class: "bar" },
    h("progress", { "aria-label": label, max: "100", value: isKnown ? String(share) : null }),
    h("span", { class: "bar-text" }, isKnown ? `${share} %` : "starting", share === 100 && !isGuess ? ", complete" : ""),
  );
}

function pace(snapshot, { rowsPerSecond, leftMs }) {
  const about = snapshot.rows_total_is_estimate ? "about " : "";
  const rows = `${count(snapshot.rows_done)} of ${about}${count(snapshot.rows_total)} snapshot rows committed`;
  const chunks = snapshot.chunks_total ? `, ${count(snapshot.chunks_done)} of ${many(snapshot.chunks_total, "chunk")} read` : "";
  const speed = rowsPerSecond ? `, ${count(Math.round(rowsPerSecond))} rows a second` : "";
  const left = leftMs ? `, about ${duration(leftMs)} left` : "";
  return `${rows}${chunks}${speed}${left}`;
}
