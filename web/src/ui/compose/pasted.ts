/** What is pasted and dropped. */

import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import type { Attachments } from "./attached.ts";

/** Longer pasted texts become a file, in UTF-16 units. */
export const LONG_PASTE = 4_000;

/** Takes pasted and dropped files, and long pasted texts, as attachments. */
export function takePasted(
  field: HTMLTextAreaElement | null,
  attachments: Attachments,
): () => void {
  const paste = (event: ClipboardEvent): void => {
    const data = event.clipboardData;
    if (!data) return;
    if (attach(attachments, data.files, data.getData("text/plain"))) event.preventDefault();
  };
  const over = (event: DragEvent): void => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  };
  const drop = (event: DragEvent): void => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    attachments.add(event.dataTransfer.files);
  };
  const stop = new AbortController();
  const options = { signal: stop.signal };
  field?.addEventListener("paste", paste, options);
  document.addEventListener("dragover", over, options);
  document.addEventListener("drop", drop, options);
  return () => stop.abort();
}

/** Takes what was pasted as attachments, unless it is a text that the field takes. */
function attach(attachments: Attachments, files: ArrayLike<File>, text: string): boolean {
  if (files.length > 0 && text === "") attachments.add(Array.from(files));
  else if (text.length > LONG_PASTE) attachments.add([textFile(text)]);
  else return false;
  return true;
}

/** What lies on the clipboard; nothing when it may not be read. */
async function readClipboard(): Promise<[files: File[], text: string]> {
  const files: File[] = [];
  let text = "";
  try {
    for (const item of await navigator.clipboard.read()) {
      for (const type of item.types) {
        const bytes = await item.getType(type);
        if (type === "text/plain") text += await bytes.text();
        // Whatever a picture was, a browser hands on a PNG.
        if (type === "image/png") files.push(new File([bytes], "image.png", { type }));
      }
    }
  } catch (error) {
    // Somebody or the browser does not allow it.
    if (!(error instanceof DOMException)) throw error;
  }
  return [files, text];
}

/** Pastes what lies on the clipboard, where the caret stands; says how else, when it may not be read. */
export async function pasteInto(
  field: HTMLTextAreaElement | null,
  attachments: Attachments,
): Promise<void> {
  const [files, text] = await readClipboard();
  // A browser may ask a person first, who may have gone elsewhere meanwhile.
  if (!field?.isConnected || attach(attachments, files, text)) return;
  attachments.complaint.value = text ? "" : t("attach.clipboard.not");
  field.focus();
  // As if it was typed: it can be undone, and is noticed as every other change. What may not take
  // the focus (something stands before it) takes no text either, and nothing else does.
  if (text && document.activeElement === field) document.execCommand("insertText", false, text);
}

/** A text as a file that goes along. */
export function textFile(text: string): File {
  const lines = text.replace(/\n$/, "").split("\n").length;
  return new File([text], `${t("attach.paste", { lines })}.txt`, { type: "text/plain" });
}
