/** Times as people read them. */

/** Seconds and minutes of a span, such as `0:07` or `12:40`. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** Milliseconds until a time of the server's, by its own clock; 0 when it has passed. */
export function leftMs(until: string, nowMs: number, clockAheadMs: number): number {
  return Math.max(0, Date.parse(until) - nowMs - clockAheadMs);
}

/** How long something took, such as `0.4 s`, `12 s` or `3:05`. */
export function formatDuration(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 60_000 ? `${Math.round(ms / 1000)} s` : formatSpan(ms);
}

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;
const DAY = { weekday: "long", day: "numeric", month: "long" } as const;
const DATE = { day: "numeric", month: "short" } as const;

/** What writes times, by locale and fields: to make one takes longer than all else of a message. */
const writers = new Map<string, Intl.DateTimeFormat>();

function write(ms: number, locale: string, fields: Intl.DateTimeFormatOptions): string {
  const key = locale + Object.keys(fields);
  const writer = writers.get(key) ?? new Intl.DateTimeFormat(locale, fields);
  writers.set(key, writer);
  return writer.format(ms);
}

/** The clock time of an RFC 3339 time, in the reader's zone. */
export function formatClock(time: string, locale: string): string {
  return write(Date.parse(time), locale, CLOCK);
}

/** A number that is the same for two times of one day, in the reader's zone. */
export function dayOf(ms: number): number {
  const date = new Date(ms);
  return Math.floor((ms - date.getTimezoneOffset() * 60_000) / 86_400_000);
}

/** A day in words, such as `Monday, 2 March`. */
export function formatDay(time: string, locale: string): string {
  return write(Date.parse(time), locale, DAY);
}

/** When something last moved: the clock today, the date before. */
export function formatWhen(time: string, nowMs: number, locale: string): string {
  const ms = Date.parse(time);
  if (dayOf(ms) === dayOf(nowMs)) return formatClock(time, locale);
  return write(ms, locale, DATE);
}
