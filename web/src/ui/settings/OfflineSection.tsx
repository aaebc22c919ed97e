import "../../core/words.device.ts";
import type { Signal } from "@preact/signals";
import { COPIED_MESSAGES, COPIED_SESSIONS } from "../../core/copies.ts";
import { t, type Word } from "../../core/i18n.ts";
import { canStayAwake } from "../../platform/awake.ts";
import { keepsCopies } from "../../state/copies.ts";
import { keepsAwake } from "../../state/device.ts";
import { install, installWay } from "../../state/install.ts";
import { plain } from "../../state/plain_http.ts";
import { Button } from "../base/Button.tsx";
import { InstallSteps } from "../shell/InstallSheet.tsx";

/** The app on this device: installing it, copies for moments without a server, the screen. */
export function OfflineSection() {
  return (
    <>
      <div class="setting-card">
        <h3>{t("install.title")}</h3>
        <Install />
      </div>
      <div class="setting-card">
        <h3>{t("offline.title")}</h3>
        {!plain.value ? (
          <Switch choice={keepsCopies} label="offline.keep">
            {t("offline.lead", { sessions: COPIED_SESSIONS, messages: COPIED_MESSAGES })}
          </Switch>
        ) : (
          <p class="quiet">{t("offline.insecure")}</p>
        )}
      </div>
      <div class="setting-card">
        <h3>{t("awake.title")}</h3>
        {canStayAwake ? (
          <Switch choice={keepsAwake} label="awake.keep">
            {t("awake.lead")}
          </Switch>
        ) : (
          <p class="quiet">{t("awake.cannot")}</p>
        )}
      </div>
    </>
  );
}

/** What can be done towards the home screen here. */
function Install() {
  const way = installWay.value;
  if (way === "offer") {
    return (
      <>
        <p class="quiet">{t("install.lead")}</p>
        <Button kind="main" onClick={() => void install()}>
          {t("install.do")}
        </Button>
      </>
    );
  }
  if (way === "ios") return <InstallSteps />;
  return <p class="quiet">{t(`install.${way}`)}</p>;
}

interface SwitchProps {
  choice: Signal<boolean>;
  label: Word;
  children: string;
}

function Switch({ choice, label, children }: SwitchProps) {
  const hint = `${label}-hint`;
  return (
    <label class="switch">
      <input
        type="checkbox"
        checked={choice.value}
        aria-describedby={hint}
        onChange={(event) => {
          choice.value = event.currentTarget.checked;
        }}
      />
      <span>
        {t(label)}
        <span id={hint} class="quiet">
          {children}
        </span>
      </span>
    </label>
  );
}
