// The details of one job, in the terms of FLIP-326 and Flink: phases, watermarks, offsets, conditions.

import { h } from "./dom.js";
import { clock, duration, plain } from "./format.js";
import { eventTime } from "./event_time.js";
import { joinsNothing, probe, valve } from "./progress.js";
import { cell, facts, panel, said, shape, table, time } from "./parts.js";

const WAY = ["STARTING", "SNAPSHOT", "CATCHING_UP", "JOINING"];
const COPYING = ["SNAPSHOT", "CATCHING_UP"]; // of a job that joins a table
const MEANING = {
  STARTING: "the runner starts",
  SNAPSHOT: "the tables are copied",
  CATCHING_UP: "changes up to HIGH are committed",
  JOINING: "the gate is open",
};
const PLACES = { done: "✓", now: "▶", ahead: "·" };
const MET = {
  true: ["✓", "met", "good"],
  false: ["✕", "not met", "warn"],
  null: ["?", "not known", "rest"],
};

/** All that a reader of FLIP-326 asks; `watch` is a `JobWatch`. */
export function details(watch) {
  const { job, wait } = watch;
  return [
    wait?.conditions?.length > 0 && panel("conditions", "Conditions for output", conditions(wait.conditions)),
    way(watch),
    h("div", { class: "columns", "data-key": "columns" }, valve(job), probe(job)),
    eventTime(watch),
    runner(watch),
  ];
}

/** Conditions as a list, in the order in which they must come true. */
export function conditions(found) {
  return h("ol", { class: "conditions" }, found.map(condition));
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
      ["state", job.state],
      ["phase", job.phase],
      ["writer", job.writer ? [job.writer, job.writer_reason && [": ", said(job.writer_reason)]] : null],
    ]),
  );
}
