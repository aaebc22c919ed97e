import "../../core/words.code.ts";
import { useRef } from "preact/hooks";
import { t, type Word } from "../../core/i18n.ts";
import { IconButton } from "../base/Button.tsx";

const MENU = "attach-menu";

/** The ways a file comes in: what is asked of the device, and what it may give. */
const WAYS: readonly { word: Word; accept?: string; capture?: "environment" }[] = [
  { word: "attach.camera", accept: "image/*", capture: "environment" },
  { word: "attach.photo", accept: "image/*" },
  { word: "attach.file" },
];

interface AttachMenuProps {
  onFiles: (files: Iterable<File>) => void;
  onPaste: () => void;
}

/** The button that brings files in. */
export function AttachMenu({ onFiles, onPaste }: AttachMenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  return (
    <>
      <IconButton icon="plus" className="attach" label={t("attach.label")} popoverTarget={MENU} />
      <div ref={menu} id={MENU} class="menu attach-menu" popover="auto">
        {WAYS.map(({ word, accept, capture }) => (
          <label key={word} class="menu-item">
            {t(word)}
            <input
              class="hidden-input"
              type="file"
              multiple={!capture}
              {...(accept && { accept })}
              {...(capture && { capture })}
              onChange={(event) => {
                onFiles([...(event.currentTarget.files ?? [])]);
                event.currentTarget.value = "";
                menu.current?.hidePopover();
              }}
            />
          </label>
        ))}
        {/* Not over plain HTTP, nor in each browser. */}
        {"read" in (navigator.clipboard ?? {}) && (
          <button type="button" class="menu-item" popovertarget={MENU} onClick={onPaste}>
            {t("attach.clipboard")}
          </button>
        )}
      </div>
    </>
  );
}
