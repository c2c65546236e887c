// What the picture of a job is made of: parts with a few words each, and edges with what passes.

import { bytes, count, duration, isComplete, many, openLetters, percent, plain } from "./format.js";
import { rate } from "./numbers.js";
import { joinsNothing } from "./progress.js";

const STREAMS = ["kafka", "datagen"];

/**
 * Parts and edges of a job as its runner has reported them; `rates` are its newest ones by series.
 * A part has `id`, `kind`, `title`, `lines`, `tone`, `to` (the panel behind it) and its place:
 * `lane` (the stream's is the last) and `step` (0 source to 3 sink).
 */
export function flowParts(job, rates, { tables: most, nowMs = Date.now() }) {
  const pulse = isLive(job) ? rates : {};
  const dimensions = job.dimensions?.length ? job.dimensions : planned(job);
  const isAlone = joinsNothing(job) || !dimensions.length;
  const lanes = isAlone ? [] : laneGroups(dimensions, most);
  const last = lanes.length;
  const passing = isHeld(job) ? { ...pulse, records_per_s: 0, rows_per_s: 0 } : pulse;
  const stream = streamParts(job, passing, last, isAlone);
  const tables = lanes.map((lane, number) => tableParts(lane, number, job, passing, nowMs));
  return {
    lanes: last + 1,
    parts: [...tables.flatMap((each) => each.parts), ...stream.parts],
    edges: [...tables.flatMap((each) => each.edges), ...stream.edges],
  };
}

/** Tables of the script, before the runner has reported them. */
function planned({ inputs, probe }) {
  const tables = probe ? [] : (inputs ?? []).filter(({ connector }) => !STREAMS.includes(connector));
  return tables.map(({ table: name, connector: source }) => ({ name, source, snapshot: { rows_done: 0, rows_total: null }, channels: [] }));
}

/** Tables that are too many for the picture share a lane. */
function laneGroups(dimensions, most) {
  if (dimensions.length <= most) return dimensions.map((each) => [each]);
  return [...dimensions.slice(0, most - 1).map((each) => [each]), dimensions.slice(most - 1)];
}

function tableParts(tables, lane, job, pulse, nowMs) {
  const [first] = tables;
  const isOne = tables.length === 1;
  const channels = tables.flatMap((each) => each.channels ?? []);
  const complete = channels.filter((each) => isComplete(each.watermark)).length;
  const isWhole = channels.length > 0 && complete === channels.length;
  const isSized = tables.every((each) => each.snapshot.rows_total > 0);
  const share = Math.min(...tables.map((each) => percent(each.snapshot.rows_done, each.snapshot.rows_total) ?? 0));
  const version = isOne ? first.index_version ?? first.changelog_version : null;
  const isBuilt = tables.every((each) => Number.isFinite(each.index_version));
  const to = `table-${first.name}`;
  const part = (id, step, more) => ({ id: `${id}-${lane}`, lane, step, to, ...more });
  const fed = isWhole ? pulse.changes_per_s : pulse.copied_rows_per_s;
  return {
    parts: [
      part("table", 0, {
        kind: "table",
        title: isOne ? plain(first.name) : `${tables.length} tables`,
        lines: [isOne ? plain(first.source ?? "table") : tables.map((each) => plain(each.name)).join(", ")],
        tone: isBroken(job, "table", tables) || isTooOld(job, tables) ? "warn" : "rest",
      }),
      part("channels", 1, {
        kind: "changelog",
        title: isWhole ? "Copy complete" : isSized ? `Copy ${Math.min(share, 99)} %` : "Copy",
        lines: [channels.length ? `${complete} of ${many(channels.length, "partition")}` : "no partition yet"],
        tone: isBroken(job, "changelog", tables) ? "warn" : !isLive(job) ? "rest" : isWhole ? "good" : "busy",
      }),
      part("index", 2, {
        kind: "index",
        title: "Lookup index",
        lines: [Number.isFinite(version) ? `version ${count(version)}` : isBuilt ? "built" : "not built yet"],
        tone: isBuilt && isLive(job) ? "good" : "rest",
      }),
    ],
    edges: [
      edge(`table-${lane}`, `channels-${lane}`, fed, isWhole ? "changes" : "rows"),
      edge(`channels-${lane}`, `index-${lane}`, isWhole ? pulse.changes_per_s : 0, "changes", isOne ? age(job, first, nowMs) : null),
      edge(`channels-${lane}`, "valve", 0, isWhole ? "complete" : "copies"),
      edge(`index-${lane}`, "batches", pulse.records_per_s, ""),
    ],
  };
}

