// What the editor is made of: a script, what the control plane says of it, and rows of a preview.

import { Refused, del, get, getText, post } from "./api.js";
import { Names, completions } from "./completion.js";

const KEPT = "sluice.script"; // of this tab, so that a reload loses nothing
const POLL_MS = 700;
const LEARN_MS = 600; // without a key
const MOST_ROWS = 200;
const UNREACHABLE = { detail: "the control plane does not answer", hint: "Check that it runs, and try again." };
const ENDED = ["FINISHED", "FAILED", "STOPPED"];
const ROW = /^([+-][A-Z])(\{[^]*\})$/; // of the job of a preview
const PREVIEW = /(?:^|;)\s*(?:SELECT|WITH)\b[^;]*;?\s*$/i;

/** Scripts to begin with where the control plane has none: the first runs as it is. */
export const EXAMPLES = {
  "a stream alone": `-- Five clicks a second of a generator, half of them into the log of the job.
CREATE TABLE clicks (user_id BIGINT, item STRING) WITH (
  'connector' = 'datagen', 'rows-per-second' = '5',
  'fields.user_id.min' = '1', 'fields.user_id.max' = '100'
);
CREATE TABLE shown (user_id BIGINT, item STRING) WITH ('connector' = 'print');
INSERT INTO shown SELECT user_id, UPPER(item) FROM clicks WHERE user_id < 50;
`,
  "clicks joined with a table": `-- Five clicks a second of a generator, joined with the table shop.user_info.
-- Write host, port, user and secret of your MySQL or MariaDB.
SET 'pipeline.name' = 'first';
CREATE TABLE user_info (
  user_id BIGINT, gender STRING, name STRING, PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'mysql-cdc', 'hostname' = '127.0.0.1', 'port' = '3306',
  'username' = 'cdc', 'password' = '\${secret:mariadb}',
  'database-name' = 'shop', 'table-name' = 'user_info'
);
CREATE TABLE clicks (user_id BIGINT, item_id BIGINT, proctime AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '5',
  'fields.user_id.min' = '1', 'fields.user_id.max' = '1000',
  'fields.item_id.min' = '1', 'fields.item_id.max' = '1000000'
);
CREATE TABLE enriched (user_id BIGINT, item_id BIGINT, gender STRING, name STRING)
WITH ('connector' = 'print');
INSERT INTO enriched
SELECT c.user_id, c.item_id, u.gender, u.name FROM clicks AS c
LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
`,
};

/** One script, of a new job or of the job `id`; `told.changed()` is called after each change. */
export class Editor {
  script = "";
  busy = null; // what is being done, in words
  problem = null;
  plan = null;
  validation = null;
  migration = null;
  rows = null;
  warnings = [];
  update = null; // what an update changes
  job = null; // that is changed
  examples = EXAMPLES;
  #example; // name of the one that the address names
  completion = null; // what completes the word before the caret
  #told;
  #run = 0;
  #names = new Names();
  #learning = null;
  #caret = null;

  constructor(told, { id = null, example = null } = {}) {
    this.#told = told;
    this.id = id;
    this.#example = example;
    this.script = sessionStorage.getItem(this.#kept) ?? "";
  }

  start() {
    this.#told.live();
    if (this.id && !this.job) this.#load();
    if (!this.id) this.#askExamples();
    this.#learnSoon();
  }

  /** Scripts that run on this control plane; the one that the address names is written at once. */
  async #askExamples() {
    try {
      const { items } = await get("/v1/examples");
      const here = Object.fromEntries(items.map(({ name, sql }) => [name, sql]));
      if (items.length) this.examples = { ...here, "a stream alone": EXAMPLES["a stream alone"] };
      if (here[this.#example] && this.isExample(this.script)) this.write(here[this.#example]);
    } catch {
      return; // those of the page stay
    }
    this.#told.changed();
  }

  /** Whether nothing is lost if another text takes the place of `text`. */
  isExample(text) {
    return !text.trim() || Object.values({ ...EXAMPLES, ...this.examples }).includes(text);
  }

  get #kept() {
    return this.id ? `${KEPT}.${this.id}` : KEPT;
  }

  async #load() {
    try {
      this.job = await get(`/v1/jobs/${this.id}`);
      if (!this.script) this.script = this.job.sql;
    } catch (error) {
      this.problem = error.problem ?? UNREACHABLE;
      this.#told.failed(error);
    }
    this.#told.changed();
  }

