// Values as people read them. Nothing here touches the document.

const NUMBERS = new Intl.NumberFormat("en");
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const LAST_MS = 8.64e15; // of a Date
const IN_UTC = "sluice.utc";
const FAR = 9.2e18; // 64-bit bounds lose their last digits in JSON

/** Text of strangers without what could hide or reorder other text: controls and bidi marks. */
export function plain(text) {
  return String(text ?? "").replace(UNSEEN, "\u{FFFD}");
}

/** `1,234,567`; a dash if it is not known. */
export function count(value) {
  return Number.isFinite(value) ? NUMBERS.format(value) : "–";
}

/** `1 record`, `2,000 records`. */
export function many(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** `12.3 MiB`. */
export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  let unit = 0;
  for (; value >= 1024 && unit < UNITS.length - 1; unit += 1) value /= 1024;
  return `${unit ? value.toFixed(1) : value} ${UNITS[unit]}`;
}

/** `340 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.round(ms / 1000);
  const [d, hours] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24];
  const [m, s] = [Math.floor(seconds / 60) % 60, seconds % 60];
  if (d) return `${d} d ${hours} h`;
  if (hours) return `${hours} h ${m} min`;
  return m ? `${m} min ${s} s` : `${s} s`;
}

/** How long a state lasts: from a second on, for the clocks of page and control plane differ. */
export function lasting(sinceMs, nowMs) {
  return duration(Math.max(1_000, nowMs - sinceMs));
}

/** Whether times are shown in UTC; kept for the next visit. */
export function isInUtc() {
  return localStorage.getItem(IN_UTC) !== null;
}

export function showUtc(isWanted) {
  if (isWanted) localStorage.setItem(IN_UTC, "yes");
  else localStorage.removeItem(IN_UTC);
}

/** `10:42:07`, with the date in front if it is not today's. */
export function clock(ms, nowMs = Date.now()) {
  if (utc(ms) === null) return "–";
  const [day, time] = dayAndTime(ms);
  return day === dayAndTime(nowMs)[0] ? time : `${day} ${time}`;
}

function dayAndTime(ms) {
  const minutes = isInUtc() ? 0 : new Date(ms).getTimezoneOffset();
  const shifted = Math.max(-LAST_MS, Math.min(LAST_MS, ms - 60_000 * minutes));
  const [day, time] = new Date(shifted).toISOString().split("T");
  return [day, time.slice(0, 8)];
}

/** The instant in UTC, for machines and for comparing with logs; null if it is none. */
export function utc(ms) {
  const at = new Date(ms);
  return Number.isFinite(ms) && !Number.isNaN(at.getTime()) ? at.toISOString() : null;
}

/** What a channel says, in words and as the pair of FLIP-326. */
export function watermark(value) {
  if (!value) return "has not said anything yet";
  const at = value.timestamp_ms;
  const pair = `(${timestamp(at)}, ${value.use_processing_time})`;
  if (value.use_processing_time) {
    return isBound(at) ? `is in processing time ${pair}` : `is in processing time, as of ${utc(at)} ${pair}`;
  }
  if (at <= -FAR) return `has promised nothing yet ${pair}`;
  if (at >= FAR) return `has ended ${pair}`;
  return `has event time up to ${utc(at)} ${pair}`;
}

/** Whether a watermark is the first or the last that there can be, and no instant. */
export function isBound(at) {
  return Math.abs(at) >= FAR;
}

/** Whether a channel's watermark lets the valve open: processing time, or the end of its data. */
export function isComplete(value) {
  return Boolean(value) && (value.use_processing_time || value.timestamp_ms >= FAR);
}

/** A place in a binlog, or a version of a Delta table. */
export function position(place, source) {
  if (!place) return "–";
  if (source === "delta") return `version ${place.file}`;
  return source === "topic" ? `${place.pos} offsets` : `file ${place.file}, position ${place.pos}`;
}

/** Percent of a whole that may be unknown, never 100 before it is there; null if unknown. */
export function percent(done, total) {
  if (!Number.isFinite(done) || !Number.isFinite(total)) return null;
  if (total <= 0) return done >= total ? 100 : null;
  return done >= total ? 100 : Math.min(99, Math.floor((100 * done) / total));
}

function timestamp(at) {
  if (at <= -FAR) return "MIN";
  return at >= FAR ? "MAX" : String(at);
}

/** Dead letters that need an operator; an older runner reports only all of them. */
export function openLetters(counts) {
  return counts?.open_dead_letters ?? counts?.dead_letters;
}
