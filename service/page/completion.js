// Names for the editor: what a script has declared, what the catalog keeps, and which of it fits
// what is being typed.

import { post } from "./api.js";

const MOST = 8;
const DECLARES = /^\s*CREATE\b/i;
const BEING_TYPED = /(?:([\w$]+)`?\.)?`?([\w$]*)$/;
// A table of the statement, with what it is called there; time travel may stand between.
const READS = /\b(?:FROM|JOIN|INTO)\s+`?([\w$]+)`?(?:\s+FOR\s+SYSTEM_TIME\s+AS\s+OF\s+[\w$.`]+)?(?:\s+(?:AS\s+)?`?([\w$]+)`?)?/gi;
const NO_ALIAS = /^(?:ON|WHERE|FOR|LEFT|INNER|JOIN|GROUP|SELECT|UNION|LIMIT|WITH|AS)$/i;

/** The statements of `text` as ranges; `bare` is it with blanks for comments and strings. */
function statements(bare) {
  let start = 0;
  return bare.split(";").map((each) => {
    const range = [start, start + each.length];
    start += each.length + 1;
    return range;
  });
}

/** The declarations that are whole, in front of `caret` or behind it. */
export function declarations(text, bare) {
  const whole = statements(bare).slice(0, -1);
  return whole.filter(([from, to]) => DECLARES.test(bare.slice(from, to))).map(([from, to]) => `${text.slice(from, to)};`);
}

/** What completes the word before `caret`: `{ from, names }`; columns behind a dot are its table's. */
export function completions(bare, caret, tables) {
  const [, qualifier, word] = BEING_TYPED.exec(bare.slice(0, caret));
  const from = caret - word.length;
  if (!qualifier && !word) return { from, names: [] };
  const begins = (name) => name.toLowerCase().startsWith(word.toLowerCase()) && name !== word;
  const [start, end] = statements(bare).find(([, to]) => caret <= to) ?? [0, bare.length];
  const names = qualifier
    ? (tables.get(tableOf(bare.slice(start, end), qualifier)) ?? [])
    : [...tables.keys(), ...readBy(bare.slice(start, end)).flatMap(([name]) => tables.get(name) ?? [])];
  return { from, names: [...new Set(names)].filter(begins).slice(0, MOST) };
}

/** Tables that a statement names, each with what it is called there. */
function readBy(statement) {
  return [...statement.matchAll(READS)].map(([, name, alias]) => [name, alias && !NO_ALIAS.test(alias) ? alias : name]);
}

function tableOf(statement, qualifier) {
  const found = readBy(statement).find(([name, alias]) => alias === qualifier || name === qualifier);
  return found ? found[0] : qualifier;
}

/** Tables and views with their columns, as the control plane reads the declarations. */
export class Names {
  tables = new Map();
  #asked = null;

  /** Ask when the declarations are others than before; whether there is something new. */
  async learn(text, bare) {
    const declared = declarations(text, bare).join("\n");
    if (declared === this.#asked) return false;
    this.#asked = declared;
    const [tables, views] = (await answers(`${declared}\nSHOW TABLES;\nSHOW VIEWS;`)).slice(-2);
    const names = [...tables.rows, ...views.rows].map(([name]) => name);
    const questions = names.map((name) => `DESCRIBE \`${name}\`;`).join("\n");
    const described = names.length ? (await answers(`${declared}\n${questions}`)).slice(-names.length) : [];
    if (this.#asked !== declared) return false; // a later question may be answered before
    this.tables = new Map(names.map((name, at) => [name, described[at].rows.map(([column]) => column)]));
    return true;
  }
}

async function answers(sql) {
  return (await post("/v1/statements", { sql })).answers;
}