  stop() {
    clearTimeout(this.#learning);
    this.#run += 1; // a preview that runs sees to its own end
  }

  hurry() {}

  /** The script has become `text`; what was said of it is about the one before. */
  write(text, caret = text.length) {
    if (text === this.script) return;
    this.#caret = caret;
    this.script = text;
    this.#complete();
    this.#learnSoon();
    sessionStorage.setItem(this.#kept, text);
    Object.assign(this, { problem: null, plan: null, validation: null, migration: null, update: null });
    this.#told.changed();
  }

  #complete() {
    if (this.#caret === null) return; // nobody has typed
    this.completion = completions(withoutComments(this.script), this.#caret, this.#names.tables);
  }

  /** The script with `name` for the word that is being typed, and the caret behind it. */
  completed(name) {
    const { from } = this.completion;
    const word = /^[\w$]*/.exec(this.script.slice(from))[0];
    const text = `${this.script.slice(0, from)}${name}${this.script.slice(from + word.length)}`;
    return { text, caret: from + name.length };
  }

  /** Ask for names once nobody has typed for a moment; declarations that are refused give none. */
  #learnSoon() {
    clearTimeout(this.#learning);
    this.#learning = setTimeout(async () => {
      try {
        if (!(await this.#names.learn(this.script, withoutComments(this.script)))) return;
        this.#complete();
        this.#told.changed();
      } catch {
        return;
      }
    }, LEARN_MS);
  }

  /** Whether the last statement is a bare SELECT: it has rows to show and no output. */
  get isPreview() {
    return PREVIEW.test(withoutComments(this.script));
  }

  /** Plan it, then check all that it names. */
  check() {
    return this.#do("checking the script and what it names", async () => {
      this.plan = await post("/v1/jobs:plan", { sql: this.script, name: null });
      this.#told.changed();
      this.validation = await post("/v1/jobs:validate", { sql: this.script, name: null, outside: true });
    });
  }

  /** Replace the script by the one that would be accepted; what is left is shown as findings. */
  migrate() {
    return this.#do("changing what can be changed", async () => {
      const migration = await post("/v1/jobs:migrate", { sql: this.script });
      this.write(migration.sql);
      Object.assign(this, { migration, warnings: [] });
    });
  }

  /** Submit it, and go to its job; with `append` also where another job writes to its output. */
  submit(append = false) {
    return this.#do("submitting", async () => {
      const { id } = await post("/v1/jobs", { sql: this.script, name: null, append });
      sessionStorage.removeItem(this.#kept);
      location.hash = `#/jobs/${id}`;
    });
  }

  /** Compare the plans, and the rows of past batches under both; nothing is changed. */
  previewUpdate() {
    return this.#do("joining past batches under both plans", async () => {
      this.update = await this.#change({ preview: true });
    });
  }

  /** Give the job the plan that the preview has shown. */
  applyUpdate() {
    const { plan } = this.update;
    return this.#do("changing the job", async () => {
      this.update = await this.#change({ of_plan: plan });
      sessionStorage.removeItem(this.#kept);
    });
  }

  #change(more) {
    return post(`/v1/jobs/${this.id}:update`, { sql: this.script, ...more });
  }

  /** Run the job of a bare SELECT, show its rows as they come, and remove it; as `sluice sql` does. */
  preview() {
    return this.#do("starting a preview", async (run) => {
      const job = await post("/v1/jobs", { sql: this.script, name: null });
      Object.assign(this, { rows: [], warnings: job.warnings ?? [] });
      try {
        await this.#follow(`/v1/jobs/${job.id}`, run);
      } finally {
        await del(`/v1/jobs/${job.id}`);
      }
    });
  }

  cancel() {
    this.#run += 1;
  }

  async #follow(path, run) {
    let [offset, rest] = [0, ""];
    for (;;) {
      const job = await get(path);
      this.busy = `preview: ${job.reason}`;
      const { text, next } = await getText(`${path}/log?offset=${offset}`);
      const lines = (rest + text).split("\n");
      [offset, rest] = [next, lines.pop()];
      this.rows.push(...lines.flatMap(rowOf).slice(0, MOST_ROWS - this.rows.length));
      this.#told.changed();
      if (job.error && ENDED.includes(job.state)) throw new Refused(0, { detail: job.error.message, hint: job.error.hint, type: job.error.type });
      const isRead = text === "";
      if (run !== this.#run || this.rows.length >= MOST_ROWS || (ENDED.includes(job.state) && isRead)) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async #do(busy, work) {
    if (this.busy) return;
    const run = (this.#run += 1);
    Object.assign(this, { busy, problem: null, plan: null, validation: null, migration: null, rows: null, update: null, warnings: [] });
    this.#told.changed();
    try {
      await work(run);
    } catch (error) {
      this.problem = error.problem ?? UNREACHABLE;
      this.#told.failed(error);
    }
    this.busy = null;
    this.#told.changed();
  }
}

/** A line of the log as a row, such as `+I{"id": "1"}`; nothing where it is another line. */
function rowOf(line) {
  const [, op, values] = ROW.exec(line) ?? [];
  try {
    return op ? [{ op, ...JSON.parse(values) }] : [];
  } catch {
    return [];
  }
}

/** The script with blanks in place of its comments and strings, of the same length. */
export function withoutComments(text) {
  return text.replace(/--[^\n]*|\/\*[^]*?\*\/|'(?:[^']|'')*'/g, (found) => found.replace(/[^\n]/g, " "));
}

/** From line and column, as a problem has them, to a range of the text: the word that is there. */
export function rangeOf(text, line, column) {
  const lines = text.split("\n").slice(0, line - 1);
  const lineStart = lines.reduce((sum, each) => sum + each.length + 1, 0);
  const points = Array.from(text.slice(lineStart).split("\n")[0]); // a column counts characters
  const start = lineStart + points.slice(0, column - 1).join("").length;
  const word = /^(?:[\w$]+|.)/u.exec(text.slice(start))?.[0] ?? "";
  return [Math.min(start, text.length), Math.min(start + word.length, text.length)];
}