function streamParts(job, pulse, lane, isAlone) {
  const { probe } = job;
  const isOpen = job.phase === "JOIN";
  const held = probe?.held_records;
  const size = Number.isFinite(probe?.held_bytes) && held > 0 ? bytes(probe.held_bytes) : null;
  const stages = Object.values(probe?.batch_stages_ms ?? {});
  const took = stages.length ? duration(stages.reduce((sum, ms) => sum + ms, 0)) : null;
  const broken = brokenPlaces(job);
  const isRunning = isLive(job);
  const letters = openLetters(probe);
  const isHolding = job.holding?.state === "HOLDING";
  const hasWindows = Number.isFinite(job.event_time?.window_watermark_ms) || job.event_time?.window_rows > 0;
  const name = hasWindows ? (isAlone ? "Windows" : "Join, windows") : isAlone ? "Batches" : "Join";
  const part = (id, step, more) => ({ id, lane, step, to: "stream", ...more });
  const parts = [
    part("source", 0, { kind: "stream", title: plain(probe?.generated ?? probe?.topic ?? plannedStream(job)), lines: [lag(job, isAlone), filesRead(probe?.history)].filter(Boolean), tone: broken.stream ?? "rest" }),
    !isAlone && part("valve", 1, {
      kind: "wait for the tables",
      title: !isRunning ? "Not running" : isHolding ? "Holding (stale)" : isOpen ? (broken.stream ? "Open" : "Passing") : "Waiting",
      lines: [!isRunning ? "no record passes" : broken.stream ? "no record comes" : isHolding ? "a table is too old" : isOpen ? "records pass" : Number.isFinite(held) ? `${count(held)} wait` : "records wait", isRunning && !isOpen && size].filter(Boolean),
      tone: !isRunning || broken.stream ? "rest" : isHolding ? "warn" : isOpen ? "good" : "busy",
      to: "valve",
    }),
    part("batches", 2, {
      kind: isAlone ? "processing" : "join",
      title: name,
      badge: letters ? many(letters, "dead letter") : null,
      lines: Number.isFinite(probe?.batch) ? [`batch ${count(probe.batch)}`, took].filter(Boolean) : ["no batch yet"],
      tone: broken.batches ?? (Number.isFinite(probe?.batch) && isRunning ? "good" : "rest"),
      to: "batches",
    }),
    ...sinkParts(job, lane, broken.output),
  ].filter(Boolean);
  const read = edge("source", isAlone ? "batches" : "valve", isOpen ? pulse.records_per_s : 0, "records");
  if (!isAlone && !isOpen) read.label = "waits";
  const passed = !isAlone && edge("valve", "batches", isOpen ? pulse.records_per_s : 0, "records", isOpen ? null : "waits");
  const written = parts.filter((each) => each.step === 3).map((each, at) => edge("batches", each.id, pulse.rows_per_s, at ? "" : "rows"));
  return { parts, edges: [read, passed, ...written].filter(Boolean) };
}

function sinkParts(job, lane, tone) {
  const sinks = job.sinks?.length ? job.sinks : [{ insert: 1, table: "output", connector: "" }];
  const [first] = sinks;
  const more = sinks.length > 1 ? ` and ${sinks.length - 1} more` : "";
  return [{
    id: "sink",
    kind: "output",
    lane,
    step: 3,
    to: "output",
    title: `${plain(first.table)}${more}`,
    lines: [plain(first.connector)].filter(Boolean),
    tone: tone ?? "rest",
  }];
}

/** Whether a fault at `place` concerns one of `tables`; a fault of all tables names none. */
function isBroken(job, place, tables) {
  const named = tables.flatMap(({ name }) => [`source ${name}`, `build ${name}`]);
  return (job.stalls ?? []).some((stall) => stall.place === place && (named.includes(stall.part) || !stall.part.includes(" ")));
}

/** Whether records wait because one of `tables` is too old. */
function isTooOld({ holding }, tables) {
  return holding?.state === "HOLDING" && holding.tables.some(({ table }) => tables.some(({ name }) => name === table));
}

/** The tone of each place of a fault; a job that failed elsewhere has failed in its batches. */
export function brokenPlaces(job) {
  const isFailed = job.state === "FAILED";
  const faults = isFailed && !job.stalls?.length ? [job.error] : job.stalls ?? [];
  const places = faults.map((fault) => fault?.place ?? (isFailed ? "batches" : null)).filter(Boolean);
  return Object.fromEntries(places.map((place) => [place, isFailed ? "bad" : "warn"]));
}

/** Whether no record passes: the stream cannot be read, or a table is too old. */
export function isHeld(job) {
  return Boolean(brokenPlaces(job).stream) || job.holding?.state === "HOLDING";
}

/** Whether the numbers of the moment are those of a runner that reports. */
function isLive({ report, state }) {
  return report?.is_live !== false && !["CREATED", "STARTING"].includes(state);
}

function plannedStream({ inputs }) {
  const stream = (inputs ?? []).find(({ connector }) => STREAMS.includes(connector));
  return stream?.place ?? stream?.table ?? "stream";
}

function lag(job, isAlone) {
  const { probe, phase } = job;
  if (!probe) return "no report yet";
  const isOpen = phase === "JOIN";
  const value = isOpen ? probe.lag_records : probe.held_records;
  if (!Number.isFinite(value)) return isLive(job) && !brokenPlaces(job).stream ? "not counted yet" : "not read now";
  if (!isOpen) return `${count(value)} wait`;
  return `${count(value)} to ${isAlone ? "process" : "join"}`;
}

/** How much of the files before the topic is read, and how many rows it follows. */
function filesRead(history) {
  if (!history) return null;
  if (history.rows_read >= history.rows) return `behind ${many(history.rows, "row")} of files`;
  const left = Number.isFinite(history.seconds_left) ? `, ${duration(history.seconds_left * 1000)} left` : "";
  return `files ${percent(history.rows_read, history.rows)} %${left}`;
}

/** How long ago the table was as it is now; the age of its newest change says nothing about that. */
function age(job, { freshness }, nowMs) {
  const at = freshness?.as_of_ms;
  return Number.isFinite(at) && isLive(job) ? `${duration(Math.max(0, nowMs - at))} old` : null;
}

function edge(from, to, perSecond, noun, label = null) {
  const isMoving = perSecond > 0;
  const passes = isMoving && noun ? `${rate(perSecond)} ${noun}/s` : null;
  const still = ["complete", "copies"].includes(noun) ? noun : null;
  return { from, to, isMoving, label: [passes ?? still, label].filter(Boolean).join(", ") };
}
