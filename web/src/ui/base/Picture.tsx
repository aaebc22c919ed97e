import "../../core/words.code.ts";
import { useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { Sheet } from "./Sheet.tsx";

/** A picture, small; a tap shows all of it, and there another one its full size. */
export function Picture({ src, name = t("chat.picture") }: { src: string; name?: string }) {
  const [open, setOpen] = useState(false);
  const [full, setFull] = useState(false);
  return (
    <>
      <button type="button" class="picture" onClick={() => setOpen(true)}>
        <img src={src} alt={name} loading="lazy" />
      </button>
      {open && (
        <Sheet className="viewer" title={name} onClose={() => setOpen(false)}>
          <button
            type="button"
            class={full ? "picture full" : "picture"}
            aria-label={t("picture.zoom")}
            aria-pressed={full}
            onClick={() => setFull(!full)}
          >
            <img src={src} alt={name} />
          </button>
        </Sheet>
      )}
    </>
  );
}

/** Where the bytes of a kept file stand. */
export function addressOfFile(file: string): string {
  return `/api/files/${encodeURIComponent(file)}`;
}
