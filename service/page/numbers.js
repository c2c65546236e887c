// The charts of one job: an hour or a day of what the control plane has seen of it.

import { bands, chart, legendOf } from "./chart.js";
import { h } from "./dom.js";
import { clock, count, duration } from "./format.js";
import { panel, refusal } from "./parts.js";
import { joinsNothing } from "./progress.js";

export const RANGES = {
  five: { label: "5 min", lengthMs: 300_000, step: 10, refreshMs: 10_000 },
  quarter: { label: "15 min", lengthMs: 900_000, step: 10, refreshMs: 10_000 },
  hour: { label: "1 h", lengthMs: 3_600_000, step: 10, refreshMs: 10_000 },
  day: { label: "24 h", lengthMs: 86_400_000, step: 300, refreshMs: 60_000 },
};
const PHONE = window.matchMedia("(max-width: 50rem)");
const FIRST = 2; // charts of a phone that are not folded
const aSecond = (value) => `${rate(value)}/s`;
const CHARTS = [
  {
    key: "rates",
    title: "Throughput",
    write: aSecond,
    lines: [
      ["records_per_s", "records read"],
      ["rows_per_s", "rows written"],
      ["copied_rows_per_s", "rows copied"],
      ["changes_per_s", "table changes"],
    ],
  },
  {
    key: "waiting",
    title: "Records that wait",
    write: rate,
    lines: [
      ["lag_records", "not joined yet", "not processed yet"],
      ["held_records", "held until the tables are copied", "before the first batch"],
      ["table_lag_records", "table changes not committed"],
    ],
  },
  {
    key: "batch",
    title: "Time of a batch by stage",
    write: duration,
    isStacked: true,
    lines: [
      ["index_ms", "index"],
      ["join_ms", "read and join"],
      ["commit_ms", "commit"],
    ],
  },
  {
    key: "latency",
    title: "Latency and age",
    write: duration,
    lines: [
      ["latency_ms", "record to row, at most"],
      ["as_of_age_ms", "as of (oldest table)"],
      ["source_delay_ms", "table change to commit"],
      ["watermark_age_ms", "event time behind the clock"],
    ],
  },
];

/** Numbers a second, with as many digits as one reads. */
export function rate(value) {
  if (!Number.isFinite(value)) return "–";
  return value >= 10 || value === 0 ? count(Math.round(value)) : count(Number(value.toPrecision(2)));
}

/** The panel with the charts of what is known. */
export function numbers(watch) {
  const { numbers: known, numbersError, range, cursorMs } = watch;
  if (!known && !numbersError) return null;
  const past = watch.history.length ? watch.history : known?.transitions ?? [];
  const states = known ? bands(past, known.span) : [];
  const isAlone = joinsNothing(watch.job);
  const drawn = known ? CHARTS.map((one) => drawing(one, known, { states, cursorMs, isAlone })).filter(Boolean) : [];
  const first = PHONE.matches ? FIRST : drawn.length;
  return panel(
    "numbers",
    "Over time",
    h(
      "div",
      { class: "bar" },
      h("div", { class: "buttons", role: "group", "aria-label": "Time that is shown" }, rangeButtons(range)),
      drawn.length > 0 && h("span", { class: "quiet", "data-key": "at" }, `Values of ${clock(cursorMs ?? known.at_ms.at(-1))}`),
    ),
    numbersError && refusal("The numbers cannot be shown", numbersError),
    drawn.length > 0 && legendOf(states),
    drawn.length > 0 && h("div", { class: "charts" }, drawn.slice(0, first)),
    drawn.length > first && h(
      "details",
      { "data-key": "more" },
      h("summary", {}, "More charts"),
      h("div", { class: "charts" }, drawn.slice(first)),
    ),
    known && !drawn.length && h("p", { class: "quiet" }, "Nothing has been seen in this time; a point comes every ten seconds."),
  );
}

function rangeButtons(range) {
  return Object.entries(RANGES).map(([name, { label }]) =>
    h(
      "button",
      { type: "button", "data-action": "range", "data-range": name, "aria-pressed": String(range === name) },
      label,
    ),
  );
}

/**
 * `past` with the newest report as its last point, so that figures, picture and charts show the same
 * numbers: the control plane's own points are up to twenty seconds old.
 */
export function withLive(past, job, atMs) {
  const last = past?.at_ms.at(-1) ?? -Infinity;
  if (!past || !job?.report?.is_live || !(atMs > last)) return past;
  const live = latest(job, atMs);
  const isFresh = atMs - last <= freshMs(past);
  const value = (name, values) => live[name] ?? (isFresh ? values.at(-1) : null);
  return {
    ...past,
    at_ms: [...past.at_ms, atMs],
    series: Object.fromEntries(Object.entries(past.series).map(([name, values]) => [name, [...values, value(name, values)]])),
    span: { ...past.span, toMs: Math.max(past.span.toMs, atMs) },
  };
}

/** The newest numbers by series, as long as they say something of now. */
export function newest(numbers) {
  const last = numbers?.at_ms?.length - 1;
  if (!(last >= 0) || numbers.span.toMs - numbers.at_ms[last] > freshMs(numbers)) return {};
  return Object.fromEntries(Object.entries(numbers.series).map(([name, values]) => [name, values[last]]));
}

function freshMs({ step_s: step }) {
  return 60_000 * Math.ceil(step / 60);
}

function latest({ probe, dimensions }, atMs) {
  const stages = Object.entries(probe?.batch_stages_ms ?? {}).map(([stage, ms]) => [`${stage}_ms`, ms]);
  const asOf = (dimensions ?? []).map(({ freshness }) => freshness?.as_of_ms);
  const isKnown = asOf.length > 0 && asOf.every(Number.isFinite);
  const { records_per_s, rows_per_s, lag_records, held_records, latency_ms } = probe ?? {};
  const values = { records_per_s, rows_per_s, lag_records, held_records, latency_ms, ...Object.fromEntries(stages) };
  const lags = (dimensions ?? []).map((table) => table.lag_records).filter(Number.isFinite);
  if (lags.length) values.table_lag_records = lags.reduce((one, other) => one + other, 0);
  if (dimensions?.length && dimensions.every(({ evidence }) => evidence)) values.copied_rows_per_s = 0;
  if (isKnown) values.as_of_age_ms = Math.max(0, atMs - Math.min(...asOf));
  return Object.fromEntries(Object.entries(values).filter(([, value]) => Number.isFinite(value)));
}

function drawing({ key, title, write, lines, isStacked }, { at_ms: atMs, step_s: step, series, span }, { states, cursorMs, isAlone }) {
  return chart({
    key,
    title,
    write,
    atMs,
    span,
    cursorMs,
    stepMs: 1000 * step,
    states,
    isStacked,
    lines: lines
      // An older control plane lacks some.
      .map(([name, label, alone]) => ({ name, label: isAlone && alone ? alone : label, values: series[name] ?? [] }))
      .filter(({ name, values }) => isOfUse(name, values)),
  });
}

/** A line that was never more than nothing says little, but for what is read and written. */
function isOfUse(name, values) {
  return ["records_per_s", "rows_per_s", "lag_records"].includes(name) || values.some((value) => value > 0);
}
