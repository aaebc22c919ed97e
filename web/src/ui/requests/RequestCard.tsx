import "../../core/words.later.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { PermissionRequested } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { newKey } from "../../state/outbox.ts";
import { route } from "../../state/router.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { useNow } from "../hooks/useNow.ts";
import { useWide } from "../hooks/useWide.ts";
import { receiptOf } from "../tools/tool_text.ts";
import { headingOf, LIVE_AFTER_MS, PermissionBody, PermissionSheet } from "./PermissionSheet.tsx";
import { Refused, tellLeft } from "./parts.tsx";
import { QuestionCard } from "./QuestionCard.tsx";

/** How long a card says that somebody else was quicker, in milliseconds. */
const GONE_MS = 5_000;

/** What a person can do about a request. */
export interface Answering {
  request: PermissionRequested;
  /** Whether the buttons take a tap. */
  live: boolean;
  /** Milliseconds until it is denied by itself. */
  leftMs: number;
  /** Why the last answer was not taken. */
  refused: string | null;
  answer: (option: string, note?: string) => void;
}

/** The open requests of a session, one at a time, above the composer. */
export function RequestCard({ chat }: { chat: Chat }) {
  const requests = chat.permissions.value;
  const to = route.value;
  const asked = to.page === "chat" ? to.request : undefined;
  const request = requests.find(({ permission }) => permission === asked) ?? requests[0];
  const question = chat.questions.value[0];
  const mine = useRef(new Set<string>());
  const gone = useGone(request, mine.current);
  if (!request) {
    const decision = gone && chat.call(gone.call).value?.decision;
    return gone ? (
      <section class="request" aria-label={t("ask.title")}>
        <p class="quiet">{decision ? receiptOf(decision) : t("ask.gone")}</p>
      </section>
    ) : (
      question && <QuestionCard key={question.question} chat={chat} question={question} />
    );
  }
  return (
    <OpenRequest
      key={request.permission}
      chat={chat}
      request={request}
      open={request.permission === asked}
      count={requests.length}
      onAnswered={() => mine.current.add(request.permission)}
    />
  );
}

interface OpenRequestProps {
  chat: Chat;
  request: PermissionRequested;
  /** Whether it was come for: then all of it is shown at once. */
  open: boolean;
  count: number;
  onAnswered: () => void;
}

function OpenRequest({ chat, request, open, count, onAnswered }: OpenRequestProps) {
  const [reviewing, setReviewing] = useState(false);
  useEffect(() => {
    if (open) setReviewing(true);
  }, [open]);
  const wide = useWide();
  const answering = useAnswer(chat, request, onAnswered);
  const { leftMs } = answering;
  return (
    <section class="request" aria-label={t("ask.title")}>
      <div class="request-head">
        <Icon name="shield" />
        <h2>{headingOf(request)}</h2>
        {count > 1 && <span class="quiet">{t("ask.count", { at: 1, all: count })}</span>}
        <span class="quiet request-left">{tellLeft(leftMs)}</span>
      </div>
      {wide ? (
        <PermissionBody chat={chat} answering={answering} />
      ) : (
        <Folded answering={answering} onReview={() => setReviewing(true)} />
      )}
      {reviewing && !wide && (
        <PermissionSheet chat={chat} answering={answering} onClose={() => setReviewing(false)} />
      )}
    </section>
  );
}

/** The little that there is room for above a phone's keyboard. */
function Folded({ answering, onReview }: { answering: Answering; onReview: () => void }) {
  const { request, live, refused, answer } = answering;
  return (
    <>
      <p class="request-peek">{visible(peekOf(request))}</p>
      <Refused why={refused} />
      <div class="request-buttons">
        <Button kind="danger" disabled={!live} onClick={() => answer("deny")}>
          {t("ask.deny")}
        </Button>
        <Button kind="main" disabled={!live} onClick={onReview}>
          {t("ask.review")}
        </Button>
      </div>
    </>
  );
}

/** What of a preview stands in the few lines of the card: of a diff the changes, not its head. */
function peekOf({ preview }: PermissionRequested): string {
  return (preview.kind === "diff" && changesOf(preview.text)) || preview.text;
}

/** What a unified diff changes: the path of each file, and its lines that come and go. */
function changesOf(diff: string): string {
  const heads = /^--- (?:a\/)?(.*)\n\+\+\+ (?:b\/)?(.*)$/gm;
  return diff
    .replace(heads, (_, old: string, path: string) => `+${path === "/dev/null" ? old : path}\0`)
    .split("\n")
    .filter((line) => /^[+-]/.test(line))
    .map((line) => (line.endsWith("\0") ? line.slice(1, -1) : line))
    .join("\n");
}

/** The state of answering one request. */
function useAnswer(chat: Chat, request: PermissionRequested, onAnswered: () => void): Answering {
  const [live, setLive] = useState(false);
  const [sending, setSending] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const key = useRef(newKey());
  const busy = useRef(false);
  const now = useNow(true);
  useEffect(() => {
    const timer = setTimeout(() => setLive(true), LIVE_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  const answer = async (option: string, note?: string): Promise<void> => {
    // The second tap comes before the buttons are drawn dead.
    if (busy.current) return;
    busy.current = true;
    setSending(true);
    setRefused(null);
    onAnswered();
    const problem = await chat.answer(request, option, key.current, note);
    if (problem === null) return;
    key.current = newKey();
    busy.current = false;
    setRefused(problem);
    setSending(false);
  };
  return {
    request,
    live: live && !sending,
    leftMs: Date.parse(request.expires_at) - (now + chat.clockAheadMs.value),
    refused,
    answer: (option, note) => void answer(option, note),
  };
}

/** The request that went away a moment ago without an answer from here. */
function useGone(
  request: PermissionRequested | undefined,
  mine: ReadonlySet<string>,
): PermissionRequested | undefined {
  const last = useRef<PermissionRequested | undefined>(undefined);
  const [gone, setGone] = useState<PermissionRequested | undefined>(undefined);
  const id = request?.permission;
  useEffect(() => {
    const before = last.current;
    last.current = request;
    if (id !== undefined || before === undefined || mine.has(before.permission)) return;
    setGone(before);
    const timer = setTimeout(() => setGone(undefined), GONE_MS);
    return () => {
      clearTimeout(timer);
      setGone(undefined);
    };
  }, [id, mine]);
  return gone;
}
