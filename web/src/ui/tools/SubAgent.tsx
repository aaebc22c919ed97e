import "../../core/words.code.ts";
import { computed } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { call as ask } from "../../platform/api.ts";
import type { CallView, SessionView } from "../../protocol/types.gen.ts";
import { go } from "../../state/router.ts";
import { stepsOf } from "../chat/runs.ts";
import { ToolCard } from "./ToolCard.tsx";

/** Steps of a sub-agent may follow each other fast: its view is read no sooner again, in milliseconds. */
const AGAIN_MS = 500;
/** And so long after a read that failed. */
const RETRY_MS = 5_000;

/**
 * What a sub-agent did, as rows: from its session's view, which is read again when the call that it
 * works for has news. A read that runs is let finish, for news may come faster than any answer.
 * Its key is its session.
 */
export function SubAgent({ session, call }: { session: string; call: CallView }) {
  const [view, setView] = useState<SessionView | null>(null);
  const [complaint, setComplaint] = useState("");
  const [phase, setPhase] = useState<"free" | "asked" | "answered" | "failed">("free");
  const stop = useMemo(() => new AbortController(), []);
  const known = useRef("");
  const news = `${call.status} ${call.progress}`;
  useEffect(() => () => stop.abort(), []);
  useEffect(() => {
    if (phase !== "free" || known.current === news) return;
    known.current = news;
    setPhase("asked");
    ask("get_view", { path: { session }, signal: stop.signal }).then(
      (answer) => {
        setView(answer.view);
        setComplaint("");
        setPhase("answered");
      },
      (error: Error) => {
        known.current = "";
        setComplaint(error.message);
        setPhase("failed");
      },
    );
  }, [phase, news]);
  useEffect(() => {
    if (phase !== "answered" && phase !== "failed") return;
    const wait = phase === "failed" ? RETRY_MS : AGAIN_MS;
    const timer = setTimeout(() => setPhase("free"), wait);
    return () => clearTimeout(timer);
  }, [phase]);
  return (
    <section>
      <p class="label">{t("child.steps")}</p>
      {view && <Rows view={view} />}
      {!view && complaint === "" && <p class="quiet">{t("chat.loading")}</p>}
      {complaint !== "" && <p class="complaint">{visible(complaint)}</p>}
      <button type="button" class="link-button" onClick={() => go({ page: "chat", session })}>
        {t("child.open")}
      </button>
    </section>
  );
}

function Rows({ view }: { view: SessionView }) {
  const calls = [...view.calls, ...view.open_calls];
  const source = {
    call: (id: string) => computed(() => calls.find((one) => one.call === id)),
  };
  const steps = view.messages
    .flatMap(({ content }) => stepsOf(content))
    .flatMap((step) => (step.type === "tool_call" ? step : []));
  if (steps.length === 0) return <p class="quiet">{t("child.none")}</p>;
  return (
    <div class="doings">
      {steps.map((step) => (
        <ToolCard key={step.id} chat={source} block={step} />
      ))}
    </div>
  );
}
