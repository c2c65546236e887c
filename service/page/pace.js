// How fast a snapshot goes, from what was reported in the last minute.

const WINDOW_MS = 60_000;
const LEAST_MS = 3_000; // less says nothing

/** Rows over time of one table's copy. */
export class Pace {
  #samples = [];
  #total = null;

  /** Note a report; a copy that began anew forgets what was before. */
  note({ rows_done: rows, rows_total: total }, atMs) {
    const last = this.#samples.at(-1);
    if (last && rows < last.rows) this.#samples = [];
    this.#samples.push({ rows, atMs });
    this.#samples = this.#samples.filter((sample) => sample.atMs >= atMs - WINDOW_MS);
    this.#total = total;
  }

  /** Rows a second and milliseconds that are left; nothing as long as it cannot be said. */
  view() {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || last.atMs - first.atMs < LEAST_MS || last.rows === first.rows) return {};
    if (this.#total === null || last.rows >= this.#total) return {};
    const rowsPerSecond = (1000 * (last.rows - first.rows)) / (last.atMs - first.atMs);
    return { rowsPerSecond, leftMs: (1000 * (this.#total - last.rows)) / rowsPerSecond };
  }
}
