// Lines over time, with marks where the job changed its state. The plot is stretched to its place;
// texts stand beside it, so that they are never stretched. A table behind a summary says the same.

import { h, svg } from "./dom.js";
import { clock, plain } from "./format.js";
import { shape, table } from "./parts.js";

const [WIDTH, HEIGHT] = [1000, 100];
const ROWS = 24; // of the table: more would not be read
const BAD = ["STALLED", "FAILED"];

/**
 * A chart as a figure. `lines` are `{name, label, values}` over `atMs`, of which nothing is known
 * between points that are more than a step apart; `marks` are transitions; `write` makes text of a
 * number; `cursorMs` is the instant that somebody points at, or null.
 */
export function chart({ key, title, lines, atMs, stepMs, span, marks, write, cursorMs }) {
  const shown = lines.filter((line) => line.values.some((value) => value !== null));
  if (!shown.length) return null;
  const most = Math.max(...shown.flatMap((line) => line.values.map((value) => value ?? 0)));
  const top = rounded(most);
  const x = (at) => ((at - span.fromMs) / (span.toMs - span.fromMs)) * WIDTH;
  const y = (value) => HEIGHT - (value / top) * HEIGHT;
  const at = cursorMs === null ? atMs.length - 1 : nearest(atMs, cursorMs);
  return h(
    "figure",
    { class: "chart", "data-key": `chart-${key}` },
    h("figcaption", {}, title),
    h("ul", { class: "legend" }, shown.map((line, number) => entry(line, number, at, write))),
    h(
      "div",
      { class: "plot", "data-plot": key },
      h("span", { class: "top-of" }, write(top)),
      svg(
        "svg",
        { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
        marks.map((mark) => stroke(x(mark.at_ms), BAD.includes(mark.to) ? "mark bad" : "mark")),
        shown.map((line, number) =>
          svg("path", { class: `line line-${number}`, d: path(line.values, atMs, stepMs, x, y) }),
        ),
        cursorMs !== null && at >= 0 && stroke(x(atMs[at]), "cursor"),
      ),
    ),
    h("p", { class: "times quiet" }, ...[span.fromMs, (span.fromMs + span.toMs) / 2, span.toMs].map(tick)),
    h(
      "details",
      {},
      h("summary", {}, "As a table"),
      numbers(title, shown, atMs, write),
    ),
  );
}

/** A small line without words; what it means stands beside it. */
export function sparkline(values, label) {
  if (!values.some((value) => value !== null)) return h("span", { class: "quiet" }, "–");
  const top = rounded(Math.max(...values.map((value) => value ?? 0)));
  const x = (at) => (at / Math.max(1, values.length - 1)) * WIDTH;
  const places = values.map((_, at) => at);
  const d = path(values, places, 1, x, (value) => HEIGHT - (value / top) * HEIGHT);
  return h(
    "span",
    { class: "spark", role: "img", "aria-label": label },
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("path", { class: "line line-0", d }),
    ),
  );
}

/** The instant at a part of a plot's width. */
export function instantAt(span, share) {
  return span.fromMs + Math.min(1, Math.max(0, share)) * (span.toMs - span.fromMs);
}

/** The next of 1, 2 and 5 times a power of ten, so that the axis ends at a number to remember. */
export function rounded(most) {
  if (!(most > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return unit * [1, 2, 5, 10].find((times) => times * unit >= most * 0.999999);
}

/** The commands of a path that breaks where nothing is known; a point alone is a dot. */
export function path(values, atMs, stepMs, x, y) {
  const pieces = [];
  let isDrawing = false;
  values.forEach((value, at) => {
    if (value === null) return (isDrawing = false);
    const isNext = isDrawing && atMs[at] - atMs[at - 1] <= 1.5 * stepMs;
    pieces.push(`${isNext ? "L" : "M"}${x(atMs[at]).toFixed(1)} ${y(value).toFixed(1)}`);
    if (!isNext) pieces.push("h0.1");
    isDrawing = true;
  });
  return pieces.join("");
}

function stroke(x, name) {
  return svg("path", { class: name, d: `M${x.toFixed(1)} 0V${HEIGHT}` });
}

function entry({ name, label, values }, number, at, write) {
  const value = at < 0 ? null : values[at];
  return h(
    "li",
    { "data-key": name },
    h("span", { class: `swatch swatch-${number}`, "aria-hidden": "true" }),
    `${label} `,
    h("strong", {}, value === null || value === undefined ? "–" : write(value)),
  );
}

function tick(ms) {
  return h("span", {}, clock(ms).replace(/:\d\d$/, ""));
}

function nearest(atMs, wanted) {
  let best = -1;
  atMs.forEach((at, place) => {
    if (best < 0 || Math.abs(at - wanted) < Math.abs(atMs[best] - wanted)) best = place;
  });
  return best;
}

function numbers(title, lines, atMs, write) {
  const every = Math.max(1, Math.ceil(atMs.length / ROWS));
  const places = atMs.map((_, at) => at).filter((at) => (atMs.length - 1 - at) % every === 0);
  const cell = (value) => (value === null ? "–" : write(value));
  const rows = places.reverse().map((at) => [clock(atMs[at]), ...lines.map((line) => cell(line.values[at]))]);
  return table(title, ["Time", ...lines.map((line) => line.label)], rows);
}

/** What the marks mean, in words. */
export function marksInWords(marks) {
  if (!marks.length) return null;
  const newest = marks.slice(-3).reverse();
  return h(
    "p",
    { class: "quiet", "data-key": "marks" },
    shape("┆"),
    "Upright lines are changes of state: ",
    newest.map((mark, at) => [at > 0 && ", ", `${plain(mark.word || mark.to)} at ${clock(mark.at_ms)}`]),
    marks.length > newest.length ? ` and ${marks.length - newest.length} before.` : ".",
  );
}
