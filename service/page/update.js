// What an update of a job changes: its plan, and the rows of past batches.

import { h } from "./dom.js";
import { count, many, plain } from "./format.js";
import { panel, said, shape, table } from "./parts.js";

/** The answer to a preview or an update as nodes; `busy` while a request runs. */
export function updateView({ plan, new_plan: next, applied, accepted, changes, rows }, busy) {
  return [
    panel(
      "changes",
      applied ? `Changed: plan ${count(plan)}` : "What changes",
      applied && h("p", {}, "The runner takes the plan after its batch. Copies, offsets and output stay."),
      changes.length ? h("ul", { class: "plan" }, changes.map(change)) : h("p", {}, `Nothing changes: the job has plan ${count(plan)}.`),
      accepted && !applied && changes.length > 0 && h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", "data-action": "apply-update", disabled: Boolean(busy) }, `Change the job to plan ${count(next)}`),
      ),
    ),
    rows.map((each, at) => previewOf(each, at)),
  ];
}

function change({ of, accepted, reason, hint }) {
  return h(
    "li",
    {},
    h("span", { class: `state ${accepted ? "good" : "bad"}` }, shape(accepted ? "✓" : "✕"), accepted ? "accepted" : "refused"),
    " ",
    said(of),
    reason && h("p", { class: "fault-message" }, said(reason)),
    hint && h("p", { class: "hint" }, h("strong", {}, "What to do: "), said(hint)),
  );
}

/** Rows of the newest batches under both plans. */
function previewOf(rows, at) {
  const dead = rows.dead_letters_after - rows.dead_letters_before;
  const counted = [
    ["changed", rows.rows_changed],
    ["added", rows.rows_added],
    ["removed", rows.rows_removed],
    ["more dead letters", dead > 0 ? dead : 0],
    ["fewer dead letters", dead < 0 ? -dead : 0],
  ];
  const text = counted.filter(([, number]) => number > 0).map(([name, number]) => `${count(number)} ${name}`);
  const pair = (each) => [said(each.place), side(each.before), side(each.after)];
  return panel(
    `preview-${at}`,
    ["Output ", said(rows.sink_table)],
    rows.batches > 0 && h(
      "p",
      {},
      `The newest ${count(rows.batches)} ${rows.batches === 1 ? "batch" : "batches"} joined again, ${many(rows.records, "record")}: `,
      text.length ? `of ${many(rows.rows_before, "row")} ${text.join(", ")}.` : "every row stays as it is.",
    ),
    rows.reason && h("p", { class: "quiet" }, said(rows.reason)),
    rows.examples.length > 0 && table("Rows that differ", ["Record", "Now", "After the update"], rows.examples.map(pair)),
  );
}

function side(row) {
  return row === null ? "–" : h("code", {}, plain(JSON.stringify(row)));
}
