// The view of one job: what it waits for first, then the way there, then the numbers.

import { h } from "./dom.js";
import { clock, duration, plain } from "./format.js";
import { batches } from "./batches.js";
import { eventTime } from "./event_time.js";
import { flow } from "./flow.js";
import { ordersView } from "./orders.js";
import { numbers } from "./numbers.js";
import { joinsNothing, probe, tables, valve } from "./progress.js";
import { cell, fault, facts, panel, refusal, said, shape, state, table, time } from "./parts.js";
import { wanted } from "./jobs.js";

const WAY = ["STARTING", "SNAPSHOT", "CATCHING_UP", "JOINING"];
const COPYING = ["SNAPSHOT", "CATCHING_UP"]; // of a job that joins a table
const MEANING = {
  STARTING: "the runner comes up",
  SNAPSHOT: "the tables are copied",
  CATCHING_UP: "changes up to HIGH are committed",
  JOINING: "the gate is open",
};
const UNMET = 5; // enough to see what is next
const PLACES = { done: "✓", now: "▶", ahead: "·" };
const MET = {
  true: ["✓", "met", "good"],
  false: ["✕", "not met", "warn"],
  null: ["?", "not known", "rest"],
};

/** The job as nodes; `watch` is a `JobWatch`. */
export function jobView(watch) {
  const { job } = watch;
  const back = h("p", { class: "back", "data-key": "back" }, h("a", { href: "#/" }, "← All jobs"));
  if (watch.isRemoved) return [back, gone()];
  if (!job && !watch.error) return [back, waiting()];
  if (!job) return [back, refusal("The job cannot be shown", watch.error)];
  return [
    back,
    title(watch),
    watch.error && refusal("The job is not followed any more", watch.error),
    why(watch),
    problems(watch),
    flow(watch),
    numbers(watch),
    way(watch),
    h("div", { class: "columns", "data-key": "columns" }, valve(job), probe(job)),
    eventTime(watch),
    tables(watch),
    batches(watch),
    history(watch),
    runner(watch),
    acknowledgements(job),
    script(watch),
  ];
}

function waiting() {
  return h("p", { class: "empty", "data-key": "waiting" }, "Asking the control plane …");
}

function gone() {
  return h(
    "div",
    { class: "empty", "data-key": "gone" },
    h("h1", { tabindex: "-1" }, "This job has been removed"),
    h("p", {}, "Its topics and tables are gone, too."),
  );
}

function title(watch) {
  const { job } = watch;
  return h(
    "div",
    { class: "title", "data-key": "title" },
    h("h1", { tabindex: "-1" }, said(job.name)),
    h("p", {}, state(job.state), standing(job), job.phase && ` phase ${plain(job.phase)}`, wanted(job)),
    job.report && !job.report.is_live && h(
      "p",
      { class: "quiet", "data-key": "as-of" },
      "The numbers are of ", time(job.report.at_ms), ", by a runner that does not speak now.",
    ),
    h("code", { class: "id" }, plain(job.id)),
    ordersView(watch),
  );
}

/** Which half of the join stands still, where the other goes on. */
function standing(job) {
  const parts = (job.stalls ?? []).map((stall) => stall.part);
  const isHalf = job.state === "STALLED" && job.phase === "JOIN" && !job.event_time && parts.length > 0;
  if (!isHalf || !parts.every((part) => part.startsWith("source "))) return null;
  const names = parts.map((part) => part.slice("source ".length)).join(", ");
  return h("span", { class: "quiet" }, " table ", said(names), " stands still, the stream is joined; ");
}

function why({ job, wait }) {
  const isWaiting = wait ? wait.waiting && !isIdle(job, wait) : job.state !== "JOINING";
  const heading = isWaiting ? "Why is nothing coming out?" : "What it does";
  return panel(
    "why",
    heading,
    h("p", { class: "sentence" }, said(wait?.sentence ?? job.reason)),
    wait?.hint && h("p", { class: "hint" }, h("strong", {}, "What to do: "), said(wait.hint)),
    wait?.conditions?.length > 0 && conditions(wait.conditions),
  );
}

/** All that there was is joined: nothing comes out, and nothing is in the way. */
function isIdle(job, { hint, conditions: found }) {
  const unmet = found.filter((one) => one.met === false).map((one) => one.name);
  return job.state === "JOINING" && !hint && unmet.every((name) => name === "records-available");
}

/** What is not met can be seen at once, in the order in which it must come true; the rest on demand. */
function conditions(found) {
  const unmet = found.filter((one) => one.met === false);
  const met = found.filter((one) => one.met === true).length;
  const first = unmet.slice(0, UNMET);
  return [
    first.length > 0 && h("ol", { class: "conditions", "data-key": "unmet" }, first.map(condition)),
    h(
      "details",
      { "data-key": "all" },
      h("summary", {}, `All conditions: ${met} of ${found.length} met, ${unmet.length} not met`),
      h("ol", { class: "conditions" }, found.map(condition)),
    ),
  ];
}

function condition({ name, about, met, evidence, hint }) {
  const [sign, word, tone] = MET[met] ?? MET[null];
  return h(
    "li",
    { "data-key": `${name}/${about ?? ""}` },
    h("span", { class: `state ${tone}` }, shape(sign), word),
    h("span", { class: "condition" }, " ", plain(name).replaceAll("-", " "), about && [" · ", said(about)]),
    evidence && h("span", { class: "quiet evidence" }, said(evidence)),
    hint && met !== true && h("span", { class: "hint" }, said(hint)),
  );
}

