// What the view of one job is made of: its stream of transitions and reports, what it waits for, and
// what is behind a tab once that is opened.

import { get, getText, look } from "./api.js";
import { RANGES, withLive } from "./numbers.js";
import { Orders } from "./orders.js";
import { Pace } from "./pace.js";
import { Stream } from "./stream.js";

const WAIT_SETTLE_MS = 200;
const WAIT_REFRESH_MS = 5_000;
const LEAST_DRAWN_MS = 120_000;
const BATCHES = 10;
const LOG_LINES = 200;
const ROWS = 10;

/** What is known from `sinceMs` on; the span begins with the first point, so that a young job fills it. */
export function within({ at_ms: atMs, series, transitions, ...more }, sinceMs, toMs) {
  const known = atMs.findIndex((at) => at >= sinceMs);
  const first = known < 0 ? atMs.length : known; // a step may begin before the time that was asked for
  const fromMs = Math.max(sinceMs, Math.min(atMs[first] ?? toMs, toMs - LEAST_DRAWN_MS));
  return {
    ...more,
    at_ms: atMs.slice(first),
    series: Object.fromEntries(Object.entries(series).map(([name, values]) => [name, values.slice(first)])),
    transitions: transitions.filter((mark) => mark.at_ms >= fromMs),
    span: { fromMs, toMs },
  };
}

/** One job, followed from `start` to `stop`; `told.changed()` is called after each change. */
export class JobWatch {
  job = null;
  sql = null;
  history = [];
  wait = null;
  batches = null;
  batchesAtMs = null;
  batchesError = null;
  isAskingBatches = false;
  numbersError = null;
  range = "hour";
  tab = "overview";
  log = null;
  logError = null;
  outputs = []; // each with its columns
  rows = null; // the newest of the output
  rowsError = null;
  letter = null; // the oldest open dead letter, while the state speaks of them
  cursorMs = null; // the instant that somebody points at in a chart
  isRemoved = false;
  error = null;
  statusAtMs = null;
  orders;
  #past = null; // numbers as the control plane has stored them
  #path;
  #told;
  #stream;
  #paces = new Map();
  #timers = {};
  #letterOf = null; // the counts of dead letters at which the oldest open one was looked up
  #isStopped = true;

