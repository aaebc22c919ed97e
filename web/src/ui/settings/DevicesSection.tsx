import "../../core/words.device.ts";
import { useEffect, useState } from "preact/hooks";
import { localeNow, t, type Word } from "../../core/i18n.ts";
import { formatWhen } from "../../core/time.ts";
import { visible, visibleName } from "../../core/visible.ts";
import type { TokenInfo } from "../../protocol/types.gen.ts";
import { devices, loadDevices, makePairing, pairing, revokeDevice } from "../../state/devices.ts";
import { Button } from "../base/Button.tsx";
import { PairSheet } from "./PairSheet.tsx";

const KINDS: Record<string, Word> = {
  device: "devices.kind.device",
  login: "devices.kind.login",
  program: "devices.kind.program",
};

/** What is let in as this user, and how to let another device in. */
export function DevicesSection() {
  useEffect(() => {
    const look = (): void => void loadDevices();
    look();
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, []);
  return (
    <>
      <p class="quiet">{t("devices.lead")}</p>
      <Button kind="main" onClick={() => void makePairing()}>
        {t("devices.pair")}
      </Button>
      <div class="setting-card">
        <Devices />
      </div>
      {pairing.value && <PairSheet onClose={close} />}
    </>
  );
}

/** Somebody may have come in by the code meanwhile. */
function close(): void {
  pairing.value = null;
  void loadDevices();
}

function Devices() {
  const list = devices.value;
  if (list.state === "loading") {
    return (
      <p class="quiet" role="status">
        {t("chat.loading")}
      </p>
    );
  }
  if (list.state === "failed") {
    return (
      <div class="device-actions" role="alert">
        <p class="complaint">{t("devices.failed", { message: visible(list.message) })}</p>
        <Button onClick={() => void loadDevices()}>{t("retry")}</Button>
      </div>
    );
  }
  if (list.value.length === 0) return <p class="quiet">{t("devices.none")}</p>;
  return (
    <ul class="devices">
      {list.value.map((token) => (
        <li key={token.id}>
          <Device token={token} />
        </li>
      ))}
    </ul>
  );
}

function Device({ token }: { token: TokenInfo }) {
  const { id, name, kind, last_used, expires_at, current } = token;
  const kindWord = KINDS[kind];
  const kindText = kindWord ? t(kindWord) : visible(kind);
  const shown = name === kind ? kindText : visibleName(name) || kindText;
  const when = (time: string): string => formatWhen(time, Date.now(), localeNow());
  const facts = [
    kindText,
    t("devices.used", { when: when(last_used) }),
    expires_at == null ? t("devices.endless") : t("devices.until", { when: when(expires_at) }),
  ];
  return (
    <article class="device" aria-label={shown}>
      <div>
        <p>
          {shown} {current && <span class="pill">{t("devices.current")}</span>}
        </p>
        <p class="quiet">{facts.join(" · ")}</p>
      </div>
      {!current && <Revoke token={id} name={shown} />}
    </article>
  );
}

/** A second tap confirms: there is no way back but a new code. */
function Revoke({ token, name }: { token: string; name: string }) {
  const [step, setStep] = useState<"idle" | "asks" | "busy">("idle");
  const [complaint, setComplaint] = useState<string | null>(null);
  const revoke = async (): Promise<void> => {
    setStep("busy");
    setComplaint(await revokeDevice(token));
    setStep("idle");
  };
  if (step === "idle") {
    return (
      <div class="device-actions">
        {complaint && (
          <p class="complaint" role="alert">
            {visible(complaint)}
          </p>
        )}
        <Button onClick={() => setStep("asks")}>{t("devices.revoke")}</Button>
      </div>
    );
  }
  return (
    <fieldset class="device-actions">
      <legend>{t("devices.sure", { name })}</legend>
      <Button autoFocus onClick={() => setStep("idle")} disabled={step === "busy"}>
        {t("devices.keep")}
      </Button>
      <Button kind="danger" onClick={() => void revoke()} disabled={step === "busy"}>
        {t("devices.revoke.sure")}
      </Button>
    </fieldset>
  );
}
