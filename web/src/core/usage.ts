/** What was used, made ready for bars. */

import type { UsageReport, UsageRow } from "../protocol/types.gen.ts";

/** What a bar is long by. */
export type Measure = "cost" | "tokens";

const DAY_MS = 86_400_000;

/** The day that is `days` before a moment, as `YYYY-MM-DD`, UTC. */
export function dayBefore(nowMs: number, days: number): string {
  return new Date(nowMs - days * DAY_MS).toISOString().slice(0, 10);
}

/** All tokens of a row, read, written or out of the cache. */
export function tokensOf({ usage }: UsageRow): number {
  const { input = 0, output = 0, cache_read = 0, cache_write = 0 } = usage;
  return input + output + cache_read + cache_write;
}

/** How long a row's bar is. */
export function sizeOf(row: UsageRow, measure: Measure): number {
  return measure === "cost" ? (row.cost ?? 0) : tokensOf(row);
}

/** The days of a report, oldest first; those with nothing are there, too. */
export function everyDay(report: UsageReport): UsageRow[] {
  const known = new Map(report.rows.map((row) => [row.name, row]));
  const rows: UsageRow[] = [];
  const last = Date.parse(report.last);
  for (let at = Date.parse(report.first); at <= last; at += DAY_MS) {
    const name = new Date(at).toISOString().slice(0, 10);
    rows.push(known.get(name) ?? { name, requests: 0, usage: {}, cost: 0 });
  }
  return rows;
}

/** An amount of US dollars as the reader writes it; of small ones more digits. */
export function formatCost(cost: number, locale: string): string {
  const digits = cost > 0 && cost < 0.1 ? 4 : 2;
  return new Intl.NumberFormat(locale, {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(cost);
}

/** A number of tokens, such as `12K`. */
export function formatTokens(count: number, locale: string): string {
  return new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 }).format(
    count,
  );
}
