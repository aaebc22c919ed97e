import "../../core/words.push.ts";
import { useEffect, useState } from "preact/hooks";
import { localeNow, t } from "../../core/i18n.ts";
import { formatWhen } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";
import { ApiFault } from "../../platform/api.ts";
import { NoPush } from "../../platform/push.ts";
import { lastPush, lookAtPush, pushState, sendTest, turnOff, turnOn } from "../../state/push.ts";
import { Button } from "../base/Button.tsx";

/** Notifications of this device: how they stand, a switch, a test. */
export function NotificationsSection() {
  const [busy, setBusy] = useState(false);
  const [complaint, setComplaint] = useState<string | null>(null);
  const run = (work: () => Promise<void>): void => {
    setBusy(true);
    setComplaint(null);
    work()
      .catch((error: unknown) => setComplaint(explain(error)))
      .finally(() => setBusy(false));
  };
  useEffect(() => {
    if (!(__FIXTURES__ && pushState.peek())) run(lookAtPush);
  }, []);
  const state = pushState.value;
  const standing = t(state ? `push.${state}` : "push.loading");
  return (
    <div class="setting-card">
      <p>{t("push.lead")}</p>
      <p role="status">{standing}</p>
      {complaint && complaint !== standing && (
        <p class="complaint" role="alert">
          {complaint}
        </p>
      )}
      {state === "off" && (
        <Button kind="main" disabled={busy} onClick={() => run(turnOn)}>
          {t(busy ? "push.busy" : "push.enable")}
        </Button>
      )}
      {state === "on" && (
        <div class="request-buttons">
          <Button disabled={busy} onClick={() => run(turnOff)}>
            {t("push.disable")}
          </Button>
          <Button kind="main" disabled={busy} onClick={() => run(sendTest)}>
            {t(busy ? "push.busy" : "push.test")}
          </Button>
        </div>
      )}
      <LastResult />
    </div>
  );
}

/** What became of the last message to this device. */
function LastResult() {
  const last = lastPush.value;
  if (!last) return null;
  if (last.outcome === "gone") return <p class="quiet">{t("push.gone")}</p>;
  const when = formatWhen(last.time, Date.now(), localeNow());
  const message = visible(last.message ?? "");
  const word = last.outcome === "delivered" ? "push.delivered" : "push.not_delivered";
  return <p class="quiet">{t(word, { when, message })}</p>;
}

function explain(error: unknown): string {
  if (error instanceof NoPush) return t(`push.${error.why}`);
  if (error instanceof ApiFault) return t("push.failed", { message: visible(error.message) });
  throw error;
}
