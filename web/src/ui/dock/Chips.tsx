import "../../core/words.code.ts";
import { t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import type { Chat } from "../../state/chat.ts";
import { lazy } from "../base/lazy.tsx";
import { chipsOpen } from "./chips_open.ts";

/** The choices: of no use before somebody asks. */
export const ChipsSheet = lazy(async () => (await import("./ChipsSheet.tsx")).ChipsSheet);

/** Model, mode, and how full the model's window is; a tap changes them. */
export function Chips({ chat }: { chat: Chat }) {
  const { model, mode, context } = chat.current.value;
  const short = visible(model.split("/").at(-1) ?? "");
  const percent =
    context?.window && context.used > 0 ? Math.round((100 * context.used) / context.window) : null;
  const may = tMaybe(`mode.short.${mode}`) ?? visible(mode);
  const full = percent === null ? "" : `${percent} %`;
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
        <span class="chip-model">{short}</span>
        <span aria-hidden="true">·</span>
        <span>{may}</span>
        {percent !== null && (
          <span class="quiet" title={t("chips.context", { percent })}>
            {full}
          </span>
        )}
      </button>
      {chipsOpen.value && (
        <ChipsSheet
          chat={chat}
          onClose={() => {
            chipsOpen.value = false;
          }}
        />
      )}
    </div>
  );
}
