import "../../core/words.code.ts";
import { t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { Todo } from "../../protocol/types.gen.ts";
import { Icon } from "../base/Icon.tsx";
import type { IconName } from "../base/icons.ts";

const ICONS: Record<string, IconName> = {
  completed: "check",
  in_progress: "chevron",
  pending: "clock",
};

/** The agent's checklist as one line; a tap opens it. */
export function PlanLine({ todos }: { todos: readonly Todo[] }) {
  if (todos.length === 0) return null;
  const done = todos.filter(({ status }) => status === "completed").length;
  const now = todos.find(({ status }) => status === "in_progress") ?? todos.find(isOpen);
  const gaps = { done, all: todos.length, now: visible(now?.content ?? "") };
  return (
    <details class="plan">
      <summary>
        <Icon name="chevron" />
        <span class="label">{t("plan.label")}</span>
        <span class="plan-now">{t(now ? "plan.line" : "plan.done", gaps)}</span>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys */}
      <ol tabIndex={0}>
        {todos.map((todo) => (
          <li key={todo.id} class={`todo ${todo.status}`}>
            <Icon name={ICONS[todo.status] ?? "clock"} />
            <span>{visible(todo.content)}</span>
            <span class="quiet">{tMaybe(`plan.${todo.status}`) ?? visible(todo.status)}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function isOpen({ status }: Todo): boolean {
  return status !== "completed";
}
