// The page: which view is shown, whether what it shows is live, and the token that may be needed.

import { Refused, Unauthorised, get, hasToken, keepToken } from "./api.js";
import { lettersView, tableView } from "./browse.js";
import { DeadLetters, TableBrowser } from "./browse_data.js";
import { instantAt } from "./chart.js";
import { h, show } from "./dom.js";
import { editorView } from "./editor.js";
import { Editor, rangeOf } from "./editor_data.js";
import { clock, duration, isInUtc, plain, showUtc } from "./format.js";
import { jobView, tabOf } from "./job.js";
import { JobWatch } from "./job_data.js";
import { jobsView } from "./jobs.js";
import { JobList } from "./jobs_data.js";
import { refusal, said, wordOf } from "./parts.js";

const IDS = ["content", "notice", "connection", "spoken", "foot"];
const [content, notice, connection, spoken, foot] = IDS.map((id) => document.getElementById(id));
const JOB = /^#\/jobs\/([0-9a-f-]{36})$/;
const EDIT = /^#\/jobs\/([0-9a-f-]{36})\/edit$/;
const NEW = /^#\/new(?:\/([^/]+))?$/;
const LETTERS = /^#\/jobs\/([0-9a-f-]{36})\/dead-letters$/;
const TABLE = /^#\/jobs\/([0-9a-f-]{36})\/tables\/([^/]+)$/;
const WANTED = "This control plane asks for a token.";
const PATTERN = "\\s*[!-~]+\\s*"; // what a header can carry
const CREATE = () => h("code", {}, "sluice tokens create");
const ROLE_AGAIN_MS = 5_000;
const MAY_BLINK_MS = 1_500; // a connection that is back within this was never worth a word

/** Whether what is shown is as the control plane says now. */
const link = { isLive: false, isEnded: false, staleSinceMs: null, unauthorised: null, error: null };
let shown = { kind: "unknown", source: null }; // or "job" or "jobs" with its source
let program = null; // what the control plane says of itself, once it is live
let lastSpoken = "";
let isScheduled = false;
let isFocusWanted = false;
let focusNext = null; // what a choice leads to, for those who use the keyboard

const told = {
  changed: schedule,
  nowMs: () => link.staleSinceMs ?? Date.now(),
  live() {
    if (!link.isLive) askRole();
    Object.assign(link, { isLive: true, staleSinceMs: null, error: null });
    schedule();
  },
  lost(sinceMs, error) {
    link.isEnded = Boolean(error?.isFinal);
    if (link.isEnded) return told.failed(error);
    link.staleSinceMs ??= sinceMs;
    Object.assign(link, { isLive: false, error });
    schedule();
  },
  failed(error) {
    if (error instanceof Unauthorised) {
      link.unauthorised = error;
      shown.source?.stop();
    }
    schedule();
  },
  ended() {
    Object.assign(link, { isLive: false, isEnded: true });
    schedule();
  },
};

function route() {
  shown?.source?.stop();
  Object.assign(link, { isLive: false, isEnded: false, staleSinceMs: null, error: null });
  const [job, edit, letters, table, fresh] = [JOB, EDIT, LETTERS, TABLE, NEW].map((form) => form.exec(location.hash));
  if (job) shown = { kind: "job", source: new JobWatch(job[1], told) };
  else if (edit) shown = { kind: "editor", source: new Editor(told, { id: edit[1] }) };
  else if (letters) shown = { kind: "letters", source: new DeadLetters(letters[1], told) };
  else if (table) shown = { kind: "table", source: new TableBrowser(table[1], decoded(table[2]), told) };
  else if (fresh) shown = { kind: "editor", source: new Editor(told, { example: fresh[1] && decoded(fresh[1]) }) };
  else if (["", "#", "#/"].includes(location.hash)) shown = { kind: "jobs", source: new JobList(told) };
  else shown = { kind: "unknown", source: null };
  if (!link.unauthorised) shown.source?.start();
  schedule();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an address that somebody has typed
  }
}

