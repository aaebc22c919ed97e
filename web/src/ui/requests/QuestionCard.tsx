import "../../core/words.later.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { QuestionAsked, QuestionItem } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { drafts as kept, newKey } from "../../state/outbox.ts";
import { Button } from "../base/Button.tsx";
import { useNow } from "../hooks/useNow.ts";
import { Refused, tellLeft } from "./parts.tsx";

/** What a person has chosen and written for one item. */
interface Draft {
  chosen: readonly string[];
  words: string;
}

const EMPTY: Draft = { chosen: [], words: "" };

/** The values of an answer, in the order of the options; own words come last. */
function toAnswer(item: QuestionItem, draft: Draft): string[] {
  const chosen = (item.options ?? []).map(({ id }) => id).filter((id) => draft.chosen.includes(id));
  const words = draft.words.trim();
  return words ? [...chosen, words] : chosen;
}

interface QuestionCardProps {
  chat: Chat;
  question: QuestionAsked;
}

/** One question of the agent, with all its items, above the composer. */
export function QuestionCard({ chat, question }: QuestionCardProps) {
  const [drafts, setDrafts] = useKeptDrafts(chat, question.question);
  const [sending, setSending] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const key = useRef(newKey());
  const answers = question.items.map(
    (item) => [item.id, toAnswer(item, drafts[item.id] ?? EMPTY)] as const,
  );
  const isComplete = answers.every(([, values]) => values.length > 0);
  const send = async (given: typeof answers): Promise<void> => {
    setSending(true);
    setRefused(null);
    const { question: id } = question;
    const problem = await chat.answerQuestion(id, Object.fromEntries(given), key.current);
    if (problem === null) return;
    key.current = newKey();
    setRefused(problem);
    setSending(false);
  };
  return (
    <form
      class="request"
      aria-label={t("ask.questions")}
      onSubmit={(event) => {
        event.preventDefault();
        if (isComplete && !sending) void send(answers);
      }}
    >
      <TimeLeft chat={chat} until={question.expires_at ?? null} />
      {question.items.map((item) => (
        <Item
          key={item.id}
          item={item}
          draft={drafts[item.id] ?? EMPTY}
          onChange={(draft) => setDrafts({ ...drafts, [item.id]: draft })}
        />
      ))}
      <Refused why={refused} />
      <div class="turn-ways">
        <Button disabled={sending} onClick={() => void send([])}>
          {t("ask.skip")}
        </Button>
        <Button kind="main" type="submit" disabled={!isComplete || sending}>
          {t("ask.answer")}
        </Button>
      </div>
    </form>
  );
}

type Drafted = Readonly<Record<string, Draft>>;

/** What was chosen so far: it survives the page, until the question is over. */
function useKeptDrafts(chat: Chat, question: string): [Drafted, (drafts: Drafted) => void] {
  const place = `${chat.session}.${question}`;
  const [drafts, setDrafts] = useState<Drafted>(() => readKept(place));
  useEffect(
    () => () => {
      const isOpen = chat.questions.peek().some((one) => one.question === question);
      if (!isOpen) kept.write(place, "");
    },
    [place],
  );
  const keep = (next: Drafted): void => {
    setDrafts(next);
    kept.write(place, JSON.stringify(next));
  };
  return [drafts, keep];
}

function readKept(place: string): Drafted {
  try {
    return JSON.parse(kept.read(place) || "{}") as Drafted;
  } catch {
    return {};
  }
}

interface ItemProps {
  item: QuestionItem;
  draft: Draft;
  onChange: (draft: Draft) => void;
}

function Item({ item, draft, onChange }: ItemProps) {
  const { options = [], multiple = false, free_text = false } = item;
  const toggle = (id: string): void => {
    const isChosen = draft.chosen.includes(id);
    const others = multiple ? draft.chosen.filter((one) => one !== id) : [];
    // Where one answer is taken, an option and own words take each other's place.
    const words = multiple ? draft.words : "";
    onChange({ chosen: isChosen ? others : [...others, id], words });
  };
  return (
    <fieldset class="question">
      <legend>{visible(item.prompt)}</legend>
      {options.map((option) => (
        <label key={option.id} class="check">
          <input
            type={multiple ? "checkbox" : "radio"}
            name={item.id}
            checked={draft.chosen.includes(option.id)}
            onChange={() => toggle(option.id)}
          />
          <span>{visible(option.label)}</span>
        </label>
      ))}
      {free_text && (
        <input
          type="text"
          dir="auto"
          aria-label={t("ask.words")}
          placeholder={t("ask.words")}
          value={draft.words}
          onInput={({ currentTarget: { value } }) =>
            onChange({ chosen: multiple || !value.trim() ? draft.chosen : [], words: value })
          }
        />
      )}
    </fieldset>
  );
}

/** How long until the agent decides itself; nothing while it waits as long as it takes. */
function TimeLeft({ chat, until }: { chat: Chat; until: string | null }) {
  const now = useNow(until !== null);
  if (until === null) return null;
  const leftMs = Date.parse(until) - (now + chat.clockAheadMs.value);
  return <p class="quiet request-left">{tellLeft(leftMs)}</p>;
}
