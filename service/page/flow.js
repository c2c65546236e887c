// The job as one picture: sources, channels, valve, index, batches, sinks, and what passes between
// them. It is drawn for the width there is: from left to right, or on a phone from top to bottom.

import { svg } from "./dom.js";
import { flowParts } from "./flow_parts.js";
import { newest } from "./numbers.js";
import { panel } from "./parts.js";

const NARROW = window.matchMedia("(max-width: 56rem)");
const ROOM = 60; // for words between two parts
const WIDE = { part: [176, 62], gap: [126, 34], tables: 3, letters: 17 };
const PHONE = { part: [150, 58], gap: [26, 46], tables: 1, letters: 14 };

/** The panel; `watch` is a `JobWatch`. */
export function flow(watch) {
  const { job } = watch;
  const isNarrow = NARROW.matches;
  const form = isNarrow ? PHONE : WIDE;
  const { parts, edges, lanes } = flowParts(job, newest(watch.numbers), { ...form, nowMs: watch.nowMs });
  const place = (part) => at(part, form, isNarrow);
  const [width, height] = size(lanes, form, isNarrow);
  const named = Object.fromEntries(parts.map((part) => [part.id, place(part)]));
  return panel(
    "flow",
    "Data flow",
    svg(
      "svg",
      {
        class: ["flow", isNarrow && "narrow", lanes === 1 && "alone"].filter(Boolean).join(" "),
        viewBox: `-2 -11 ${width + 4} ${height + 13}`, // room for a badge on the upper edge
        role: "group",
        "aria-label": "From the sources to the output; each part leads to its numbers",
      },
      edges.map((edge) => line(edge, named, form)),
      parts.map((part) => box(part, place(part), form, job.id)),
    ),
  );
}

function at({ lane, step }, { part: [width, height], gap: [right, down] }, isNarrow) {
  const [column, row] = isNarrow ? [lane, step] : [step, lane];
  return [column * (width + right), row * (height + down)];
}

function size(lanes, { part: [width, height], gap: [right, down] }, isNarrow) {
  const [columns, rows] = isNarrow ? [lanes, 4] : [4, lanes];
  return [columns * (width + right) - right, rows * (height + down) - down];
}

function box({ id, kind, title, lines, tone, to, badge }, [x, y], { part: [width, height], letters }, job) {
  const says = [title, ...lines, badge].filter(Boolean).join(", ");
  return svg(
    "a",
    { class: `part ${tone}`, href: `#/jobs/${job}`, "data-action": "goto", "data-to": to, "data-key": id },
    svg("title", {}, says),
    svg("rect", { x, y, width, height, rx: 8 }),
    svg("text", { class: "kind", x: x + 10, y: y + 16 }, kind),
    svg("text", { class: "name", x: x + 10, y: y + 34 }, short(title, letters)),
    svg("text", { x: x + 10, y: y + 51 }, fitting(lines, Math.round(letters * 1.38))),
    badge && [
      svg("rect", { class: "badge", x: x + width - 8 - 7 * badge.length, y: y - 9, width: 7 * badge.length, height: 16, rx: 8 }),
      svg("text", { class: "badge", x: x + width - 8 - 3.5 * badge.length, y: y + 3 }, badge),
    ],
  );
}

function line({ from, to, label, isMoving }, named, { part: [width, height], gap }) {
  const [start, end] = [named[from], named[to]];
  const isRight = end[0] > start[0] && end[1] === start[1];
  const isDown = end[0] === start[0];
  const name = isMoving ? "edge moves" : "edge";
  const [x, y, x2, y2] = isRight
    ? [start[0] + width, start[1] + height / 2, end[0], end[1] + height / 2]
    : isDown
      ? [start[0] + width / 2, start[1] + height, end[0] + width / 2, end[1]]
      : bent(start, end, width, height);
  return svg(
    "g",
    { "data-key": `${from}-${to}` },
    svg("path", { class: name, d: `M${x} ${y}L${x2} ${y2}` }),
    svg("path", { class: "tip", d: tip(x2, y2, Math.atan2(y2 - y, x2 - x)) }),
    isRight ? gap[0] >= ROOM && beside(label, (x + x2) / 2, y) : below(label, x, y + gap[1] / 2 + 4, gap[0] < ROOM && start[0] > 0),
  );
}

/** Above the line, and what comes behind the first comma below it. */
function beside(label, x, y) {
  const [first, ...rest] = label.split(", ");
  return [says(first, x, y - 8, "says mid"), says(rest.join(", "), x, y + 18, "says mid")];
}

/** Beside a line that goes down: on its inner side, so that nothing is cut off on a phone. */
function below(label, x, y, isLeft) {
  return isLeft ? says(label, x - 8, y, "says before") : says(label, x + 8, y, "says");
}

function says(text, x, y, name) {
  return text ? svg("text", { class: name, x, y }, text) : null;
}

/** From one lane to another: between the sides that face each other. */
function bent(start, end, width, height) {
  if (end[1] > start[1] && end[0] > start[0]) return [start[0] + width, start[1] + height, end[0], end[1]];
  if (end[1] === start[1]) return [start[0] + width, start[1] + height / 2, end[0], end[1] + height / 2];
  return [start[0] + width / 2, start[1] + height, end[0] + width / 2, end[1]];
}

function tip(x, y, angle) {
  const wing = (turn) => `${(x - 9 * Math.cos(angle + turn)).toFixed(1)} ${(y - 9 * Math.sin(angle + turn)).toFixed(1)}`;
  return `M${x} ${y}L${wing(0.45)}L${wing(-0.45)}Z`;
}

/** As many of the lines as there is room for: a number that is cut says another one. */
function fitting(lines, letters) {
  const fit = lines.filter((_, at) => at === 0 || lines.slice(0, at + 1).join(" · ").length <= letters);
  return short(fit.join(" · "), letters);
}

function short(text, letters) {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}