/** Ask once whether a token is good before all the rest asks: each failure makes the next one wait. */
async function enter() {
  try {
    if (hasToken()) await get("/v1/version");
    link.unauthorised = null;
  } catch (error) {
    link.unauthorised = error instanceof Refused ? error : null;
  }
  route();
}

/** Ask which part the control plane has; of a standby again and again, for it may come to lead. */
async function askRole() {
  try {
    program = await get("/v1/version");
  } catch {
    program = null; // whoever is live is asked again when that has ended
  }
  if (program?.role === "standby") setTimeout(() => link.isLive && askRole(), ROLE_AGAIN_MS);
  schedule();
}

/** Go to another view: who does not see it must hear where it is. */
function go() {
  route();
  window.scrollTo(0, 0);
  isFocusWanted = true;
}

/** A hidden tab must not hold one of the few connections that a browser has. */
function hideOrShow() {
  link.isLive = false;
  if (document.hidden) shown.source?.stop();
  else if (!link.unauthorised) shown.source?.start();
}

function schedule() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    try {
      render();
    } catch (error) {
      show(notice, refusal("This view cannot be drawn", error));
      throw error;
    }
  });
}

function render() {
  const isStale = link.staleSinceMs !== null && Date.now() - link.staleSinceMs > MAY_BLINK_MS;
  document.body.classList.toggle("stale", isStale);
  show(connection, status(isStale));
  show(notice, isStale && !link.unauthorised && staleNotice());
  show(content, view());
  show(foot, footer());
  document.title = title();
  speak(isStale);
  if (isFocusWanted && content.querySelector("h1")) {
    content.querySelector("h1").focus({ preventScroll: true });
    isFocusWanted = false;
  }
  const area = document.getElementById("script-text");
  if (area && document.activeElement !== area && area.value !== shown.source.script) area.value = shown.source.script;
  if (focusNext) (content.querySelector(focusNext) ?? content.querySelector("#tab-panel h2"))?.focus();
  focusNext = null;
}

function view() {
  if (link.unauthorised) return tokenForm();
  if (shown.kind === "job") return jobView(shown.source);
  if (shown.kind === "jobs") return jobsView(shown.source);
  if (shown.kind === "editor") return editorView(shown.source);
  if (shown.kind === "letters") return lettersView(shown.source);
  if (shown.kind === "table") return tableView(shown.source);
  const heading = h("h1", { tabindex: "-1" }, "There is no such view");
  return h("div", { class: "empty" }, heading, h("a", { href: "#/" }, "All jobs"));
}

function status(isStale) {
  if (link.unauthorised) return h("span", { class: "state bad" }, "✕ no access");
  if (isStale) return h("span", { class: "state warn" }, "▲ stale since ", clock(link.staleSinceMs));
  if (link.isEnded) return h("span", { class: "state rest" }, "■ ended");
  if (link.isLive && program?.role === "standby") {
    const leader = program.leader_url ? `; ${program.leader_url} leads` : "";
    return h("span", { class: "state warn" }, `▲ standby, to read only${leader}`);
  }
  if (link.isLive) return h("span", { class: "state good" }, "● live");
  return h("span", { class: "state rest" }, "○ connecting …");
}

function staleNotice() {
  const { problem } = link.error ?? {};
  const why = problem
    ? [said(problem.detail), ". ", said(problem.hint)]
    : "The control plane does not answer. Jobs that run go on without it.";
  const since = Date.now() - link.staleSinceMs;
  return h(
    "div",
    { class: "fault warn stale-notice" },
    h("p", { class: "fault-title" }, `Stale since ${clock(link.staleSinceMs)}, ${duration(since)} ago`),
    h("p", {}, why, " This page tries again by itself. "),
    h("button", { type: "button", "data-action": "hurry" }, "Try now"),
  );
}

