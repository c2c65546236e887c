// The view of one job: its state, cause and remedy first, then its numbers, then all the rest in tabs.

import { h } from "./dom.js";
import { count, lasting, many, openLetters, plain } from "./format.js";
import { batches } from "./batches.js";
import { placeOf } from "./browse_data.js";
import { conditions, details } from "./details.js";
import { figures } from "./figures.js";
import { flow } from "./flow.js";
import { orderButton, ordersView } from "./orders.js";
import { numbers } from "./numbers.js";
import { tables } from "./progress.js";
import { cell, facts, fault, panel, partName, refusal, said, state, table, time } from "./parts.js";

const WELL = ["good", "rest"];
const SHOWN = 200;
const TABS = {
  overview: ["Overview", numbers],
  tables: ["Tables", tables],
  batches: ["Batches", batches],
  output: ["Output", output],
  letters: ["Dead letters", letters],
  history: ["History", (watch) => [history(watch), acknowledgements(watch.job)]],
  log: ["Log", log],
  script: ["Script", script],
  details: ["Details", details],
};
const BEHIND = { valve: "details", stream: "details", batches: "batches", output: "output" };

/** The tab with the panel `to`, as a part of the picture names it. */
export function tabOf(to) {
  return to.startsWith("table-") ? "tables" : BEHIND[to] ?? "overview";
}

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
    answer(watch),
    problems(watch),
    figures(watch),
    flow(watch),
    tabs(watch),
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
  const { job, nowMs } = watch;
  return h(
    "div",
    { class: "title", "data-key": "title" },
    h("h1", { tabindex: "-1" }, said(job.name)),
    h(
      "p",
      { class: "standing" },
      state(job),
      job.status && h("span", { class: "quiet" }, "for ", lasting(job.status.since_ms, nowMs), ", since ", time(job.status.since_ms)),
    ),
    ordersView(watch),
  );
}

// The answer
// -------------------------------------------------------------------------------------------------

/** Cause and remedy of the state, the decision that it waits for, and all conditions behind a fold. */
function answer(watch) {
  const { job, wait, orders, letter } = watch;
  const { sentence = job.reason, remedy, action, tone = "busy" } = job.status ?? {};
  const [stall] = job.stalls ?? [];
  const detail = job.error?.detail;
  return h(
    "section",
    { class: `panel answer ${tone}`, id: "why", "data-key": "why", "aria-label": "State, cause and remedy" },
    h("p", { class: "sentence" }, said(sentence)),
    action === "dead-letters" && letter && h("p", { "data-key": "letter" }, `The oldest, ${placeOf(letter)}: `, said(letter.reason)),
    remedy && h("p", { class: "hint" }, h("strong", {}, "What to do: "), said(remedy)),
    actionButton(action, job, orders),
    stall && decision(job, stall, orders),
    detail && h("details", { "data-key": "detail" }, h("summary", {}, "Original error"), h("pre", { tabindex: "0" }, said(detail))),
    hasConditions(job) && folded(wait?.conditions ?? []),
    job.report && !job.report.is_live && h(
      "p",
      { class: "quiet", "data-key": "as-of" },
      "Numbers as of ", time(job.report.at_ms), job.runner?.alive ? " (runner not responding)." : ", the runner's last report.",
    ),
  );
}

function actionButton(action, job, orders) {
  if (action === "start" || action === "resume") return h("div", { class: "buttons" }, orderButton("resume", job, orders));
  if (action !== "dead-letters") return null;
  return h("div", { class: "buttons" }, h("a", { class: "button", href: `#/jobs/${job.id}/dead-letters` }, "Look at them"));
}

/** Whether conditions tell more than the answer: not of a job that is well, or that holds its records. */
function hasConditions({ status, state: name, phase }) {
  const { word = "", tone = "busy" } = status ?? {};
  return !WELL.includes(tone) && (phase !== "JOIN" || word.startsWith("Waiting") || ["STALLED", "FAILED"].includes(name));
}

function folded(found) {
  const met = found.filter((one) => one.met === true).length;
  return found.some((one) => one.met === false) && h(
    "details",
    { "data-key": "all" },
    h("summary", {}, `All conditions: ${met} of ${found.length} met`),
    conditions(found),
  );
}

