import "../../core/words.settings.ts";
import { useEffect, useState } from "preact/hooks";
import { localeNow, t, tMaybe, type Word } from "../../core/i18n.ts";
import { visible, visibleName } from "../../core/visible.ts";
import { call } from "../../platform/api.ts";
import { copyText } from "../../platform/clipboard.ts";
import type { Capabilities } from "../../protocol/types.gen.ts";
import { identity } from "../../state/account.ts";
import { serverBuild } from "../../state/chat.ts";
import { connectionLog, type Transition } from "../../state/connection_log.ts";
import { type Load, loadOf } from "../../state/providers.ts";
import { Button } from "../base/Button.tsx";
import { Loading } from "./Loading.tsx";

/** So much of a build tells two apart. */
const BUILD_CHARS = 12;

/** Which server and which page this is, and how their connection went. */
export function AboutSection() {
  const [server, setServer] = useState<Load<Capabilities>>({ state: "loading" });
  const load = async (): Promise<void> => {
    setServer({ state: "loading" });
    setServer(await loadOf(call("capabilities")));
  };
  useEffect(() => void load(), []);
  return (
    <>
      <Loading load={server} onRetry={() => void load()}>
        {({ server_version, contract }) => <Builds version={server_version} contract={contract} />}
      </Loading>
      <ConnectionLog />
    </>
  );
}

function ownBuild(): string {
  return document.querySelector('meta[name="towline-build"]')?.getAttribute("content") ?? "";
}

function Builds({ version, contract }: { version: string; contract: string }) {
  const own = ownBuild();
  const held = serverBuild.value;
  const isOld = held !== null && own !== "" && !held.startsWith(own);
  const facts: [Word, string][] = [
    ["set.about.server", visibleName(identity.value?.server_name ?? "")],
    ["set.about.version", visible(version)],
    ["set.about.contract", visible(contract)],
    ["set.about.build", own],
    ["set.about.held", held?.slice(0, BUILD_CHARS) ?? t("set.about.unknown")],
  ];
  return (
    <div class="setting-card">
      <dl class="pairs">
        {facts.map(([word, text]) => (
          <div key={word}>
            <dt>{t(word)}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <p role="status">{t(isOld ? "link.update" : held ? "set.about.current" : "set.about.ask")}</p>
      <div>
        <Button kind={isOld ? "main" : "plain"} onClick={() => location.reload()}>
          {t("link.reload")}
        </Button>
      </div>
    </div>
  );
}

function lineOf(entry: Transition): string {
  const time = new Date(entry.atMs).toISOString();
  const failures = entry.failures > 0 ? ` failures=${entry.failures}` : "";
  const failed = entry.failed ? ` why=${entry.failed}` : "";
  return `${time} ${entry.session} ${entry.phase} attempt=${entry.attempt}${failures}${failed}`;
}

function ConnectionLog() {
  const [copied, setCopied] = useState<boolean | null>(null);
  const entries = connectionLog.value;
  const clock = new Intl.DateTimeFormat(localeNow(), { timeStyle: "medium" });
  const copy = async (): Promise<void> => setCopied(await copyText(entries.map(lineOf).join("\n")));
  return (
    <>
      <h3>{t("set.log")}</h3>
      {entries.length === 0 ? (
        <p class="quiet">{t("set.log.none")}</p>
      ) : (
        <>
          <p class="quiet">{t("set.log.about", { count: entries.length })}</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls by itself must be reachable by keys */}
          <section class="log-lines" tabIndex={0} aria-label={t("set.log")}>
            <ol>
              {entries.toReversed().map((entry) => (
                <li key={`${entry.atMs}-${entry.attempt}-${entry.phase}`}>
                  <time>{clock.format(entry.atMs)}</time>
                  <span>
                    {tMaybe(`set.phase.${entry.phase}`) ?? entry.phase}
                    {entry.failures > 0 && ` · ${t("set.log.failures", { count: entry.failures })}`}
                    {entry.failed && ` · ${entry.failed}`}
                  </span>
                </li>
              ))}
            </ol>
          </section>
          <div class="actions">
            <Button onClick={() => void copy()}>{t("set.log.copy")}</Button>
            <span class="quiet" role="status">
              {copied !== null && t(copied ? "copied" : "set.log.uncopied")}
            </span>
          </div>
        </>
      )}
    </>
  );
}
