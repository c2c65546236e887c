// The views of a job's data: rows of a table, and dead letters by their reasons.

import { placeOf } from "./browse_data.js";
import { h } from "./dom.js";
import { count, many, plain } from "./format.js";
import { cell, facts, panel, refusal, said, SENT, table, time } from "./parts.js";

const SHOWN = 20; // letters of one reason
const WORDS = { deleted: "it is deleted", "not-copied-again": "it was not copied again", "no-record": "there is no record of it" };

/** Rows of a table at a version; `browser` is a `TableBrowser`. */
export function tableView(browser) {
  const { job, name, table: known, answer, changes, history, busy, error, query } = browser;
  return [
    back(job),
    h("h1", { tabindex: "-1", "data-key": "title" }, "Table ", said(name)),
    known && panel("versions", "Versions", facts([
      ["newest", count(known.version)],
      ["oldest that is kept", count(known.oldest_version)],
      ["of the newest batch", count(known.pinned_version)],
      ["key", said(known.primary_key.join(", "))],
    ])),
    panel(
      "rows",
      "Rows as the join saw them",
      h(
        "form",
        { class: "filter", "data-form": "rows" },
        field("key", "Key", query.key, { placeholder: "all keys" }),
        field("version", "Version", query.version, { inputmode: "numeric", pattern: "\\d*", placeholder: "newest" }),
        h("button", { type: "submit", disabled: busy }, busy ? "Looking …" : "Look"),
      ),
      answer && rowsOf(answer, busy),
    ),
    panel(
      "changes",
      "What has become of keys between two versions",
      h(
        "form",
        { class: "filter", "data-form": "changes" },
        field("from", "From version", query.from, { inputmode: "numeric", pattern: "\\d+", required: true }),
        field("to", "to", query.to, { inputmode: "numeric", pattern: "\\d*", placeholder: "newest" }),
        h("button", { type: "submit", disabled: busy }, "Compare"),
      ),
      changes && changesOf(changes),
    ),
    panel(
      "history",
      "What has become of one key",
      h(
        "form",
        { class: "filter", "data-form": "history" },
        field("of", "Key", query.of, { required: true }),
        h("button", { type: "submit", disabled: busy }, "Show its history"),
      ),
      history && historyOf(history, busy),
    ),
    error && refusal("The table cannot be shown", error),
  ];
}

function back(job) {
  return h("p", { class: "back", "data-key": "back" }, h("a", { href: `#/jobs/${job}` }, "← The job"));
}

function field(name, label, value, more) {
  const id = `of-${name}`;
  return [h("label", { for: id }, label), h("input", { id, name, value, autocomplete: "off", maxlength: "200", ...more })];
}

function rowsOf({ version, columns, items, absent, next_cursor: next }, busy) {
  const names = columns.map((column) => column.name);
  const heads = [...names.map(plain), "Changed at the source"];
  const rows = items.map((row) => [...names.map((name) => value(row.values[name])), time(row.source_ts_ms)]);
  return [
    h("p", { class: "quiet" }, `${many(items.length, "row")} of version ${count(version)}.`),
    items.length > 0 && table("Rows", heads, rows),
    absent.map((each) => h("p", {}, "Key ", h("code", {}, plain(JSON.stringify(each.key))), `: ${WORDS[each.reason] ?? plain(each.reason)}.`)),
    next && h("button", { type: "button", "data-action": "more-rows", disabled: busy }, "Next rows"),
  ];
}

function changesOf({ from_version: from, to_version: to, items, next_cursor: next }) {
  const text = (values) => (values === null ? "–" : h("code", {}, plain(JSON.stringify(values))));
  const rows = items.map((each) => [plain(each.change), text(each.key), text(each.before), text(each.after), time(each.source_ts_ms)]);
  return [
    h("p", { class: "quiet" }, `${many(items.length, "key")} ${items.length === 1 ? "differs" : "differ"} between versions ${count(from)} and ${count(to)}${next ? ", and there are more" : ""}.`),
    items.length > 0 && table("Changes", ["Change", "Key", "Before", "After", "At the source"], rows),
  ];
}

function historyOf({ key, items, beginning, next_cursor: next }, busy) {
  const code = (values) => h("code", {}, plain(JSON.stringify(values)));
  const side = (values) => (values === null ? "–" : code(values));
  const rows = items.map((each) => [
    count(each.version),
    plain(each.change),
    side(each.before),
    side(each.after),
    time(each.source_ts_ms),
    time(each.committed_at_ms),
  ]);
  return [
    h("p", { class: "quiet" }, `${many(items.length, "version")} ${items.length === 1 ? "has" : "have"} changed the row of `, code(key), next ? ", and there may be more." : "."),
    items.length > 0 && table("History", ["Version", "Change", "Before", "After", "At the source", "In the table"], rows),
    beginning && h(
      "p",
      {},
      `Before version ${count(beginning.version)} nothing is kept. `,
      beginning.values === null
        ? `There is no row of it in that version: ${WORDS[beginning.reason] ?? plain(beginning.reason)}.`
        : ["That version has ", code(beginning.values), ", changed at the source ", time(beginning.source_ts_ms), "."],
    ),
    next && h("button", { type: "button", "data-action": "earlier", disabled: busy }, "Earlier versions"),
  ];
}

function value(of) {
  if (of === null || of === undefined) return h("span", { class: "quiet" }, "NULL");
  return said(typeof of === "object" ? JSON.stringify(of) : of);
}

