// The REST API as the page asks it. The token is kept for this tab only and sent as a header, never
// in an address and never in a cookie.

const TOKEN = "sluice.token";
const TIMEOUT_MS = 15_000;
const SLOW_MS = 90_000; // a check asks databases and brokers
const ATTEMPTS = 4; // while too many other inspections run
const BUSY_MS = 1_000;
const BUSY = "urn:sluice:problem:busy";

/** The control plane has answered, and it was an error; `problem` is its document. */
export class Refused extends Error {
  constructor(status, problem, retryAfterMs) {
    super(problem.detail);
    this.status = status;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the control plane only has too much to do just now. */
  get isBusy() {
    return this.problem.type === BUSY;
  }

  /** Whether asking again would only be answered the same. */
  get isFinal() {
    return this.status >= 400 && this.status < 500 && ![408, 425, 429].includes(this.status);
  }
}

/** A token is missing, unknown or expired. */
export class Unauthorised extends Refused {}

export function keepToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

export function hasToken() {
  return Boolean(sessionStorage.getItem(TOKEN));
}

/** `more`, with the token if there is one. */
export function headers(more) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: `Bearer ${token}` } : { ...more };
}

/** As `get`, of what another process looks up: that takes longer. */
export function look(path) {
  return get(path, SLOW_MS);
}

/** The JSON document at `path`; throws Refused, or what fetch throws if nobody answers. */
export async function get(path, timeoutMs = TIMEOUT_MS) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask(path, { headers: headers({ Accept: "application/json" }), timeoutMs });
    } catch (error) {
      if (!error.isBusy || attempt === ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs ?? BUSY_MS));
    }
  }
}

/** Order what `path` says, with `body` as JSON; only a page of the same origin may send that. */
export function post(path, body) {
  const given = { Accept: "application/json", "Content-Type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  return ask(path, { method: "POST", headers: headers(given), ...sent });
}

/** Remove what is at `path`. */
export async function del(path) {
  await answerOf(path, { method: "DELETE", headers: headers({ Accept: "application/json" }) });
}

/** A block of a log, and where the next one begins. */
export async function getText(path) {
  const answer = await answerOf(path, { headers: headers({ Accept: "text/plain" }) });
  return { text: await answer.text(), next: Number(answer.headers.get("Sluice-Next-Offset")) };
}

async function ask(path, given) {
  return (await answerOf(path, given)).json();
}

async function answerOf(path, { timeoutMs, ...given }) {
  const signal = AbortSignal.timeout(timeoutMs ?? (given.method === "POST" ? SLOW_MS : TIMEOUT_MS));
  const answer = await fetch(path, { ...given, cache: "no-store", signal });
  if (!answer.ok) throw await refused(answer);
  return answer;
}

/** What an answer with an error means; also one that is not ours, as of a proxy between us. */
export async function refused(answer) {
  const told = await answer.json().catch(() => null);
  const problem = {
    title: answer.statusText || `status ${answer.status}`,
    detail: `the answer was status ${answer.status}`,
    hint: "Look at the log of the control plane, or of the proxy in front of it.",
    ...(told && typeof told === "object" ? told : {}),
  };
  const seconds = Number(answer.headers.get("Retry-After"));
  const kind = answer.status === 401 ? Unauthorised : Refused;
  return new kind(answer.status, problem, seconds > 0 ? 1000 * Math.min(seconds, 60) : undefined);
}
