// The key figures of a job, each with its last hour as a line.

import { sparkline } from "./chart.js";
import { h } from "./dom.js";
import { count, duration, openLetters } from "./format.js";
import { isHeld } from "./flow_parts.js";
import { newest, rate } from "./numbers.js";

/** The figures as nodes; `watch` is a `JobWatch`. */
export function figures(watch) {
  const { job, numbers } = watch;
  if (!job.probe && !job.dimensions?.length) return null;
  return h("dl", { class: "figures", "data-key": "figures", "aria-label": "Key figures" }, known(job, numbers, watch.nowMs).map(figure));
}

/** Label, text, series and tone of each figure. */
export function known(job, numbers, nowMs) {
  const { probe } = job;
  const series = numbers?.series ?? {};
  const pulse = numbers ? newest(numbers) : {};
  const waiting = job.phase === "JOIN" ? probe?.lag_records : probe?.held_records;
  const letters = openLetters(probe);
  const stages = Object.values(probe?.batch_stages_ms ?? {});
  const isPassing = job.report?.is_live !== false && !isHeld(job); // else a rate is of the past
  return [
    ["Rate in", isPassing ? perSecond(probe?.records_per_s ?? pulse.records_per_s) : "–", series.records_per_s],
    ["Rate out", isPassing ? perSecond(probe?.rows_per_s ?? pulse.rows_per_s) : "–", series.rows_per_s],
    ["Waiting", count(waiting), job.phase === "JOIN" ? series.lag_records : series.held_records ?? series.lag_records],
    job.dimensions?.length > 0 && ["As of", asOf(job, nowMs), series.as_of_age_ms],
    ["Dead letters", count(letters), series.dead_letters_per_s, letters > 0 ? "warn" : null],
    ["Batch time", duration(stages.length ? stages.reduce((one, other) => one + other, 0) : probe?.batch_ms), sum(series.index_ms, series.join_ms, series.commit_ms)],
  ].filter(Boolean);
}

function perSecond(value) {
  return Number.isFinite(value) ? `${rate(value)}/s` : "–";
}

/** How long ago the oldest table was as it is now; a dash unless each has said so. */
function asOf({ dimensions }, nowMs) {
  const times = (dimensions ?? []).map(({ freshness }) => freshness?.as_of_ms);
  if (!times.length || !times.every(Number.isFinite)) return "–";
  return `${duration(nowMs - Math.min(...times))} ago`;
}

function sum(...lists) {
  const there = lists.filter(Boolean);
  if (!there.length) return null;
  return there[0].map((_, at) => {
    const values = there.map((list) => list[at]).filter(Number.isFinite);
    return values.length ? values.reduce((one, other) => one + other, 0) : null;
  });
}

function figure([label, text, values, tone]) {
  const isDrawn = values?.some((value) => value > 0) && values.filter((value) => value !== null).length > 1;
  return h(
    "div",
    { "data-key": label, "data-figure": label },
    h("dt", {}, label),
    h("dd", {}, h("strong", { class: tone }, text), isDrawn && sparkline(values, `${label} in the time of the charts`)),
  );
}
