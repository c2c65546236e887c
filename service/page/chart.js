// Lines or stacked areas over time, on bands for the states of the job. The plot is stretched to its
// place; texts stand beside it, so that they are never stretched. A table behind a summary says the same.

import { h, svg } from "./dom.js";
import { clock, plain } from "./format.js";
import { table } from "./parts.js";

const [WIDTH, HEIGHT] = [1000, 100];
const ROWS = 24; // of the table: more would not be read
const LEAST_BAND = 3; // so that a short state is seen in a day
const BUSY = ["CREATED", "STARTING", "SNAPSHOT", "CATCHING_UP"];
const TONES = { JOINING: "good", STALLED: "warn", FAILED: "bad", ...Object.fromEntries(BUSY.map((name) => [name, "busy"])) };

/**
 * A chart as a figure. `lines` are `{name, label, values}` over `atMs`, of which nothing is known
 * between points that are more than two steps apart; `states` are `bands`; `write` makes text of a
 * number; `cursorMs` is the instant that the pointer is at, or null.
 */
export function chart({ key, title, lines, isStacked, atMs, stepMs, span, states, write, cursorMs }) {
  const shown = lines.filter((line) => line.values.some((value) => value !== null));
  if (!shown.length) return null;
  const layers = isStacked ? stacked(shown.map((line) => line.values)) : shown.map(({ values }) => ({ upper: values }));
  const top = rounded(Math.max(...layers.flatMap(({ upper }) => upper.map((value) => value ?? 0))));
  const x = (at) => ((at - span.fromMs) / (span.toMs - span.fromMs)) * WIDTH;
  const y = (value) => HEIGHT - (value / top) * HEIGHT;
  const at = cursorMs === null ? atMs.length - 1 : nearest(atMs, cursorMs);
  return h(
    "figure",
    { class: "chart", "data-key": `chart-${key}` },
    h("figcaption", {}, title),
    h(
      "ul",
      { class: isStacked ? "legend stacked" : "legend" },
      shown.map((line, number) => entry(line, number, at, write)),
      isStacked && entry({ name: "sum", label: "in all", values: layers.at(-1).upper }, null, at, write),
    ),
    h(
      "div",
      { class: "plot", "data-plot": key },
      h("span", { class: "top-of" }, write(top)),
      svg(
        "svg",
        { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
        states.map((state) => band(state, x)),
        layers.map(({ lower, upper }, number) =>
          isStacked
            ? svg("path", { class: `area area-${number}`, d: area(lower, upper, atMs, stepMs, x, y) })
            : svg("path", { class: `line line-${number}`, d: path(upper, atMs, stepMs, x, y) }),
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
  const point = (at) => `${x(atMs[at]).toFixed(1)} ${y(values[at]).toFixed(1)}`;
  return runs(values, atMs, stepMs)
    .map(([first, ...others]) => [`M${point(first)}h0.1`, ...others.map((at) => `L${point(at)}`)].join(""))
    .join("");
}

/** The commands of an area between two lists of values, which breaks as a path does. */
export function area(lower, upper, atMs, stepMs, x, y) {
  const point = (values, at, right = 0) => `${(x(atMs[at]) + right).toFixed(1)} ${y(values[at]).toFixed(1)}`;
  return runs(upper, atMs, stepMs)
    .map((run) => {
      const right = run.length === 1 ? 2 : 0; // a point alone has a width, too
      const above = run.map((at) => point(upper, at));
      const below = run.map((at) => point(lower, at, right)).reverse();
      if (right) above.push(point(upper, run[0], right), below.pop());
      return `M${point(lower, run[0])}L${[...above, ...below].join("L")}Z`;
    })
    .join("");
}

/** Lists of places whose values are known and no more than two steps apart, as the newest report may be. */
function runs(values, atMs, stepMs) {
  const found = [];
  values.forEach((value, at) => {
    if (value === null) return;
    const isNext = at > 0 && values[at - 1] !== null && atMs[at] - atMs[at - 1] <= 2.5 * stepMs;
    if (isNext) found.at(-1).push(at);
    else found.push([at]);
  });
  return found;
}

/** Each list of values on top of those before; where one is unknown it adds nothing. */
export function stacked(lists) {
  let below = lists[0].map((_, at) => (lists.some((values) => values[at] !== null) ? 0 : null));
  return lists.map((values) => {
    const lower = below;
    below = lower.map((value, at) => (value === null ? null : value + (values[at] ?? 0)));
    return { lower, upper: below };
  });
}

/** The states of a job within `span`, the oldest first, as `{fromMs, toMs, tone, word}`. */
export function bands(transitions, { fromMs, toMs }) {
  const [first] = transitions;
  const before = first?.from ? [{ at_ms: fromMs, to: first.from, word: first.word_before }] : [];
  const known = [...before, ...transitions];
  return known
    .map(({ at_ms: at, to, word }, place) => ({
      fromMs: Math.max(at, fromMs),
      toMs: Math.min(known[place + 1]?.at_ms ?? toMs, toMs),
      tone: TONES[to] ?? "rest",
      word,
    }))
    .filter((band) => band.toMs > band.fromMs);
}

function band({ fromMs, toMs, tone, word }, x) {
  const width = Math.max(LEAST_BAND, x(toMs) - x(fromMs));
  const sizes = { x: x(fromMs).toFixed(1), y: 0, width: width.toFixed(1), height: HEIGHT };
  return svg("rect", { class: `band ${tone}`, ...sizes }, svg("title", {}, plain(word)));
}

function stroke(x, name) {
  return svg("path", { class: name, d: `M${x.toFixed(1)} 0V${HEIGHT}` });
}

function entry({ name, label, values }, number, at, write) {
  const value = at < 0 ? null : values[at];
  return h(
    "li",
    { "data-key": name },
    number !== null && h("span", { class: `swatch swatch-${number}`, "aria-hidden": "true" }),
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

/** The states of each colour of the bands; a healthy job has none. */
export function legendOf(states) {
  const tones = new Map();
  for (const { tone, word } of states) tones.set(tone, (tones.get(tone) ?? new Set()).add(plain(word)));
  tones.delete("good");
  if (!tones.size) return null;
  const one = ([tone, words]) => h("span", { class: `state ${tone}`, "data-key": tone }, [...words].join(", "));
  return h("p", { class: "buttons quiet", "data-key": "bands" }, "Bands:", [...tones].map(one));
}
