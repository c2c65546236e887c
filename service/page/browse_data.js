// What two views of a job's data are made of: rows of a table at a version, and dead letters.

import { get, post } from "./api.js";

const ROWS = 50;
const LETTERS = 500; // one page of the API

/** One table of a job: rows by key at a version, and what became of keys between two. */
export class TableBrowser {
  table = null;
  answer = null;
  changes = null;
  busy = false;
  error = null;
  query = { key: "", version: "", from: "", to: "" };
  #told;

  constructor(job, name, told) {
    this.job = job;
    this.name = name;
    this.path = `/v1/jobs/${encodeURIComponent(job)}/dimensions`;
    this.#told = told;
  }

  start() {
    this.#told.live();
    if (!this.table) this.#do(async () => {
      const { items } = await get(this.path);
      this.table = items.find((each) => each.table === this.name) ?? null;
      this.answer = await get(`${this.path}/${encodeURIComponent(this.name)}?limit=${ROWS}`);
    });
  }

  stop() {}

  hurry() {}

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

  #ask(into, more, query) {
    const path = `${this.path}/${encodeURIComponent(this.name)}${more}?${query}`;
    return this.#do(async () => (this[into] = await get(path)));
  }

  async #do(work) {
    if (this.busy) return;
    Object.assign(this, { busy: true, error: null });
    this.#told.changed();
    try {
      await work();
    } catch (error) {
      this.error = error;
      this.#told.failed(error);
    }
    this.busy = false;
    this.#told.changed();
  }
}

/** The dead letters of a job, the oldest first, as far as one page goes; by their reasons. */
export class DeadLetters {
  groups = null;
  hasMore = false;
  isAsked = false;
  busy = false;
  error = null;
  replayed = null;
  #told;

  constructor(job, told) {
    this.job = job;
    this.path = `/v1/jobs/${encodeURIComponent(job)}/dead-letters`;
    this.#told = told;
  }

  start() {
    this.#told.live();
    if (!this.groups) this.#do(() => this.#list());
  }

  stop() {}

  hurry() {}

  /** Whether a replay is meant. */
  ask(isAsked) {
    Object.assign(this, { isAsked, replayed: null });
    this.#told.changed();
  }

  /** Join all that were not replayed again, as `sluice dlq replay --all` does. */
  replay() {
    this.isAsked = false;
    return this.#do(async () => {
      this.replayed = await post(`${this.path}:replay`, { all: true, by: "status page" });
      await this.#list();
    });
  }

  async #list() {
    const page = await get(`${this.path}?limit=${LETTERS}&pending=true`);
    const groups = new Map();
    for (const letter of page.items) {
      if (!groups.has(letter.reason)) groups.set(letter.reason, []);
      groups.get(letter.reason).push(letter);
    }
    this.groups = [...groups].sort(([, a], [, b]) => b.length - a.length);
    this.hasMore = page.next_cursor !== null;
  }

  async #do(work) {
    if (this.busy) return;
    Object.assign(this, { busy: true, error: null });
    this.#told.changed();
    try {
      await work();
    } catch (error) {
      this.error = error;
      this.#told.failed(error);
    }
    this.busy = false;
    this.#told.changed();
  }
}
