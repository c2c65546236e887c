// All jobs that share a topic or a table, as one picture: who writes it and who reads it.

import { h, svg } from "./dom.js";
import { plain } from "./format.js";
import { panel, wordOf } from "./parts.js";

const [WIDTH, HEIGHT, RIGHT, DOWN] = [190, 50, 60, 14];
const LETTERS = 20;
const MOST = 60; // nodes; a larger picture is not read

/** The panel; nothing where no job is connected with another. */
export function jobsGraph(jobs) {
  const { nodes, edges, left } = graphOf(jobs);
  if (!nodes.length) return null;
  const named = Object.fromEntries(nodes.map((node) => [node.id, place(node)]));
  const columns = Math.max(...nodes.map((node) => node.column)) + 1;
  const rows = Math.max(...nodes.map((node) => node.row)) + 1;
  const size = [columns * (WIDTH + RIGHT) - RIGHT, rows * (HEIGHT + DOWN) - DOWN];
  const drawing = svg(
    "svg",
    { class: "flow jobs-graph", viewBox: `-2 -2 ${size[0] + 4} ${size[1] + 4}`, width: size[0] + 4, height: size[1] + 4, role: "group", "aria-label": "Jobs, and the topics and tables between them" },
    edges.map((edge) => line(edge, named)),
    nodes.map((node) => box(node, named[node.id])),
  );
  return panel("graph", left ? `Shared topics and tables (the first ${MOST})` : "Shared topics and tables", h("div", { class: "scroll", role: "region", "aria-label": "Graph of jobs", tabindex: "0" }, drawing));
}

/** Nodes with `column` and `row`, and edges, of jobs that something connects. */
export function graphOf(jobs) {
  const things = new Map();
  const thing = (kind, title) => {
    const id = `${kind} ${title}`;
    if (!things.has(id)) things.set(id, { id, kind, title, writers: [], readers: [] });
    return things.get(id);
  };
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const edges = [];
  for (const job of jobs) {
    for (const { connector, place: at } of job.sinks ?? []) if (at) thing(kindOf(connector), at).writers.push(job.id);
    for (const { connector, place: at } of job.inputs ?? []) {
      if (connector === "shared" && byId.has(at)) edges.push({ from: at, to: job.id });
      else if (at) thing(kindOf(connector), at).readers.push(job.id);
    }
  }
  const between = [...things.values()].filter(({ writers, readers }) => new Set([...writers, ...readers]).size > 1);
  for (const { id, writers, readers } of between) {
    edges.push(...[...new Set(writers)].map((from) => ({ from, to: id })), ...[...new Set(readers)].map((to) => ({ from: id, to })));
  }
  const used = new Set(edges.flatMap(({ from, to }) => [from, to]));
  const all = [...jobs.filter((job) => used.has(job.id)).map(jobNode), ...between.map(({ id, kind, title }) => ({ id, kind, title: plain(title), tone: "rest", href: null }))];
  const nodes = all.slice(0, MOST);
  const shown = new Set(nodes.map((node) => node.id));
  const drawn = edges.filter(({ from, to }) => shown.has(from) && shown.has(to));
  return { nodes: placed(nodes, drawn), edges: drawn, left: all.length - nodes.length };
}

function jobNode(job) {
  const kind = job.shared_table ? "shared table" : "job";
  return { id: job.id, kind: `${kind} · ${plain(wordOf(job))}`, title: plain(job.name), tone: job.status?.tone ?? "busy", href: `#/jobs/${encodeURIComponent(job.id)}` };
}

function kindOf(connector) {
  if (["kafka", "topic", "upsert-kafka"].includes(connector)) return "topic";
  return connector === "mysql-cdc" ? "table" : "files";
}

/** Each node in the column behind all that lead to it; a circle ends after as many steps as nodes. */
function placed(nodes, edges) {
  const column = new Map(nodes.map((node) => [node.id, 0]));
  for (let step = 1; step < nodes.length; step += 1) {
    let isMoved = false;
    for (const { from, to } of edges) {
      if (column.get(to) > column.get(from) || column.get(from) + 1 >= nodes.length) continue;
      column.set(to, column.get(from) + 1);
      isMoved = true;
    }
    if (!isMoved) break;
  }
  const used = [...new Set(column.values())].sort((a, b) => a - b);
  const rows = new Map();
  return nodes.map((node) => {
    const at = used.indexOf(column.get(node.id));
    const row = rows.get(at) ?? 0;
    rows.set(at, row + 1);
    return { ...node, column: at, row };
  });
}

function place({ column, row }) {
  return [column * (WIDTH + RIGHT), row * (HEIGHT + DOWN)];
}

function box({ id, kind, title, tone, href }, [x, y]) {
  const inside = [
    svg("title", {}, `${kind} ${title}`),
    svg("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 8 }),
    svg("text", { class: "kind", x: x + 10, y: y + 18 }, kind),
    svg("text", { class: "name", x: x + 10, y: y + 37 }, short(title)),
  ];
  return href ? svg("a", { class: `part ${tone}`, href, "data-key": id }, inside) : svg("g", { class: `part ${tone}`, "data-key": id }, inside);
}

/** A long name by its end: of `db:3306/shop.users` the server says less than the table. */
export function short(title) {
  const end = title.length > LETTERS ? title.slice(title.lastIndexOf("/", title.length - 2) + 1) : title;
  return end.length > LETTERS ? `${end.slice(0, LETTERS - 1)}…` : end;
}

function line({ from, to }, named) {
  const [[x, y], [x2, y2]] = [named[from], named[to]];
  const [startX, startY, endX, endY] = [x + WIDTH, y + HEIGHT / 2, x2, y2 + HEIGHT / 2];
  return svg(
    "g",
    { "data-key": `${from}-${to}` },
    svg("path", { class: "edge", d: `M${startX} ${startY}C${startX + RIGHT / 2} ${startY} ${endX - RIGHT / 2} ${endY} ${endX} ${endY}` }),
    svg("path", { class: "tip", d: `M${endX} ${endY}l-9 -4v8Z` }),
  );
}
