// The view of all jobs.

import { sparkline } from "./chart.js";
import { h } from "./dom.js";
import { count, many, plain } from "./format.js";
import { rate } from "./numbers.js";
import { STATES, refusal, said, state, time } from "./parts.js";

const HEADS = ["Job", "State", "Why", "Now", "Output", "Last half hour", "Changed"];
const ENDING = { STOPPED: "is stopping", PAUSED: "is pausing", REMOVED: "is being removed" };

/** The list as nodes; `list` is a `JobList` and `filter` what it is asked for. */
export function jobsView(list) {
  return [
    h(
      "div",
      { class: "bar", "data-key": "title" },
      h("h1", { tabindex: "-1" }, "Jobs"),
      h("a", { class: "button", href: "#/new" }, "New job"),
    ),
    controls(list.filter),
    list.error && refusal("The list cannot be shown", list.error),
    list.jobs && !list.error && (list.jobs.length ? filled(list) : empty(list.filter)),
  ];
}

function controls(filter) {
  const choices = ["", ...STATES].map((value) =>
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
      h("caption", { class: "unseen" }, "Jobs, the newest first"),
      h("thead", {}, h("tr", {}, HEADS.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, list.jobs.map(row)),
    ),
    list.hasMore && h("button", { type: "button", "data-action": "more" }, "Show older jobs"),
  );
}

function summary({ jobs, hasMore }) {
  const counts = STATES.map((name) => [name, jobs.filter((job) => job.state === name).length]);
  const parts = counts.filter(([, number]) => number).map(([name, number]) => `${number} ${name}`);
  return `${hasMore ? "The newest " : ""}${many(jobs.length, "job")}: ${parts.join(", ")}`;
}

function row(job) {
  return h(
    "tr",
    { "data-key": job.id },
    h(
      "th",
      { scope: "row", "data-head": "Job" },
      h("a", { href: `#/jobs/${encodeURIComponent(job.id)}` }, said(job.name)),
      job.shared_table && h("span", { class: "quiet" }, " shared table"),
      h("code", { class: "id" }, plain(job.id)),
    ),
    h("td", { "data-head": "State" }, state(job.state), phase(job), wanted(job)),
    h("td", { "data-head": "Why" }, said(job.reason), hint(job)),
    h("td", { "data-head": "Now" }, now(job)),
    h("td", { "data-head": "Output" }, output(job.sinks)),
    h("td", { "data-head": "Last half hour" }, recent(job.recent)),
    h("td", { "data-head": "Changed" }, time(job.updated_at_ms)),
  );
}

/** What passes and what waits, as far as the job's runner has told it. */
function now(job) {
  const isOpen = job.phase === "JOIN";
  const waiting = isOpen ? job.lag_records : job.held_records;
  const parts = [
    isOpen && job.records_per_s !== null && `${rate(job.records_per_s)} records/s`,
    waiting !== null && `${count(waiting)} ${isOpen ? "to join" : "held"}`,
  ].filter(Boolean);
  return parts.length ? parts.map((text) => h("div", {}, text)) : h("span", { class: "quiet" }, "–");
}

function output(sinks) {
  const [first, ...more] = sinks ?? [];
  if (!first) return null;
  const others = more.length > 0 && h("span", { class: "quiet" }, ` and ${more.length} more`);
  return [h("div", {}, said(first.table), others), h("span", { class: "quiet" }, plain(first.connector))];
}

function recent(values) {
  return values && sparkline(values, "Records a second, in the last half hour");
}

function phase(job) {
  return job.phase && h("span", { class: "quiet phase" }, ` phase ${plain(job.phase)}`);
}

/** What is asked of the job, while it does not do it yet. */
export function wanted(job) {
  const isDone = [job.desired_state, "FAILED", "FINISHED"].includes(job.state);
  const text = isDone && job.desired_state !== "REMOVED" ? null : ENDING[job.desired_state];
  return text && h("span", { class: "quiet" }, ` ${text}`);
}

function hint(job) {
  return job.error?.hint && h("p", { class: "hint" }, said(job.error.hint));
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
