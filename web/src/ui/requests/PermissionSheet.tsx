import "../../core/words.later.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { Option, PermissionRequested } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { IconButton } from "../base/Button.tsx";
import { Sheet } from "../base/Sheet.tsx";
import { Diff } from "../tools/Diff.tsx";
import { Refused, tellLeft } from "./parts.tsx";
import type { Answering } from "./RequestCard.tsx";

const DENY = "deny";
/** Asked for once more before it is taken: it holds beyond this session. */
const ALWAYS = "allow_always";
const MENU = "always-menu";
/** Buttons take no tap for this long after they appear: it was meant for what stood there before. */
export const LIVE_AFTER_MS = 400;
/** A rule longer than this stands with what is read: the buttons must stay in sight. */
const LONG_RULE = 120;
/** From the safest to the most lasting; what is not here comes after. */
const ORDER = [DENY, "allow_session", "allow_once", ALWAYS];

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
  return (
    <Sheet title={headingOf(answering.request)} onClose={onClose}>
      <PermissionBody chat={chat} answering={answering} focused />
    </Sheet>
  );
}

interface PermissionBodyProps {
  chat: Chat;
  answering: Answering;
  /** Whether it was asked for, and may take the focus. */
  focused?: boolean;
}

/** The same without a frame; the digits answer while the focus is in it. */
export function PermissionBody({ chat, answering, focused = false }: PermissionBodyProps) {
  const { request, leftMs, refused, live, answer } = answering;
  const { preview, reason } = request;
  const { cwd, agent } = chat.parts;
  const press = (event: KeyboardEvent): void => {
    const option = plainOptions(request)[Number(event.key) - 1];
    const types = event.target instanceof HTMLInputElement;
    if (!option || types || !live || isBlocked(option, answering)) return;
    event.preventDefault();
    answer(option.id);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it hears keys of what is inside
    <div class="permission" onKeyDown={press}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys */}
      <div class="sheet-scroll" tabIndex={0}>
        <p class="chips">
          <span class="chip">{visible(request.tool)}</span>
          <span class="chip">{visible(agent)}</span>
          {focused && <span class="chip">{tellLeft(leftMs)}</span>}
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
      <Answers answering={answering} focused={focused} />
      <Refused why={refused} />
    </div>
  );
}

/** What is answered with one tap, in the order of the buttons. */
function plainOptions({ options }: PermissionRequested): Option[] {
  return options.filter(({ id }) => id !== ALWAYS).sort(byOrder);
}

function Answers({ answering, focused }: { answering: Answering; focused: boolean }) {
  const { request, live, answer } = answering;
  const [note, setNote] = useState("");
  const deny = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (live && focused) deny.current?.querySelector("button")?.focus();
  }, [live, focused]);
  return (
    <div ref={deny} class="answers">
      {[...request.options].sort(byOrder).map((option) => {
        const isDeny = option.id === DENY;
        const Way = option.id === ALWAYS ? AlwaysMenu : AnswerButton;
        return (
          <>
            {isDeny && (
              <div class="field">
                <input
                  dir="auto"
                  value={note}
                  maxLength={4_000}
                  placeholder={t("ask.note")}
                  aria-label={t("ask.note")}
                  onInput={(event) => setNote(event.currentTarget.value)}
                />
              </div>
            )}
            <Way
              key={option.id}
              option={option}
              disabled={!live || isBlocked(option, answering)}
              onClick={() => answer(option.id, isDeny ? note.trim() : "")}
            />
          </>
        );
      })}
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
    option.id === DENY ? t("ask.deny") : (tMaybe(`option.${option.id}`) ?? visible(option.label));
  return (
    <button type="button" class={`button ${kind}`} disabled={disabled} onClick={onClick}>
      {label}
      {ruleOf(option)}
    </button>
  );
}

/** The rule that an answer makes, where there is room for it on a button. */
function ruleOf({ rule }: Option) {
  return (
    rule && rule.length <= LONG_RULE && <small>{t("ask.rule", { rule: visible(rule) })}</small>
  );
}

/** What lasts is out of the way, and its first tap only tells which rule the second one makes. */
function AlwaysMenu({ option, disabled, onClick }: AnswerButtonProps) {
  const [askedMs, setAsked] = useState(0);
  const tap = ({ timeStamp }: MouseEvent): void => {
    if (!askedMs) setAsked(timeStamp);
    else if (timeStamp - askedMs > LIVE_AFTER_MS) onClick();
  };
  return (
    <>
      <IconButton
        icon="more"
        label={t("menu.open")}
        popoverTarget={MENU}
        onClick={() => setAsked(0)}
      />
      <div id={MENU} class="menu queue-menu" popover="auto">
        <button
          type="button"
          class={askedMs ? "button plain" : "menu-item"}
          disabled={disabled}
          onClick={tap}
        >
          {t("option.allow_always")}
          {askedMs ? ruleOf(option) : "…"}
        </button>
      </div>
    </>
  );
}
