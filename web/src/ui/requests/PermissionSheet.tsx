import "../../core/words.later.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t, tMaybe } from "../../core/i18n.ts";
import { formatSpan } from "../../core/time.ts";
import { visible } from "../../core/visible.ts";
import type { Option, PermissionRequested } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { Sheet } from "../base/Sheet.tsx";
import { Diff } from "../tools/Diff.tsx";
import type { Answering } from "./RequestCard.tsx";

const DENY = "deny";
/** Asked for once more before it is taken: it holds beyond this session. */
const ALWAYS = "allow_always";
/** A rule longer than this stands with what is read: the buttons must stay in sight. */
const LONG_RULE = 120;
/** From the safest to the most lasting; what is not here comes after. */
const ORDER = [DENY, "allow_session", "allow_once"];

function byOrder(a: Option, b: Option): number {
  const place = ({ id }: Option): number => (ORDER.includes(id) ? ORDER.indexOf(id) : ORDER.length);
  return place(a) - place(b);
}

/** What is asked, as a question. What is previewed is not said twice. */
export function headingOf({ preview, title, tool }: PermissionRequested): string {
  return (
    tMaybe(`ask.heading.${preview.kind}`) ?? t("ask.heading", { tool: visible(title || tool) })
  );
}

interface PermissionSheetProps {
  chat: Chat;
  answering: Answering;
  onClose: () => void;
}

/** All there is to know about one request, and the answers to it. */
export function PermissionSheet({ chat, answering, onClose }: PermissionSheetProps) {
  const { request, leftMs, refused } = answering;
  const { preview, reason } = request;
  const { cwd, agent } = chat.current.value;
  return (
    <Sheet title={headingOf(request)} onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys */}
      <div class="sheet-scroll" tabIndex={0}>
        <p class="chips">
          <span class="chip">{visible(request.tool)}</span>
          <span class="chip">{visible(agent)}</span>
          <span class="chip">
            {leftMs > 0 ? t("ask.left", { time: formatSpan(leftMs) }) : t("ask.expired")}
          </span>
        </p>
        <h3 class="label">{t("ask.what")}</h3>
        {preview.kind === "diff" ? (
          <Diff text={preview.text} />
        ) : (
          <pre class="whole">{visible(preview.text)}</pre>
        )}
        {cwd && (
          <>
            <h3 class="label">{t("ask.where")}</h3>
            <p class="path">{visible(cwd)}</p>
          </>
        )}
        {reason && (
          <>
            <h3 class="label">{t("ask.why")}</h3>
            <p>{tMaybe(`ask.why.${reason}`) ?? visible(reason)}</p>
          </>
        )}
        {[...new Set(request.options.map(({ rule }) => rule ?? ""))]
          .filter((rule) => rule.length > LONG_RULE)
          .map((rule) => (
            <p key={rule} class="whole">
              {t("ask.rule", { rule: visible(rule) })}
            </p>
          ))}
      </div>
      {preview.truncated && <p class="complaint">{t("ask.truncated")}</p>}
      <Answers answering={answering} />
      {refused && (
        <p class="complaint" role="alert">
          {t("ask.failed", { message: visible(refused) })}
        </p>
      )}
    </Sheet>
  );
}

function Answers({ answering }: { answering: Answering }) {
  const { request, live, answer } = answering;
  const options = [...request.options].sort(byOrder);
  const deny = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (live) deny.current?.querySelector("button")?.focus();
  }, [live]);
  return (
    <div ref={deny} class="answers">
      {options
        .filter(({ id }) => id !== ALWAYS)
        .map((option) => (
          <AnswerButton
            key={option.id}
            option={option}
            disabled={!live || isBlocked(option, answering)}
            onClick={() => answer(option.id)}
          />
        ))}
      {options
        .filter(({ id }) => id === ALWAYS)
        .map((option) => (
          <AlwaysButton
            key={option.id}
            option={option}
            disabled={!live || isBlocked(option, answering)}
            onClick={() => answer(option.id)}
          />
        ))}
    </div>
  );
}

/** What nobody could read whole can only be refused. */
function isBlocked(option: Option, { request }: Answering): boolean {
  return option.id !== DENY && request.preview.truncated === true;
}

interface AnswerButtonProps {
  option: Option;
  disabled: boolean;
  onClick: () => void;
}

function AnswerButton({ option, disabled, onClick }: AnswerButtonProps) {
  const kind = option.id === DENY ? "danger" : option.id === "allow_once" ? "main" : "plain";
  const label =
    option.id === DENY ? t("ask.deny") : (tMaybe(`ask.${option.id}`) ?? visible(option.label));
  return (
    <button type="button" class={`button ${kind}`} disabled={disabled} onClick={onClick}>
      {label}
      {option.rule && option.rule.length <= LONG_RULE && (
        <small>{t("ask.rule", { rule: visible(option.rule) })}</small>
      )}
    </button>
  );
}

function AlwaysButton({ option, disabled, onClick }: AnswerButtonProps) {
  const [asked, setAsked] = useState(false);
  if (asked) return <AnswerButton option={option} disabled={disabled} onClick={onClick} />;
  return (
    <button type="button" class="link-button" disabled={disabled} onClick={() => setAsked(true)}>
      {t("ask.allow_always")}…
    </button>
  );
}
