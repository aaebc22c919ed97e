import "../../core/words.code.ts";
import { computed } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { call as ask } from "../../platform/api.ts";
import type { CallView, SessionView } from "../../protocol/types.gen.ts";
import { go } from "../../state/router.ts";
import { stepsOf } from "../chat/runs.ts";
import { ToolCard } from "./ToolCard.tsx";

/** Steps of a sub-agent may follow each other fast: its view is read no sooner again, in milliseconds. */
const AGAIN_MS = 500;

/**
 * What a sub-agent did, as rows: from its session's view, which is read again when the call that it
 * works for has news.
 */
export function SubAgent({ session, call }: { session: string; call: CallView }) {
  const [view, setView] = useState<SessionView | null>(null);
  const [complaint, setComplaint] = useState("");
  const { progress, status } = call;
  useEffect(() => {
    const stop = new AbortController();
    const read = (): void => {
      ask("get_view", { path: { session }, signal: stop.signal }).then(
        (answer) => {
          setView(answer.view);
          setComplaint("");
        },
        (error: Error) => {
          if (!stop.signal.aborted) setComplaint(error.message);
        },
      );
    };
    const timer = setTimeout(read, view ? AGAIN_MS : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [session, progress, status]);
  return (
    <section>
      <p class="label">{t("child.steps")}</p>
      {view && <Rows view={view} />}
      {!view && complaint === "" && <p class="quiet">{t("chat.loading")}</p>}
      {complaint !== "" && <p class="complaint">{complaint}</p>}
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