/** Faults and warnings besides the one of the answer. */
function problems({ job, orders }) {
  const others = (job.stalls ?? []).slice(1);
  const warnings = (job.warnings ?? []).filter(({ message }) => !isSaid(job.status, message));
  const hints = new Set([job.status?.remedy]);
  const found = [
    ...others.map((stall) => fault("warn", "Stalled", once({ ...stall, part: partName(stall.part) }, hints), decision(job, stall, orders))),
    ...byHint(warnings).map((warning) => fault("note", "Warning", once(warning, hints))),
  ];
  return found.length > 0 && panel("problems", "Errors and warnings", found);
}

/** Whether the answer above says the message already. */
function isSaid(status, message) {
  return status?.sentence.toLowerCase().startsWith(message.toLowerCase()) ?? false;
}

/** The fault without its hint if that is in `hints`; adds it. */
function once(found, hints) {
  const { hint } = found;
  if (hints.has(hint)) return { ...found, hint: null };
  hints.add(hint);
  return found;
}

/** Warnings with one hint as one warning with several messages. */
export function byHint(warnings) {
  const groups = new Map();
  for (const { type, message, hint } of warnings) {
    const group = groups.get(hint) ?? { types: new Set(), message: [], hint };
    group.types.add(type);
    group.message.push(message);
    groups.set(hint, group);
  }
  return [...groups.values()].map(({ types, ...more }) => ({ type: [...types].join(", "), ...more }));
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
    h("fieldset", {}, h("legend", {}, "Decision required"), stall.choices.map(choice)),
    h("label", { for: `reason-${key}` }, "Reason (recorded)"),
    h("input", { id: `reason-${key}`, name: "reason", required: true, maxlength: "500", autocomplete: "off" }),
    h("button", { type: "submit", disabled: orders.isSending }, "Acknowledge"),
    h("p", { class: "quiet" }, "Or: ", h("code", {}, `sluice acknowledge ${plain(job.id)} ${key} --reason …`)),
  );
}

// Tabs
// -------------------------------------------------------------------------------------------------

function tabs(watch) {
  const [, shown] = TABS[watch.tab];
  const letters = openLetters(watch.job.probe);
  const button = ([name, [label]]) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "data-action": "tab",
        "data-tab": name,
        "data-key": name,
        "aria-selected": String(watch.tab === name),
        "aria-controls": "tab-panel",
        tabindex: watch.tab === name ? "0" : "-1",
      },
      label,
      name === "letters" && letters > 0 && h("span", { class: "count" }, count(letters)),
    );
  return h(
    "div",
    { class: "tabs", "data-key": "tabs" },
    h("div", { role: "tablist", "aria-label": "More of this job" }, Object.entries(TABS).map(button)),
    h(
      "div",
      { role: "tabpanel", id: "tab-panel", class: "tab-panel", "data-key": `of-${watch.tab}`, "aria-labelledby": `tab-${watch.tab}` },
      shown(watch),
    ),
  );
}

/** Where the rows go, and how their counts add up. */
function output({ job, outputs, rows, rowsError }) {
  const { probe, event_time: time_, sinks } = job;
  const row = ({ insert, table: name, connector, place }) => [count(insert), said(name), plain(connector), place ? said(place) : "–"];
  return [
    panel("output", "Output", sinks?.length > 0 && table("Output", ["INSERT", "Table", "Connector", "Path or topic"], sinks.map(row))),
    outputs.length > 0 && panel("schema", "Columns", outputs.map((each) => [outputs.length > 1 && h("p", {}, said(each.table)), schema(each)])),
    (rows || rowsError) && panel(
      "sample",
      "Newest rows",
      rowsError ? refusal("The rows cannot be shown", rowsError) : sample(rows),
      h("div", { class: "buttons" }, h("button", { type: "button", "data-action": "rows" }, "Read them again")),
    ),
    probe && panel(
      "counts",
      "Counts",
      table("Counts", ["Count", "Number", "Meaning"], counts(probe, time_).map(([name, value, meaning]) => [name, count(value), meaning])),
    ),
  ];
}

