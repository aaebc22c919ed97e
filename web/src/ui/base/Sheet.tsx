import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { IconButton } from "./Button.tsx";

interface SheetProps {
  title: string;
  className?: string;
  onClose: () => void;
  children: ComponentChildren;
}

/**
 * A layer over the page that keeps the focus inside and gives it back.
 *
 * It is shown as long as it is rendered.
 */
export function Sheet({ title, className = "", onClose, children }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the effects of what is inside: what is not shown yet takes no focus.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the key for the click beside the sheet is Escape
    <dialog
      ref={dialog}
      class={`sheet ${className}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div class="sheet-body">
        <header class="sheet-head">
          <h2>{title}</h2>
          <IconButton icon="close" label={t("close")} onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}