/** Dead letters by their reasons; `letters` is a `DeadLetters`. */
export function lettersView(letters) {
  const { job, groups, busy, error, replayed, discarded } = letters;
  const all = (groups ?? []).reduce((sum, [, each]) => sum + each.length, 0);
  return [
    back(job),
    h("h1", { tabindex: "-1", "data-key": "title" }, "Dead letters"),
    h("p", { "data-key": "about" }, "Records of the stream that have no rows, as they could not be read or computed. They are kept, and can be joined again under the versions of their batch."),
    error && refusal(groups ? "It was not carried out" : "The dead letters cannot be shown", error),
    replayed && h("p", { class: "fault note", role: "status", "data-key": "replayed" }, outcome(replayed)),
    !groups && !error && h("p", { class: "empty" }, "Looking …"),
    discarded && h("p", { class: "fault note", role: "status", "data-key": "discarded" }, discardOutcome(discarded)),
    groups && !all && h("p", { class: "empty", "data-key": "none" }, letters.matching ? "No open dead letter has such a reason." : "No dead letter is open."),
    (all > 0 || letters.matching) && h(
      "form",
      { class: "filter", "data-form": "letters", "data-key": "filter" },
      field("matching", "Reason contains", letters.matching, { type: "search", maxlength: "500", placeholder: "all reasons" }),
      h("button", { type: "submit", disabled: busy }, busy ? "Looking …" : "Filter"),
    ),
    all > 0 && replayOrder(all, letters),
    all > 0 && (groups.length > 1 || letters.hasMore) && h(
      "details",
      { "data-key": "discard-all" },
      h("summary", {}, letters.matching ? ["Discard all whose reason contains “", said(letters.matching), "”"] : "Discard all"),
      discardForm(null, letters.matching ? "Discard these records" : "Discard all records", busy),
    ),
    (groups ?? []).map(([reason, each], at) => group(reason, each, { at, busy, job })),
  ];
}

function outcome({ status, records, rows, still_bad: bad }) {
  if (status === "waiting") return SENT;
  return `${many(records, "record")} joined again: ${many(rows, "row")} added, ${count(bad.length)} still without.`;
}

function discardOutcome({ status, records, remaining }) {
  if (status === "waiting") return SENT;
  return `${many(records, "record")} discarded${remaining ? `, ${count(remaining)} left for another discard` : ""}.`;
}

function replayOrder(all, { hasMore, isAsked, busy, matching }) {
  const which = matching ? "these" : "all";
  const told = `${hasMore ? "The first " : ""}${many(all, "record")}`;
  if (!isAsked) {
    return h("div", { class: "buttons", "data-key": "order" }, h("span", {}, told), h("button", { type: "button", "data-action": "replay-ask", disabled: busy }, `Join ${which} again`));
  }
  return h(
    "div",
    { class: "fault note", "data-key": "order" },
    h("p", { class: "fault-title" }, matching ? ["Join all dead letters again whose reason contains “", said(matching), "”?"] : "Join all dead letters again?"),
    h("p", {}, "What can be joined by now gets its rows, once; what cannot stays a dead letter."),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", "data-action": "replay-yes" }, "Yes, join them"),
      h("button", { type: "button", "data-action": "replay-no" }, "No"),
    ),
  );
}

/** A form for another value of a letter; a value that is not shown whole is corrected by the command. */
function correction(letter, at, number, { job, busy }) {
  const place = placeOf(letter);
  const form = h(
    "form",
    { class: "decision", "data-form": "correct", "data-group": at, "data-letter": number },
    h("textarea", { name: "value", rows: "4", "aria-label": `Value of ${place}`, spellcheck: "false" }, letter.value),
    h("button", { type: "submit", disabled: busy }, "Join with this value"),
  );
  const command = h("code", {}, `sluice dlq replay ${job} ${place} --value-file FILE`);
  const isWhole = letter.value !== null && !letter.truncated;
  return h("details", { "data-key": `correct-${place}` }, h("summary", {}, "Correct"), isWhole ? form : command);
}

function group(reason, letters, { at, busy, job }) {
  const row = (letter, number) => h(
    "tr",
    {},
    cell("Place", h("code", {}, placeOf(letter))),
    cell("Batch", count(letter.batch)),
    cell("Written", time(letter.timestamp_ms)),
    cell("Value", letter.value === null ? h("span", { class: "quiet" }, "no text") : h("code", {}, plain(letter.value)), letter.truncated && " …", correction(letter, at, number, { job, busy })),
  );
  return panel(
    `reason-${at}`,
    [`${many(letters.length, "record")}: `, said(reason)],
    table("Records", ["Place", "Batch", "Written", "Value"], letters.slice(0, SHOWN).map(row)),
    letters.length > SHOWN && h("p", { class: "quiet" }, `The first ${SHOWN}.`),
    discardForm(at, `Discard ${letters.length === 1 ? "this record" : `these ${count(letters.length)} records`}`, busy),
  );
}

/** Discard the group number `at`, or with null all that are shown. */
function discardForm(at, label, busy) {
  const id = `discard-reason-${at ?? "all"}`;
  return h(
    "form",
    { class: "decision", "data-form": "discard", "data-group": at, "data-key": `discard-${at ?? "all"}` },
    h("label", { for: id }, "Reason (recorded)"),
    h("input", { id, name: "reason", required: true, maxlength: "1000", autocomplete: "off" }),
    h("button", { type: "submit", disabled: busy }, label),
  );
}