function schema({ table: name, columns }) {
  const rows = columns.map((column) => [said(column.name), plain(column.type), column.nullable ? "yes" : "no"]);
  return table(`Columns of ${plain(name)}`, ["Column", "Type", "NULL"], rows);
}

/** Sample rows of the output with the batch that wrote each. */
function sample({ table: name, items, columns }) {
  const heads = columns.map((column) => column.name).filter((head) => !head.startsWith("_"));
  const row = ({ batch, values }) => [count(batch), ...heads.map((head) => shown(values[head]))];
  return items.length
    ? table(`Newest rows of ${plain(name)}`, ["Batch", ...heads.map(plain)], items.map(row))
    : h("p", { class: "quiet" }, "No row is committed yet.");
}

function shown(value) {
  return value === null || value === undefined ? "NULL" : said(typeof value === "object" ? JSON.stringify(value) : String(value));
}

/** Name, number and meaning of each count, so that they add up. */
export function counts(probe, eventTime) {
  const { joined_records: rows, matched, unmatched, dead_letters: letters } = probe;
  const { replayed_dead_letters: replayed, discarded_dead_letters: discarded } = probe;
  const joins = Number.isFinite(matched);
  return [
    joins && ["matched", matched, "Records that met a row of each table, before WHERE."],
    joins && ["unmatched", unmatched, "The other records: NULL with LEFT JOIN, no row with INNER JOIN."],
    ["rows out", rows, joins ? "Rows of these records that were written." : "Rows that batches have written."],
    ["dead letters", letters, "Records that could not be joined; they are kept."],
    letters > 0 && ["open dead letters", openLetters(probe), "Dead letters that need a replay or a discard."],
    replayed > 0 && ["replayed dead letters", replayed, "Dead letters whose rows a replay has added to the output."],
    discarded > 0 && ["discarded dead letters", discarded, "Dead letters that were given up, with a recorded reason."],
    eventTime && ["late records", eventTime.late_records, "Records whose time was over; they are not in the output."],
    eventTime?.fired_rows > 0 && ["rows out of windows", eventTime.fired_rows, "Results of windows that have ended."],
  ].filter(Boolean);
}

function letters({ job }) {
  const open = openLetters(job.probe);
  const { replayed_dead_letters: replayed = 0, discarded_dead_letters: discarded = 0 } = job.probe ?? {};
  const settled = replayed + discarded > 0 && `${count(replayed)} were replayed, ${count(discarded)} discarded.`;
  return panel(
    "letters",
    "Dead letters",
    h("p", {}, open > 0 ? `${many(open, "record")} could not be joined.` : settled ? "No dead letter is open." : "Every record so far could be joined."),
    settled && h("p", { class: "quiet" }, settled),
    (open > 0 || settled) && h("p", {}, h("a", { class: "button", href: `#/jobs/${job.id}/dead-letters` }, "Reasons, replay, discard")),
  );
}

function history({ history: past }) {
  const newest = [...past].reverse();
  const row = (event) =>
    h(
      "tr",
      { "data-key": event.sequence },
      cell("When", time(event.at_ms)),
      cell("State", plain(event.word || event.to)),
      cell("Cause", said(event.cause)),
    );
  return panel(
    "history",
    "History",
    newest.length
      ? table("History", ["When", "State", "Cause"], newest.slice(0, SHOWN).map(row))
      : h("p", { class: "quiet" }, "No transition yet."),
    newest.length > SHOWN && h("p", { class: "quiet" }, `The newest ${SHOWN} of ${newest.length}.`),
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

function log({ log: text, logError }) {
  return panel(
    "log",
    "Log of the runner",
    logError && refusal("The log cannot be shown", logError),
    text !== null && (text ? h("pre", { tabindex: "0" }, plain(text)) : h("p", { class: "quiet" }, "The log is empty.")),
    h("div", { class: "buttons" }, h("button", { type: "button", "data-action": "log" }, "Read it again")),
  );
}

function script({ sql, job }) {
  return panel("script", "Script", facts([["job", h("code", {}, plain(job.id))]]), h("p", {}, h("a", { class: "button", href: `#/jobs/${job.id}/edit` }, "Change it")), sql && h("pre", { tabindex: "0" }, plain(sql)));
}