function tokenForm() {
  const { problem } = link.unauthorised;
  const isWrong = hasToken();
  return h(
    "form",
    { class: "panel token", "data-form": "token", "data-key": "token" },
    h("h1", { tabindex: "-1" }, "A token, please"),
    h("p", {}, isWrong ? ["The token was not accepted: ", said(problem.detail), "."] : WANTED),
    isWrong && h("p", { class: "hint" }, said(problem.hint)),
    h("label", { for: "token" }, "Token"),
    h("input", { id: "token", name: "token", type: "password", pattern: PATTERN, required: true }),
    h("p", { class: "quiet" }, "It is kept for this tab only. An admin makes one with ", CREATE(), "."),
    h("button", { type: "submit" }, "Go on"),
  );
}

function footer() {
  const zone = isInUtc() ? "UTC" : `local (${plain(Intl.DateTimeFormat().resolvedOptions().timeZone)})`;
  return [
    h("span", {}, `Times are ${zone}.`),
    (isInUtc() || new Date().getTimezoneOffset() !== 0) && h("button", { type: "button", "data-action": "zone" }, isInUtc() ? "Show local times" : "Show UTC"),
    hasToken() && h("button", { type: "button", "data-action": "forget" }, "Forget the token"),
  ];
}

function title() {
  const job = shown.kind === "job" ? shown.source.job : null;
  if (shown.kind === "editor") return `${shown.source.id ? "Change a job" : "New job"} · Sluice`;
  if (shown.kind === "letters") return "Dead letters · Sluice";
  if (shown.kind === "table") return `Table ${plain(shown.source.name)} · Sluice`;
  return job ? `${wordOf(job)} · ${plain(job.name)} · Sluice` : "Jobs · Sluice";
}

/** Say changes of state and connection once, for those who do not see them. */
function speak(isStale) {
  const job = shown.kind === "job" ? shown.source.job : null;
  const state = job ? `${plain(job.name)} is ${wordOf(job)}` : "";
  const text = isStale ? `Stale since ${clock(link.staleSinceMs)}` : state;
  if (text !== lastSpoken) spoken.textContent = lastSpoken = text;
}

function giveUp() {
  focusNext = `[data-order=${shown.source.orders.asked}]`;
  shown.source.orders.cancel();
}

const ACTIONS = {
  more: () => shown.source.more(),
  batches: () => shown.source.askBatches(),
  goto({ to }) {
    shown.source.open(tabOf(to));
    focusNext = `[id="${CSS.escape(to)}-title"]`;
  },
  tab({ tab }) {
    shown.source.open(tab);
    focusNext = `#tab-${tab}`;
  },
  log: () => shown.source.askLog(),
  rows: () => shown.source.askRows(),
  range: ({ range }) => shown.source.choose(range),
  hurry: () => shown.source.hurry(),
  zone: () => showUtc(!isInUtc()),
  order({ order }) {
    shown.source.orders.ask(order);
    focusNext = "[data-action=order-no]";
  },
  "order-no": () => giveUp(),
  "order-yes"() {
    shown.source.orders.send(shown.source.job);
    isFocusWanted = true;
  },
  "more-rows": () => shown.source.more(),
  earlier: () => shown.source.earlier(),
  "replay-ask": () => shown.source.ask(true),
  "replay-no": () => shown.source.ask(false),
  "replay-yes": () => shown.source.replay(),
  check: () => shown.source.check(),
  migrate: async () => {
    await shown.source.migrate();
    const area = document.getElementById("script-text");
    if (area) area.value = shown.source.script;
  },
  "submit-script": () => shown.source.submit(),
  "submit-append": () => shown.source.submit(true),
  preview: () => shown.source.preview(),
  "preview-update": () => shown.source.previewUpdate(),
  "apply-update": () => shown.source.applyUpdate(),
  "cancel-preview": () => shown.source.cancel(),
  example({ name }) {
    const area = document.getElementById("script-text");
    const { source } = shown;
    if (!source.isExample(area.value) && !confirm("Replace what is written by this example?")) return;
    area.value = source.examples[name];
    shown.source.write(area.value);
  },
  complete({ name }) {
    const area = document.getElementById("script-text");
    const { text, caret } = shown.source.completed(name);
    area.focus();
    area.value = text;
    area.setSelectionRange(caret, caret);
    shown.source.write(text, caret);
  },
  "show-place"() {
    const area = document.getElementById("script-text");
    const { line, column } = shown.source.problem;
    area.focus();
    area.setSelectionRange(...rangeOf(area.value, line, column ?? 1));
  },
  forget() {
    keepToken(null);
    location.reload();
  },
};
function trimmed(form) {
  return Object.fromEntries([...new FormData(form)].map(([name, text]) => [name, text.trim()]));
}

