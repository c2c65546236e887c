// The view of all jobs.

import { sparkline } from "./chart.js";
import { h } from "./dom.js";
import { count, duration, lasting, many, openLetters, plain } from "./format.js";
import { jobsGraph } from "./jobs_graph.js";
import { rate } from "./numbers.js";
import { TONES, refusal, said, state, wordOf } from "./parts.js";

const HEADS = ["Job", "State", "Since", "Rate", "Waiting", "As of", "Dead letters", "Output", "Reason"];

/** The list as nodes; `list` is a `JobList` and `filter` what it is asked for. */
export function jobsView(list) {
  return [
    h(
      "div",
      { class: "bar", "data-key": "title" },
      h("h1", { tabindex: "-1" }, "Jobs"),
      h("a", { class: "button", href: "#/new" }, "New job"),
    ),
    controls(list),
    list.error && refusal("The list cannot be shown", list.error),
    list.jobs && !list.error && (chosen(list).length ? filled(list) : empty(list.filter)),
  ];
}

/** The jobs of the chosen word, trouble first. */
export function chosen({ jobs, filter }) {
  const fits = jobs.filter((job) => !filter.state || wordOf(job) === filter.state);
  return fits.map((job, at) => [rank(job), at, job]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, , job]) => job);
}

/** Failed jobs, those that wait, those with dead letters, then the others. */
function rank(job) {
  const tone = job.status?.tone ?? "busy";
  const at = TONES.indexOf(tone);
  return tone === "good" && openLetters(job) ? TONES.indexOf("busy") - 0.5 : at;
}

function controls({ filter, jobs }) {
  const words = [...new Set((jobs ?? []).map(wordOf))].sort();
  if (filter.state && !words.includes(filter.state)) words.push(filter.state);
  const choices = ["", ...words].map((value) =>
    h("option", { value, selected: value === filter.state }, value || "all states"),
  );
  return h(
    "form",
    { class: "filter", role: "search", "data-key": "filter", "data-form": "filter" },
    h("label", { for: "search" }, "Name or id"),
    h("input", { id: "search", name: "search", type: "search", maxlength: "100", autocomplete: "off" }),
    h("label", { for: "state" }, "State"),
    h("select", { id: "state", name: "state" }, choices),
  );
}

function filled(list) {
  return h(
    "div",
    { "data-key": "jobs" },
    h("p", { class: "quiet" }, summary(list)),
    h(
      "table",
      { class: "jobs" },
      h("caption", { class: "unseen" }, "Jobs, those in trouble first"),
      h("thead", {}, h("tr", {}, HEADS.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, chosen(list).map((job) => row(job, list.nowMs))),
    ),
    list.hasMore && h("button", { type: "button", "data-action": "more" }, "Show older jobs"),
    jobsGraph(list.jobs),
  );
}

function summary(list) {
  const { jobs, hasMore } = list;
  const counts = new Map();
  for (const job of chosen({ jobs, filter: {} })) counts.set(wordOf(job), (counts.get(wordOf(job)) ?? 0) + 1);
  const parts = [...counts].map(([word, number]) => `${count(number)} ${word}`);
  return `${hasMore ? "The newest " : ""}${many(jobs.length, "job")}: ${parts.join(", ")}`;
}

function row(job, nowMs) {
  const { status } = job;
  const reason = status?.sentence ?? job.reason;
  const full = status?.remedy ? `${reason} ${status.remedy}` : reason;
  const cells = [
    state(job),
    status ? lasting(status.since_ms, nowMs) : null,
    passes(job),
    waits(job),
    job.as_of_ms === null ? null : duration(nowMs - job.as_of_ms),
    openLetters(job) > 0 ? h("strong", { class: "warn" }, count(openLetters(job))) : openLetters(job) === 0 ? "0" : null,
    output(job.sinks),
    h("span", { class: "reason", title: plain(full) }, said(reason)),
  ];
  return h(
    "tr",
    { "data-key": job.id },
    h(
      "th",
      { scope: "row", "data-head": "Job" },
      h("a", { href: `#/jobs/${encodeURIComponent(job.id)}`, title: plain(job.id) }, said(job.name)),
      job.shared_table && h("span", { class: "quiet" }, " shared table"),
    ),
    cells.map((content, at) => h("td", { "data-head": HEADS[at + 1] }, content ?? h("span", { class: "quiet" }, "–"))),
  );
}

/** Records a second now, and in the last half hour. */
function passes({ records_per_s: now, recent }) {
  const isLine = recent?.filter((value) => value !== null).length > 1;
  if (!isLine && !Number.isFinite(now)) return null;
  return [Number.isFinite(now) ? `${rate(now)}/s` : "–", isLine && sparkline(recent, "Records a second, in the last half hour")];
}

function waits({ lag_records: lag, held_records: held }) {
  const value = lag ?? held;
  return value === null || value === undefined ? null : count(value);
}

function output(sinks) {
  const [first, ...more] = sinks ?? [];
  if (!first) return null;
  const others = more.length > 0 && h("span", { class: "quiet" }, ` and ${more.length} more`);
  return [said(first.table), " ", h("span", { class: "quiet" }, plain(first.connector)), others];
}

function empty(filter) {
  if (filter.search || filter.state) {
    return h("p", { class: "empty", "data-key": "none" }, "No job is like that. Change the filter above.");
  }
  return h(
    "div",
    { class: "empty", "data-key": "none" },
    h("p", { class: "sentence" }, "No jobs yet."),
    h(
      "p",
      {},
      "A job is a script: it says which stream is joined with which tables, and where the rows go. ",
      "Sluice copies the tables first; records that come meanwhile wait, and none is joined too early.",
    ),
    h("p", {}, h("a", { class: "button", href: "#/new" }, "Write one here, or start from an example")),
    h("p", {}, "Or submit a file: ", h("code", {}, "sluice submit job.sql")),
    h("p", { class: "quiet" }, "It then appears here by itself."),
  );
}
