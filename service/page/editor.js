// The view in which a script is written, checked, tried and submitted.

import { rangeOf } from "./editor_data.js";
import { h } from "./dom.js";
import { many, plain } from "./format.js";
import { fault, panel, said, shape, table } from "./parts.js";
import { updateView } from "./update.js";

const AROUND = 1; // lines beside the one that is refused

/** The editor as nodes; the text is the text area's own and never written over while it is used. */
export function editorView(editor) {
  return [
    h("p", { class: "back", "data-key": "back" }, editor.id ? h("a", { href: `#/jobs/${editor.id}` }, "← The job") : h("a", { href: "#/" }, "← All jobs")),
    h("h1", { tabindex: "-1", "data-key": "title" }, editor.id ? ["Change job ", said(editor.job?.name ?? "")] : "New job"),
    form(editor),
    h("div", { "data-key": "says", "aria-live": "polite", class: "answers" }, answers(editor)),
  ];
}

function form(editor) {
  const { busy, isPreview, script, id } = editor;
  const isEmpty = !script.trim();
  const button = (action, label, more = {}) =>
    h("button", { type: "button", "data-action": action, disabled: Boolean(busy) || isEmpty, ...more }, label);
  return h(
    "form",
    { class: "panel editor", "data-form": "editor", "data-key": "editor" },
    !id && h(
      "div",
      { class: "buttons", "data-key": "examples" },
      h("span", { class: "quiet" }, "Begin with:"),
      Object.keys(editor.examples).map((name) =>
        h("button", { type: "button", "data-action": "example", "data-name": name }, name),
      ),
    ),
    h("label", { for: "script-text" }, "Script (Flink SQL)"),
    h("textarea", { id: "script-text", name: "script", rows: "18", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off" }),
    completing(editor),
    h(
      "div",
      { class: "buttons" },
      button("check", "Check"),
      button("migrate", "Migrate"),
      id ? button("preview-update", "Preview the change") : isPreview ? button("preview", "Show rows") : button("submit-script", "Submit", { class: "button" }),
      busy && isPreview && h("button", { type: "button", "data-action": "cancel-preview" }, "Enough"),
      busy && h("span", { class: "quiet" }, shape("…"), said(busy)),
    ),
    h(
      "p",
      { class: "quiet" },
      "Passwords belong into secrets: ",
      h("code", {}, "'password' = '${secret:name}'"),
      id ? ". A preview joins past batches again and changes nothing." : ". A script that ends with a bare SELECT shows rows and is then removed.",
    ),
  );
}

/** Names that complete the word at the caret; Ctrl+Space takes the first. */
function completing({ completion }) {
  const names = completion?.names ?? [];
  return h(
    "div",
    { class: "buttons completions", "data-key": "completions", role: "group", "aria-label": "Names that fit" },
    names.length > 0 && h("span", { class: "quiet" }, "Ctrl+Space:"),
    names.map((name) => h("button", { type: "button", "data-action": "complete", "data-name": name }, plain(name))),
  );
}

function answers({ problem, plan, validation, migration, rows, script, warnings, update, busy }) {
  const advice = [...(warnings ?? []), ...(validation ?? plan ?? {}).warnings ?? [], ...(update?.warnings ?? []).map((message) => ({ message }))];
  return [
    problem && refused(problem, script),
    problem && (problem.findings ?? []).filter((each) => each.line !== problem.line || each.column !== problem.column).map((each) => finding(each)),
    migration && h(
      "div",
      { class: "fault note" },
      h(
        "p",
        {},
        h("strong", {}, migration.accepted ? "Accepted" : "Not accepted yet"),
        ` after ${many(migration.changes.length, "change")}; comments in the script name them.`,
      ),
    ),
    migration && migration.left.map((each) => finding(each)),
    validation && h("div", { class: "fault note" }, h("p", {}, h("strong", {}, shape("✓"), "It can be submitted"), " as ", said(validation.name), ": all that it names is there.")),
    advice.map((each) => fault("note", "Warning", each)),
    update && updateView(update, busy),
    plan && panel("plan", "What it will do", h("pre", { tabindex: "0" }, plain(plan.tree || plan.text))),
    rows && panel("rows", `Rows (${many(rows.length, "row")})`, rows.length ? preview(rows) : h("p", { class: "quiet" }, "None yet.")),
  ];
}

/** A fault at its place, and how it would be accepted. */
function finding({ line, column, message, hint, replacement }) {
  return fault("bad", `Line ${line}, column ${column}`, { type: "sql", message, hint }, replacement && h("pre", { class: "excerpt", tabindex: "0", "aria-label": "As it would be accepted" }, plain(replacement)));
}

function preview(rows) {
  const columns = Object.keys(rows[0]);
  return table("Rows of the preview", columns.map(plain), rows.map((row) => columns.map((name) => said(row[name] === null ? "NULL" : String(row[name])))));
}

/** The refusal, with the place that it is about. */
function refused(problem, script) {
  const { line, column, detail, hint, type } = problem;
  const kind = plain(type ?? "").replace("urn:sluice:problem:", "");
  const place = line ? `Line ${line}${column ? `, column ${column}` : ""}` : "The script was refused";
  return fault("bad", place, { type: kind, message: detail, hint }, line && excerpt(script, line, column ?? 1), line && h("button", { type: "button", "data-action": "show-place" }, "Go there"), /submit with --append/.test(hint ?? "") && h("button", { type: "button", "data-action": "submit-append" }, "Append"));
}

function excerpt(script, line, column) {
  const lines = script.split("\n");
  const first = Math.max(0, line - 1 - AROUND);
  const [start, end] = rangeOf(script, line, column);
  const lineStart = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return h(
    "pre",
    { class: "excerpt", tabindex: "0", "aria-label": `The script around line ${line}` },
    lines.slice(first, line + AROUND).map((text, at) => {
      const number = first + at + 1;
      const head = `${String(number).padStart(4)}  `;
      if (number !== line) return `${head}${plain(text)}\n`;
      const [from, to] = [start - lineStart, end - lineStart];
      return [head, plain(text.slice(0, from)), h("mark", {}, plain(text.slice(from, to)) || " "), plain(text.slice(to)), "\n"];
    }),
  );
}