  constructor(id, told) {
    this.#path = `/v1/jobs/${encodeURIComponent(id)}`;
    this.#told = told;
    this.orders = new Orders(this.#path, {
      changed: () => this.#changed(),
      done: (job) => this.#take(job),
      failed: (error) => this.#told.failed(error),
    });
  }

  /** Begin, or go on behind the newest transition that is known. */
  start() {
    this.#stream?.stop();
    this.#isStopped = false;
    const stream = {
      event: (event) => this.#event(event),
      live: () => this.#told.live(),
      lost: (sinceMs, error) => this.#lost(sinceMs, error),
    };
    this.#stream = new Stream(`${this.#path}/events`, stream, this.history.at(-1)?.sequence);
    if (this.sql === null) this.#askScript();
    this.#askWait();
    this.#askNumbers();
  }

  /** Show what is behind a tab. */
  open(tab) {
    this.tab = tab;
    if (tab === "batches") this.askBatches();
    if (tab === "log") this.askLog();
    if (tab === "output") this.askRows();
    this.#changed();
  }

  /** The end of the runner's log. */
  async askLog() {
    try {
      const { text } = await getText(`${this.#path}/log`);
      Object.assign(this, { log: text.split("\n").slice(-LOG_LINES).join("\n"), logError: null });
    } catch (error) {
      this.#failed(error, () => (this.logError = error));
    }
    this.#changed();
  }

  /** The columns of all outputs, and the newest rows of the first one that is a Delta table. */
  async askRows() {
    get(`${this.#path}/outputs`).then(({ items }) => {
      this.outputs = items;
      this.#changed();
    }, () => {}); // an older control plane does not say them
    const sink = this.job?.sinks?.find(({ connector }) => connector === "delta");
    if (!sink) return;
    try {
      Object.assign(this, { rows: await look(`${this.#path}/preview?limit=${ROWS}&sink=${sink.insert}`), rowsError: null });
    } catch (error) {
      this.#failed(error, () => (this.rowsError = error));
    }
    this.#changed();
  }

  /** Show this much of the past. */
  choose(range) {
    this.range = range;
    this.#askNumbers();
  }

  /** An instant of the charts is pointed at; null when none is. */
  point(atMs) {
    if (this.cursorMs === atMs) return;
    this.cursorMs = atMs;
    this.#changed();
  }

  /** Until when what is shown is known to be so. */
  get nowMs() {
    return this.#told.nowMs();
  }

  /** The series of the charts, up to the newest report. */
  get numbers() {
    return withLive(this.#past, this.job, this.statusAtMs);
  }

  stop() {
    this.#isStopped = true;
    this.#stream?.stop();
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
  }

  hurry() {
    this.#stream.hurry();
    this.#askWait();
  }

  /** How fast the snapshot of a table goes. */
  pace(name) {
    return this.#paces.get(name)?.view() ?? {};
  }

  /** The newest batches; another process looks them up. */
  async askBatches() {
    this.isAskingBatches = true;
    try {
      const page = await look(`${this.#path}/batches?limit=${BATCHES}`);
      Object.assign(this, { batches: page.items, batchesAtMs: Date.now(), batchesError: null });
    } catch (error) {
      this.#failed(error, () => (this.batchesError = error));
    }
    this.isAskingBatches = false;
    this.#changed();
  }

  #event({ event, data }) {
    if (event === "removed") {
      this.isRemoved = true;
      this.stop();
      this.#told.ended();
    } else if (event === "transition") {
      const told = JSON.parse(data);
      const isNew = told.sequence > (this.history.at(-1)?.sequence ?? 0);
      if (isNew) this.history.push(told);
    } else if (event === "status") {
      this.#take(JSON.parse(data));
    }
    this.#told.changed();
  }

  #take(job) {
    this.job = job;
    this.statusAtMs = Date.now();
    for (const { name, snapshot } of job.dimensions ?? []) {
      if (!this.#paces.has(name)) this.#paces.set(name, new Pace());
      this.#paces.get(name).note(snapshot, this.statusAtMs);
    }
    if (!this.#timers.soon) {
      this.#later("soon", WAIT_SETTLE_MS, () => {
        this.#timers.soon = null;
        this.#askWait();
      });
    }
  }

  /** The oldest open dead letter; another process looks it up, so only when the counts can have changed it. */
  async #askLetter() {
    const { status, probe } = this.job ?? {};
    const { dead_letters: all, replayed_dead_letters: replayed = 0, discarded_dead_letters: discarded = 0 } = probe ?? {};
    const settled = replayed + discarded;
    const before = this.#letterOf;
    const isSame = settled === before?.settled && (this.letter !== null || all === before.all);
    if (status?.action !== "dead-letters" || isSame) return;
    this.#letterOf = { settled, all };
    try {
      const { items } = await look(`${this.#path}/dead-letters?pending=true&limit=1`);
      this.letter = items[0] ?? null;
    } catch (error) {
      if (!error.problem) this.#letterOf = null; // no answer: ask again
      this.#failed(error, () => (this.letter = null));
    }
    this.#changed();
  }

  async #askWait() {
    clearTimeout(this.#timers.wait);
    try {
      this.wait = await get(`${this.#path}/explain-wait`);
    } catch (error) {
      this.#failed(error, () => (this.wait = null)); // the job's own reason is shown instead
    }
    this.#changed();
    this.#askLetter();
    this.#later("wait", WAIT_REFRESH_MS, () => this.#askWait());
  }

  async #askNumbers() {
    clearTimeout(this.#timers.numbers);
    const { range } = this;
    const { lengthMs, step, refreshMs } = RANGES[range];
    const toMs = Date.now();
    const sinceMs = toMs - lengthMs;
    try {
      const past = await get(`${this.#path}/history?since=${sinceMs}&step=${step}`);
      if (range !== this.range) return; // another one was chosen meanwhile
      this.#past = within(past, sinceMs, toMs);
      this.numbersError = null;
    } catch (error) {
      this.#failed(error, () => (this.numbersError = error));
    }
    this.#changed();
    this.#later("numbers", refreshMs, () => this.#askNumbers());
  }

  async #askScript() {
    try {
      const found = await get(this.#path);
      this.sql = found.sql;
      if (this.job === null) this.#take(found);
    } catch (error) {
      this.#failed(error, () => this.#later("script", WAIT_REFRESH_MS, () => this.#askScript()));
    }
    this.#changed();
  }

  #failed(error, otherwise) {
    if (this.#isStopped) return;
    this.#told.failed(error);
    if (error.problem) otherwise();
  }

  #lost(sinceMs, error) {
    if (error?.isFinal) this.error = error;
    this.#told.lost(sinceMs, error);
  }

  #changed() {
    if (!this.#isStopped) this.#told.changed();
  }

  #later(name, ms, task) {
    clearTimeout(this.#timers[name]);
    if (!this.#isStopped) this.#timers[name] = setTimeout(task, ms);
  }
}
