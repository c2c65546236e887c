// Server-sent events through fetch: EventSource cannot send a header, and a token must not be in
// an address. Lost connections come back, with Last-Event-ID, after a growing pause.

import { Refused, headers, refused } from "./api.js";

const PAUSE_MIN_MS = 500;
const PAUSE_MAX_MS = 10_000;
const SILENT_MS = 40_000; // the control plane sends a comment when there is nothing to say

/** Parses a text/event-stream that comes in pieces, as the HTML standard defines it. */
export class EventParser {
  #rest = "";
  #data = [];
  #event = "";
  #onEvent;
  #skipLineFeed = false;
  lastEventId = "";
  retryMs = null;

  constructor(onEvent) {
    this.#onEvent = onEvent;
  }

  feed(text) {
    if (this.#skipLineFeed && text.startsWith("\n")) text = text.slice(1);
    this.#skipLineFeed = text ? text.endsWith("\r") : this.#skipLineFeed;
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line);
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.lastEventId = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
  }

  #dispatch() {
    const [data, event] = [this.#data.join("\n"), this.#event || "message"];
    const isThere = this.#data.length > 0;
    this.#data = [];
    this.#event = "";
    if (isThere) this.#onEvent({ event, data, id: this.lastEventId });
  }
}

/**
 * Follows `path` until `stop`. Of `told` is called: `event({event, data, id})` for each event;
 * `live()` whenever anything arrives; `lost(sinceMs, error)` whenever the connection is gone. What
 * would be refused again (no such job, no right) is not tried again.
 */
export class Stream {
  #stopped = new AbortController();
  #told;
  #path;
  #lastEventId;
  #pauseMs = PAUSE_MIN_MS;
  #liveAtMs = null;
  #wake = () => {};

  constructor(path, told, lastEventId = "") {
    this.#path = path;
    this.#told = told;
    this.#lastEventId = String(lastEventId);
    this.#run();
  }

  stop() {
    this.#stopped.abort();
    this.#wake();
  }

  /** Try again now instead of after the pause. */
  hurry() {
    this.#wake();
  }

  async #run() {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const error = await this.#read().then(() => null, (reason) => reason);
      if (signal.aborted) return;
      const isSilence = error?.name === "TimeoutError" && this.#liveAtMs !== null;
      this.#told.lost(isSilence ? this.#liveAtMs : Date.now(), error);
      if (error instanceof Refused && error.isFinal) return;
      await this.#pause(error?.retryAfterMs ?? this.#pauseMs);
      this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MAX_MS);
    }
  }

  async #read() {
    const given = headers({ Accept: "text/event-stream" });
    if (this.#lastEventId) given["Last-Event-ID"] = this.#lastEventId;
    const silence = new Silence(SILENT_MS);
    const signal = AbortSignal.any([this.#stopped.signal, silence.signal]);
    try {
      const answer = await fetch(this.#path, { headers: given, cache: "no-store", signal });
      if (!answer.ok) throw await refused(answer);
      const parser = new EventParser((event) => this.#told.event(event));
      parser.lastEventId = this.#lastEventId;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      this.#live();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        silence.broken();
        parser.feed(piece.value);
        this.#lastEventId = parser.lastEventId;
        this.#pauseMs = parser.retryMs ?? PAUSE_MIN_MS;
        this.#live();
      }
    } finally {
      silence.end();
    }
  }

  #live() {
    this.#liveAtMs = Date.now();
    this.#told.live();
  }

  #pause(ms) {
    const jitter = ms * (0.8 + 0.4 * Math.random());
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, jitter);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Aborts its signal when nothing has come for too long. */
class Silence {
  #controller = new AbortController();
  #limitMs;
  #timer;

  constructor(limitMs) {
    this.#limitMs = limitMs;
    this.broken();
  }

  get signal() {
    return this.#controller.signal;
  }

  broken() {
    clearTimeout(this.#timer);
    const error = new DOMException("nothing has come", "TimeoutError");
    this.#timer = setTimeout(() => this.#controller.abort(error), this.#limitMs);
  }

  end() {
    clearTimeout(this.#timer);
  }
}
