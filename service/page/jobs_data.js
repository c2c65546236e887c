// What the view of all jobs is made of: the list, asked for anew whenever an event says so.

import { get } from "./api.js";
import { Stream } from "./stream.js";

const FIRST = 100; // soon drawn; all others follow, for trouble must not be on a later page
const PAGE = 500; // the most that one request may ask for
const SETTLE_MS = 300; // events come in bursts
const REFRESH_MS = 10_000; // reasons change without an event

/** The list of jobs, kept up to date from `start` to `stop`; `told.changed()` after each change. */
export class JobList {
  filter = { search: "", state: "" };
  jobs = null;
  hasMore = false;
  error = null;
  #limit = PAGE;
  #told;
  #stream;
  #timer = null;
  #asked = 0;

  constructor(told) {
    this.#told = told;
  }

  start() {
    this.#stream?.stop();
    this.#stream = new Stream("/v1/events", {
      event: () => this.#soon(SETTLE_MS),
      live: () => this.#told.live(),
      lost: (sinceMs, error) => this.#told.lost(sinceMs, error),
    });
    this.#ask();
  }

  /** Until when what is shown is known to be so. */
  get nowMs() {
    return this.#told.nowMs();
  }

  stop() {
    this.#stream?.stop();
    clearTimeout(this.#timer);
    this.#asked += 1;
  }

  hurry() {
    this.#stream.hurry();
    this.#ask();
  }

  /** Show what fits `filter` only. */
  choose(filter) {
    this.filter = filter;
    this.#limit = PAGE;
    this.#soon(SETTLE_MS);
  }

  more() {
    this.#limit += PAGE;
    this.#ask();
  }

  #soon(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), ms);
  }

  async #ask() {
    const asked = (this.#asked += 1);
    try {
      for (const limit of this.jobs ? [this.#limit] : [FIRST, this.#limit]) {
        const found = await this.#pages(limit);
        if (asked !== this.#asked) return;
        Object.assign(this, found, { error: null });
        this.#told.changed();
        if (!found.hasMore) break;
      }
    } catch (error) {
      if (asked !== this.#asked) return;
      if (error.isFinal) this.error = error;
      this.#told.failed(error);
    }
    this.#soon(REFRESH_MS);
  }

  async #pages(limit) {
    const jobs = [];
    let cursor = null;
    do {
      const query = new URLSearchParams({ limit: String(Math.min(limit, PAGE)), recent: "true" });
      if (this.filter.search) query.set("search", this.filter.search);
      if (cursor) query.set("cursor", cursor);
      const page = await get(`/v1/jobs?${query}`);
      jobs.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor && jobs.length < limit);
    return { jobs, hasMore: cursor !== null };
  }
}