const FORMS = {
  token(form) {
    keepToken(new FormData(form).get("token").trim());
    form.reset();
    isFocusWanted = true;
    enter();
  },
  acknowledge(form) {
    const given = new FormData(form);
    const reason = given.get("reason").trim();
    if (reason) shown.source.orders.acknowledge(form.dataset.cause, given.get("choice"), reason);
  },
  discard(form) {
    const reason = new FormData(form).get("reason").trim();
    const { group } = form.dataset;
    if (reason) shown.source.discard(group === undefined ? null : Number(group), reason);
  },
  letters: (form) => shown.source.filter(trimmed(form)),
  correct(form) {
    const letter = shown.source.groups[Number(form.dataset.group)][1][Number(form.dataset.letter)];
    shown.source.correct(letter, new FormData(form).get("value"));
  },
  filter() {},
  editor() {},
  rows: (form) => shown.source.look(trimmed(form)),
  changes: (form) => shown.source.compare(trimmed(form)),
  history: (form) => shown.source.follow(trimmed(form)),
};

document.addEventListener("click", (event) => {
  const chosen = event.target.closest("[data-action]")?.dataset;
  if (chosen?.action === "goto") event.preventDefault();
  if (chosen) ACTIONS[chosen.action](chosen);
  schedule();
});
document.addEventListener("pointermove", ({ target, clientX }) => {
  const plot = target.closest?.("[data-plot]");
  const span = shown.source?.numbers?.span;
  if (!span) return;
  if (!plot) return shown.source.point(null);
  const { left, width } = plot.getBoundingClientRect();
  shown.source.point(instantAt(span, (clientX - left) / width));
});
/** Arrows, Home and End go through the tabs, as the pattern of ARIA says. */
function walk(event) {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const at = tabs.indexOf(event.target);
  const last = tabs.length - 1;
  const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  ACTIONS.tab(tabs[to].dataset);
  schedule();
}

document.addEventListener("keydown", (event) => {
  if (event.target.role === "tab") walk(event);
  const first = shown.source?.completion?.names[0];
  if (event.key === " " && event.ctrlKey && event.target.id === "script-text" && first) {
    event.preventDefault();
    ACTIONS.complete({ name: first });
    return;
  }
  if (event.key !== "Escape" || !shown.source?.orders?.asked) return;
  giveUp();
  schedule();
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  FORMS[event.target.dataset.form](event.target);
});
document.addEventListener("input", (event) => {
  if (event.target.id === "script-text") return shown.source.write(event.target.value, event.target.selectionStart);
  const form = event.target.closest("[data-form=filter]");
  if (!form) return;
  const given = new FormData(form);
  shown.source.choose({ search: given.get("search").trim(), state: given.get("state") });
});
document.addEventListener("visibilitychange", hideOrShow);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
window.matchMedia("(max-width: 56rem)").addEventListener("change", schedule);
window.addEventListener("hashchange", go);
window.addEventListener("online", () => shown.source?.hurry());
setInterval(schedule, 1000);
enter();
