/** What was used in the last days, by day and by model. */

import { signal } from "@preact/signals";
import { dayBefore } from "../core/usage.ts";
import { call } from "../platform/api.ts";
import type { UsageReport } from "../protocol/types.gen.ts";
import { type Load, loadOf } from "./providers.ts";

/** Both reports of one span. */
export interface UsageReports {
  days: UsageReport;
  models: UsageReport;
}

/** The reports of the span that was asked for last. */
export const usage = signal<Load<UsageReports>>({ state: "loading" });

let asked = 0;

/** Reads what the last `days` days used, today included. */
export async function loadUsage(days: number, nowMs: number): Promise<void> {
  asked += 1;
  const mine = asked;
  usage.value = { state: "loading" };
  const query = { from: dayBefore(nowMs, days - 1), to: dayBefore(nowMs, 0) };
  const report = (by: string) => call("get_usage", { query: { ...query, by } });
  const both = Promise.all([report("day"), report("model")]);
  const got = await loadOf(both.then(([byDay, byModel]) => ({ days: byDay, models: byModel })));
  if (mine === asked) usage.value = got;
}