function problems({ job, orders }) {
  const stalls = job.stalls ?? [];
  const error = job.error && !stalls.length; // it is the first of them
  const found = [
    error && fault(job.state === "FAILED" ? "bad" : "warn", job.state, job.error),
    ...stalls.map((stall) => fault("warn", "Stalled", stall, decision(job, stall, orders))),
    ...(job.warnings ?? []).map((warning) => fault("note", "Warning", warning)),
  ].filter(Boolean);
  return found.length > 0 && panel("problems", "Errors and warnings", found);
}

/** What only an operator can decide, here or by the command. */
function decision(job, stall, orders) {
  if (!stall.choices?.length) return null;
  const key = plain(stall.type);
  const choice = (name, at) =>
    h(
      "label",
      { class: "choice" },
      h("input", { type: "radio", name: "choice", value: name, checked: at === 0 }),
      ` ${plain(name)}`,
    );
  return h(
    "form",
    { class: "decision", "data-form": "acknowledge", "data-cause": stall.type, "data-key": key },
    h("fieldset", {}, h("legend", {}, "It waits for your decision"), stall.choices.map(choice)),
    h("label", { for: `reason-${key}` }, "Reason, which is kept"),
    h("input", { id: `reason-${key}`, name: "reason", required: true, maxlength: "500", autocomplete: "off" }),
    h("button", { type: "submit", disabled: orders.isSending }, "Acknowledge"),
    h("p", { class: "quiet" }, "Or: ", h("code", {}, `sluice acknowledge ${plain(job.id)} ${key} --reason …`)),
  );
}

/** The way to JOINING with the time of each step's newest beginning, and where the job is now. */
export function steps(history, job) {
  const reached = new Map(history.map((event) => [event.to, event.at_ms]));
  const now = WAY.indexOf(job.state);
  const passed = job.phase === "JOIN" ? WAY.length : now;
  const here = joinsNothing(job) ? WAY.filter((name) => !COPYING.includes(name)) : WAY;
  const way = here.map((name) => [name, WAY.indexOf(name)]).map(([name, at]) => ({
    name,
    atMs: reached.get(name) ?? null,
    place: at === now ? "now" : at < passed || (now < 0 && reached.has(name)) ? "done" : "ahead",
  }));
  if (now < 0) way.push({ name: job.state, atMs: reached.get(job.state) ?? null, place: "now" });
  return way;
}

function way({ history: past, job, nowMs }) {
  const step = ({ name, atMs, place }) =>
    h(
      "li",
      { class: place, "aria-current": place === "now" ? "step" : null, "data-key": name },
      h("span", { class: "step" }, shape(PLACES[place]), plain(name)),
      MEANING[name] && h("span", { class: "quiet" }, MEANING[name]),
      h("span", { class: "quiet" }, when(place, atMs, nowMs)),
    );
  return panel("way", "Phases", h("ol", { class: "way" }, steps(past, job).map(step)));
}

function when(place, atMs, nowMs) {
  if (place === "ahead") return "not yet";
  if (place === "done") return atMs === null ? "done" : ["done, begun at ", time(atMs)];
  return atMs === null ? "now" : ["now, for ", duration(nowMs - atMs), ", since ", time(atMs)];
}

function history({ history: past, historyError }) {
  const newest = [...past].reverse();
  const row = (event) =>
    h(
      "tr",
      { "data-key": event.sequence },
      cell("When", time(event.at_ms)),
      cell("From", event.from ? plain(event.from) : "–"),
      cell("To", state(event.to)),
      cell("Cause", said(event.cause)),
    );
  return panel(
    "history",
    "History",
    historyError && refusal("The history cannot be shown", historyError),
    newest.length
      ? table("History", ["When", "From", "To", "Cause"], newest.slice(0, 200).map(row))
      : h("p", { class: "quiet" }, "No transition yet."),
    newest.length > 200 && h("p", { class: "quiet" }, `The newest 200 of ${newest.length}.`),
  );
}

function runner({ job, statusAtMs, nowMs }) {
  const { runner: process } = job;
  if (!process) return null;
  const restart = job.restart_at_ms;
  const age = process.status_age_ms;
  const report = age === null ? "none yet" : `${duration(age)} old at ${clock(statusAtMs, nowMs)}`;
  return panel(
    "runner",
    "Runner",
    facts([
      ["process", process.alive ? `runs, pid ${process.pid}` : "does not run"],
      ["started", process.started_at_ms ? time(process.started_at_ms) : null],
      ["starts again", restart ? ["at ", time(restart), ` (in ${duration(restart - nowMs)})`] : null],
      ["last report", report],
      ["restarts", process.restarts],
      ["crashes in a row", process.crashes],
      ["adopted", process.adopted ? "yes, from an earlier control plane" : null],
      ["epoch", job.epoch ?? null],
      ["writer", job.writer ? [job.writer, job.writer_reason && [": ", said(job.writer_reason)]] : null],
    ]),
  );
}

function acknowledgements(job) {
  const done = job.acknowledgements ?? [];
  if (!done.length) return null;
  const rows = done.map((found) => [
    time(found.at_ms),
    said(found.by),
    h("code", {}, `${plain(found.cause)} ${plain(found.choice)}`),
    said(found.reason),
  ]);
  const heads = ["When", "By", "Cause and choice", "Reason"];
  return panel("decisions", "Decisions", table("Decisions", heads, rows));
}

function script({ sql }) {
  return sql && panel(
    "script",
    "Script",
    h("details", {}, h("summary", {}, "Show the script"), h("pre", { tabindex: "0" }, plain(sql))),
  );
}
