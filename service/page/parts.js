// What all views are made of: states, times, panels, errors.

import { h } from "./dom.js";
import { clock, plain, utc } from "./format.js";

export const SENT = "The order is sent; the runner carries it out.";

// A shape for each tone: colour alone tells nothing.
const SHAPES = { bad: "✕", warn: "▲", busy: "◔", good: "●", rest: "■" };
const LATE = { detail: "the control plane did not answer in time", hint: "Try again when its machine has less to do." };
const SHAPES_OF_WORDS = { Paused: "‖", Finished: "✓" }; // of one tone with Stopped
const ID = /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/;
export const TONES = Object.keys(SHAPES); // the order of lists: trouble first

/** The state of a job as its word with a shape. */
export function state({ status, state: name }) {
  const { word, tone } = status ?? { word: name, tone: "busy" };
  const kind = word === "Paused" ? `${tone} open` : tone; // it has not ended
  return h("span", { class: `state ${kind}` }, shape(SHAPES_OF_WORDS[word] ?? SHAPES[tone] ?? "?"), plain(word));
}

/** The word without what changes by itself, such as percent. */
export function wordOf({ status, state: name }) {
  return (status?.word ?? name).replace(/ \(.*\)$/, "").replace(/^Waiting for .*/, "Waiting");
}

/** A sign that repeats what a word beside it says. */
export function shape(sign) {
  return h("span", { class: "shape", "aria-hidden": "true" }, sign);
}

/** Text of strangers, in its own direction; a job's id in it stays on one line. */
export function said(text) {
  const isId = (at) => at % 2 === 1;
  return h("bdi", {}, plain(text).split(ID).map((part, at) => (isId(at) ? h("span", { class: "id" }, part) : part)));
}

/** An instant in the browser's time; the title has it in UTC. */
export function time(ms) {
  const iso = utc(ms);
  return iso === null ? "–" : h("time", { datetime: iso, title: iso }, clock(ms));
}

/** A titled part of the view; `key` names it. */
export function panel(key, title, ...children) {
  const id = `${key}-title`;
  return h(
    "section",
    { class: "panel", "data-key": key, id: key, "aria-labelledby": id },
    h("h2", { id, tabindex: "-1" }, title),
    children,
  );
}

/** Names with values; pairs whose value is null are left out. */
export function facts(pairs) {
  const there = pairs.filter(([, value]) => value !== null && value !== undefined);
  return h(
    "dl",
    { class: "facts" },
    there.map(([name, value]) => h("div", { "data-key": name }, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** A table that scrolls by itself where it is too wide; rows are lists of cells, or nodes. */
export function table(label, heads, rows) {
  const cells = (row) => row.map((content, at) => cell(heads[at], content));
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": `${label}, as a table`, tabindex: "0" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((row) => (row instanceof Node ? row : h("tr", {}, cells(row))))),
    ),
  );
}

/** A cell that knows its column's head: on a phone it stands beside it. */
export function cell(head, ...content) {
  return h("td", { "data-head": head }, h("div", {}, content));
}

/** What is wrong, where, and what to do. */
export function fault(tone, title, { type, message, hint, part, detail }, ...more) {
  const sign = tone === "bad" ? "✕" : "▲";
  return h(
    "div",
    { class: `fault ${tone}` },
    h("p", { class: "fault-title" }, shape(sign), title, kind(type), part && [" · ", said(part)]),
    [message].flat().map((text) => h("p", { class: "fault-message" }, said(text))),
    hint && h("p", { class: "hint" }, h("strong", {}, "What to do: "), said(hint)),
    detail && h("details", { "data-key": `detail-${part ?? type}` }, h("summary", {}, "Details"), h("pre", {}, said(detail))),
    more,
  );
}

/** A stalled part as people call it: the stream, a table, or a file of the job. */
export function partName(part) {
  const [kind, ...table] = part.split(" ");
  return table.length ? `table ${table.join(" ")}` : kind === "probe" ? "stream" : kind;
}

/** A refused request as a fault. */
export function refusal(title, error) {
  const told = error.problem ?? (error.name === "TimeoutError" ? LATE : { detail: error.message });
  const type = plain(told.type ?? "").replace("urn:sluice:problem:", "");
  return fault("bad", title, { type, message: told.detail, hint: told.hint });
}

function kind(type) {
  return type ? [" · ", h("code", {}, plain(type))] : null;
}
