import "../../core/words.device.ts";
import { useEffect, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { formatSpan } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";
import { copyText } from "../../platform/clipboard.ts";
import type { Pairing } from "../../protocol/types.gen.ts";
import { chat } from "../../state/chat.ts";
import { isOnlyHere, lookForNewDevice, makePairing, pairing } from "../../state/devices.ts";
import { Button } from "../base/Button.tsx";
import { Sheet } from "../base/Sheet.tsx";
import { useNow } from "../hooks/useNow.ts";

/** A one-time code for another device: as a picture, as a link, and to type. */
export function PairSheet({ onClose }: { onClose: () => void }) {
  const made = pairing.value;
  return (
    <Sheet title={t("devices.pair")} onClose={onClose}>
      {made?.state === "ready" && <Code made={made.value} />}
      {made?.state === "failed" && (
        <div class="pairing" role="alert">
          <p class="complaint">{t("devices.pair.failed", { message: visible(made.message) })}</p>
          <Button onClick={() => void makePairing()}>{t("retry")}</Button>
        </div>
      )}
      {made?.state === "loading" && (
        <p class="quiet" role="status">
          {t("chat.loading")}
        </p>
      )}
    </Sheet>
  );
}

/** How often the server is asked whether the code was used, in milliseconds. */
const LOOK_MS = 3_000;

function Code({ made }: { made: Pairing }) {
  const now = useNow(true);
  useEffect(() => {
    const timer = setInterval(() => void lookForNewDevice(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const ahead = chat.value?.clockAheadMs.value ?? 0;
  const leftMs = Date.parse(made.expires_at) - now - ahead;
  if (leftMs <= 0) {
    return (
      <div class="pairing">
        <p role="status">{t("devices.pair.over")}</p>
        <Button kind="main" onClick={() => void makePairing()}>
          {t("devices.pair.again")}
        </Button>
      </div>
    );
  }
  const onlyHere = isOnlyHere(made.url);
  return (
    <div class="pairing">
      <p>{t(onlyHere ? "devices.pair.here" : "devices.pair.lead")}</p>
      {made.qr && !onlyHere && (
        <img
          class="qr"
          src={`data:image/svg+xml,${encodeURIComponent(made.qr)}`}
          alt={t("devices.pair.qr")}
        />
      )}
      <p class="pairing-code">{made.code}</p>
      <p class="quiet">{t("devices.pair.left", { time: formatSpan(leftMs) })}</p>
      <Copy text={made.url} />
      <p class="quiet">{t("devices.pair.warn")}</p>
    </div>
  );
}

function Copy({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  return (
    <Button
      onClick={() => {
        void copyText(text).then(setDone);
      }}
    >
      {t(done ? "copied" : "devices.pair.copy")}
    </Button>
  );
}
