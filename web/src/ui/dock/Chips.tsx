import "../../core/words.code.ts";
import { t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { Chat } from "../../state/chat.ts";
import { complaintOf, deliver, newKey } from "../../state/outbox.ts";
import { lazy } from "../base/lazy.tsx";
import { chipsOpen } from "./chips_open.ts";

/** The choices: of no use before somebody asks. */
export const ChipsSheet = lazy(async () => (await import("./ChipsSheet.tsx")).ChipsSheet);

interface ChipButtonProps {
  model: string;
  mode: string;
  /** What else there is to say. */
  note: string;
}

/** Model, mode and one word more; a tap changes them. */
export function ChipButton({ model, mode, note }: ChipButtonProps) {
  return (
    <div class="dock-chips">
      <button
        type="button"
        class="chip chip-button"
        onClick={() => {
          chipsOpen.value = true;
        }}
      >
        <span class="visually-hidden">{t("chips.label")}: </span>
        <span class="chip-model">{visible(model.split("/").at(-1) ?? "")}</span>
        <span aria-hidden="true">·</span>
        <span>{tMaybe(`mode.short.${mode}`) ?? visible(mode)}</span>
        {note && <span class="quiet chip-note">{`· ${note}`}</span>}
      </button>
    </div>
  );
}

/** Those of a session, and how full the model's window is. */
export function Chips({ chat }: { chat: Chat }) {
  const view = chat.parts;
  const { model, mode, context } = view;
  const percent =
    context?.window && context.used > 0 ? Math.round((100 * context.used) / context.window) : null;
  const change = (body: { model?: string; mode?: string }): Promise<string | null> =>
    complaintOf(
      deliver("update_session", { path: { session: chat.session }, key: newKey(), body }),
    );
  return (
    <>
      <ChipButton
        model={model}
        mode={mode}
        note={percent === null ? "" : t("chips.used", { percent })}
      />
      {chipsOpen.value && (
        <ChipsSheet
          model={model}
          mode={mode}
          view={view}
          onChange={change}
          onClose={() => {
            chipsOpen.value = false;
          }}
        />
      )}
    </>
  );
}
