import "../../core/words.settings.ts";
import { useEffect, useState } from "preact/hooks";
import { localeNow, t, type Word } from "../../core/i18n.ts";
import { formatCost, formatTokens, type Measure, tokensOf } from "../../core/usage.ts";
import { loadUsage, type UsageReports, usage } from "../../state/usage.ts";
import { Choice } from "../base/Choice.tsx";
import { Loading } from "./Loading.tsx";
import { DayBars, ModelBars, UsageTable } from "./UsageBars.tsx";

const SPANS = ["7", "30", "90"] as const;
const MEASURES: [Measure, Word][] = [
  ["cost", "set.usage.cost"],
  ["tokens", "set.usage.tokens"],
];

/** What was used and what it cost, by day and by model. */
export function UsageSection() {
  const [span, setSpan] = useState<(typeof SPANS)[number]>("30");
  const [chosen, setMeasure] = useState<Measure | null>(null);
  const measure = chosen ?? tellingMeasure(usage.value);
  const load = (): void => void loadUsage(Number(span), Date.now());
  useEffect(load, [span]);
  return (
    <>
      <div class="setting-card choices">
        <Choice
          label={t("set.usage.span")}
          name="span"
          options={SPANS.map((days) => [days, t("set.usage.days", { count: days })] as const)}
          chosen={span}
          onChoose={setSpan}
        />
        <Choice
          label={t("set.usage.measure")}
          name="measure"
          options={MEASURES.map(([id, word]) => [id, t(word)] as const)}
          chosen={measure}
          onChoose={setMeasure}
        />
      </div>
      <Loading load={usage.value} onRetry={load}>
        {(reports) => <Reports reports={reports} measure={measure} />}
      </Loading>
    </>
  );
}

/** What bars show unasked: the cost, unless only tokens have something to show. */
function tellingMeasure(load: typeof usage.value): Measure {
  const total = load.state === "ready" ? load.value.days.total : null;
  return total && !total.cost && tokensOf(total) > 0 ? "tokens" : "cost";
}

function Reports({ reports, measure }: { reports: UsageReports; measure: Measure }) {
  const { days, models } = reports;
  const { total } = days;
  if (total.requests === 0) {
    return (
      <>
        <Today report={days} />
        <p class="quiet">{t("set.usage.none")}</p>
      </>
    );
  }
  return (
    <>
      <Today report={days} />
      <div class="setting-card">
        <h3>{t("set.usage.by_day")}</h3>
        <DayBars report={days} measure={measure} />
        <UsageTable rows={days.rows} total={total} head="set.usage.day" />
      </div>
      <div class="setting-card">
        <h3>{t("set.usage.by_model")}</h3>
        <ModelBars rows={models.rows} measure={measure} />
        <UsageTable rows={models.rows} total={models.total} head="set.usage.model" />
      </div>
      <p class="quiet">
        {t("set.usage.currency")}
        {(total.unpriced ?? 0) > 0 && ` ${t("set.usage.unpriced", { count: total.unpriced ?? 0 })}`}
      </p>
    </>
  );
}

function Today({ report }: { report: UsageReports["days"] }) {
  const locale = localeNow();
  const { total, today_cost, daily_cost } = report;
  const facts: [Word, string][] = [
    ["set.usage.total", formatCost(total.cost ?? 0, locale)],
    ["set.usage.tokens", formatTokens(tokensOf(total), locale)],
    ["set.usage.requests", new Intl.NumberFormat(locale).format(total.requests)],
    [
      "set.usage.today",
      daily_cost == null
        ? formatCost(today_cost, locale)
        : t("set.usage.of", {
            cost: formatCost(today_cost, locale),
            most: formatCost(daily_cost, locale),
          }),
    ],
  ];
  return (
    <dl class="facts">
      {facts.map(([word, text]) => (
        <div key={word}>
          <dt class="quiet">{t(word)}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}
