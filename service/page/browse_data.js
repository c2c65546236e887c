// What two views of a job's data are made of: rows of a table at a version, and dead letters.

import { look, post } from "./api.js";
import { plain } from "./format.js";

const ROWS = 50;
const LETTERS = 500; // one page of the API

/** Asks one thing at a time; `told` hears of what changes. */
class Asker {
  busy = false;
  error = null;
  told;

  constructor(told) {
    this.told = told;
  }

  stop() {}

  hurry() {}

  async do(work) {
    if (this.busy) return;
    Object.assign(this, { busy: true, error: null });
    this.told.changed();
    try {
      await work();
    } catch (error) {
      this.error = error;
      this.told.failed(error);
    }
    this.busy = false;
    this.told.changed();
  }
}

/** One table of a job: rows by key at a version, what became of keys between two, and of one key. */
export class TableBrowser extends Asker {
  table = null;
  answer = null;
  changes = null;
  history = null;
  query = { key: "", version: "", from: "", to: "", of: "" };

  constructor(job, name, told) {
    super(told);
    this.job = job;
    this.name = name;
    this.path = `/v1/jobs/${encodeURIComponent(job)}/dimensions`;
  }

  start() {
    this.told.live();
    if (!this.table) this.do(async () => {
      const { items } = await look(this.path);
      this.table = items.find((each) => each.table === this.name) ?? null;
      this.answer = await look(`${this.path}/${encodeURIComponent(this.name)}?limit=${ROWS}`);
    });
  }

  /** Rows with a key, of a version; of all keys and the newest version where they are empty. */
  look({ key, version }) {
    Object.assign(this.query, { key, version });
    const query = new URLSearchParams({ limit: String(ROWS) });
    if (key) query.set("key", key);
    if (version) query.set("version", version);
    return this.#ask("answer", "", query);
  }

  more() {
    const query = new URLSearchParams({ limit: String(ROWS), cursor: this.answer.next_cursor });
    return this.#ask("answer", "", query);
  }

  compare({ from, to }) {
    Object.assign(this.query, { from, to });
    const query = new URLSearchParams({ limit: String(ROWS), from });
    if (to) query.set("to", to);
    return this.#ask("changes", "/changes", query);
  }

  /** Which versions have changed the row of a key. */
  follow({ of }) {
    Object.assign(this.query, { of });
    return this.#ask("history", "/history", new URLSearchParams({ limit: String(ROWS), key: of }));
  }

  earlier() {
    const query = new URLSearchParams({ limit: String(ROWS), cursor: this.history.next_cursor });
    return this.#ask("history", "/history", query);
  }

  #ask(into, more, query) {
    const path = `${this.path}/${encodeURIComponent(this.name)}${more}?${query}`;
    return this.do(async () => (this[into] = await look(path)));
  }
}

/** The dead letters of a job, the oldest first, as far as one page goes; by their reasons. */
export class DeadLetters extends Asker {
  groups = null;
  hasMore = false;
  isAsked = false;
  replayed = null;
  discarded = null;
  matching = ""; // part of the reasons that are shown

  constructor(job, told) {
    super(told);
    this.job = job;
    this.path = `/v1/jobs/${encodeURIComponent(job)}/dead-letters`;
  }

  start() {
    this.told.live();
    if (!this.groups) this.do(() => this.#list());
  }

  /** Whether a replay is meant. */
  ask(isAsked) {
    Object.assign(this, { isAsked, replayed: null, discarded: null });
    this.told.changed();
  }

  /** Show only letters whose reason contains `matching`. */
  filter({ matching }) {
    Object.assign(this, { matching, groups: null, isAsked: false, replayed: null, discarded: null });
    return this.do(() => this.#list()); // no list of another filter is shown
  }

  /** Join all that are shown again, as `sluice dlq replay --matching` or `--all` does. */
  replay() {
    this.isAsked = false;
    return this.#replay(this.#chosen);
  }

  get #chosen() {
    return this.matching ? { all: true, matching: this.matching } : { all: true };
  }

  /** Join one letter again with another value. */
  correct(letter, value) {
    return this.#replay({ records: [{ ...nameOf(letter), value }] });
  }

  #replay(chosen) {
    return this.do(async () => {
      this.replayed = await post(`${this.path}:replay`, { ...chosen, by: "status page" });
      await this.#list();
    });
  }

  /** Discard the open records of one group, or all that the filter shows: they get no rows, and replays skip them. */
  discard(group, reason) {
    const chosen = group === null ? this.#chosen : { records: this.groups[group][1].map(nameOf) };
    Object.assign(this, { isAsked: false, replayed: null, discarded: null });
    return this.do(async () => {
      this.discarded = await post(`${this.path}:discard`, { ...chosen, reason, by: "status page" });
      await this.#list();
    });
  }

  async #list() {
    const query = new URLSearchParams({ limit: String(LETTERS), pending: "true" });
    if (this.matching) query.set("matching", this.matching);
    const page = await look(`${this.path}?${query}`);
    const groups = new Map();
    for (const letter of page.items) {
      if (!groups.has(letter.reason)) groups.set(letter.reason, []);
      groups.get(letter.reason).push(letter);
    }
    this.groups = [...groups].sort(([, a], [, b]) => b.length - a.length);
    this.hasMore = page.next_cursor !== null;
  }
}

/** How commands name the record of a letter. */
export function placeOf({ place, partition, offset }) {
  return plain(place ?? `${partition}/${offset}`);
}

function nameOf({ topic, partition, offset, batch }) {
  return { topic: topic ?? null, partition, offset, batch };
}
