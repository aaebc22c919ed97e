import "../../core/words.settings.ts";
import { localeNow, t, type Word } from "../../core/i18n.ts";
import {
  everyDay,
  formatCost,
  formatTokens,
  type Measure,
  sizeOf,
  tokensOf,
} from "../../core/usage.ts";
import { visible } from "../../core/visible.ts";
import type { UsageReport, UsageRow } from "../../protocol/types.gen.ts";

/** The box that bars are drawn in; it is stretched to the width there is. */
const HIGH = 100;
const STEP = 10;
/** A day that used something is seen, however little it was. */
const LEAST = 2;
/** Models with a bar of their own; the others stand in the table. */
const MODELS = 8;

function write(size: number, measure: Measure): string {
  return (measure === "cost" ? formatCost : formatTokens)(size, localeNow());
}

function dayName(day: string): string {
  const form = { day: "numeric", month: "short", timeZone: "UTC" } as const;
  return new Intl.DateTimeFormat(localeNow(), form).format(Date.parse(day));
}

/** A bar for each day; a day of which nothing is known has none. */
export function DayBars({ report, measure }: { report: UsageReport; measure: Measure }) {
  const rows = everyDay(report);
  const most = Math.max(...rows.map((row) => sizeOf(row, measure)), 0);
  const top = rows.find((row) => sizeOf(row, measure) === most);
  const label =
    most > 0 && top
      ? t("set.usage.most", { size: write(most, measure), day: dayName(top.name) })
      : t("set.usage.free");
  return (
    <figure class="day-bars">
      <figcaption class="quiet">{label}</figcaption>
      <svg
        viewBox={`0 0 ${rows.length * STEP} ${HIGH}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {rows.map((row, at) => {
          const size = sizeOf(row, measure);
          const high = most > 0 && size > 0 ? Math.max(LEAST, (size / most) * HIGH) : 0;
          return (
            <rect
              key={row.name}
              class={high > 0 ? "used" : "unused"}
              x={at * STEP + 1}
              y={HIGH - Math.max(high, 1)}
              width={STEP - 2}
              height={Math.max(high, 1)}
            >
              <title>{`${dayName(row.name)}: ${write(size, measure)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="bar-ends quiet" aria-hidden="true">
        <span>{dayName(report.first)}</span>
        <span>{dayName(report.last)}</span>
      </p>
    </figure>
  );
}

/** The models that took the most, a bar each. */
export function ModelBars({ rows, measure }: { rows: readonly UsageRow[]; measure: Measure }) {
  const sorted = [...rows].sort((a, b) => sizeOf(b, measure) - sizeOf(a, measure));
  const most = Math.max(...sorted.map((row) => sizeOf(row, measure)), 0);
  return (
    <ul class="model-bars">
      {sorted.slice(0, MODELS).map((row) => {
        const size = sizeOf(row, measure);
        return (
          <li key={row.name}>
            <span class="model-name">{visible(row.name)}</span>
            <span class="model-size">
              {measure === "cost" && row.cost == null
                ? t("set.usage.unknown")
                : write(size, measure)}
            </span>
            <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
              <rect class="unused" x="0" y="0" width="100" height="4" />
              <rect
                class="used"
                x="0"
                y="0"
                width={most > 0 ? (size / most) * 100 : 0}
                height="4"
              />
            </svg>
          </li>
        );
      })}
    </ul>
  );
}

interface TableProps {
  rows: readonly UsageRow[];
  total: UsageRow;
  head: Word;
}

/** The same in numbers. */
export function UsageTable({ rows, total, head }: TableProps) {
  const locale = localeNow();
  const isDay = head === "set.usage.day";
  const cells = (row: UsageRow) => (
    <>
      <td>{formatTokens(tokensOf(row), locale)}</td>
      <td>{row.cost == null ? t("set.usage.unknown") : formatCost(row.cost, locale)}</td>
    </>
  );
  return (
    <details class="numbers">
      <summary>{t("set.usage.table")}</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">{t(head)}</th>
            <th scope="col">{t("set.usage.tokens")}</th>
            <th scope="col">{t("set.usage.cost")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">{isDay ? dayName(row.name) : visible(row.name)}</th>
              {cells(row)}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{t("set.usage.sum")}</th>
            {cells(total)}
          </tr>
        </tfoot>
      </table>
    </details>
  );
}
