/** The files that go along with the next prompt. */

import "../../core/words.code.ts";
import { signal } from "@preact/signals";
import { t } from "../../core/i18n.ts";
import { ApiFault } from "../../platform/api.ts";
import { shrinkPicture } from "../../platform/images.ts";
import { MAX_BYTES, uploadFile } from "../../platform/upload.ts";
import type { PromptBlock } from "../../protocol/types.gen.ts";

/** Files of one prompt. */
export const MOST = 6;
const BYTES_OF_MB = 1024 * 1024;

/** One file, and how far it is. */
export interface Attached {
  readonly id: number;
  readonly name: string;
  readonly state: "busy" | "ready" | "failed";
  /** Why it failed. */
  readonly message: string;
  /** What the prompt carries, once it is ready. */
  readonly block: PromptBlock | null;
  /** An address of the picture, to be shown small. */
  readonly picture: string | null;
}

/** The files of one composer. */
export class Attachments {
  readonly list = signal<readonly Attached[]>([]);
  /** Why some were not taken. */
  readonly complaint = signal("");
  readonly #uploads = new Map<number, AbortController>();
  #next = 1;

  /** Takes files over, as many as there is room for. */
  add(files: Iterable<File>): void {
    const all = [...files];
    const room = MOST - this.list.peek().length;
    this.complaint.value = all.length > room ? t("attach.many", { count: MOST }) : "";
    for (const file of all.slice(0, Math.max(0, room))) void this.#send(file);
  }

  /** Takes back what a failed prompt carried. */
  restore(blocks: readonly PromptBlock[]): void {
    const more = blocks.map((block): Attached => {
      const name = block.type === "file" ? block.name : t("chat.picture");
      return { id: this.#next++, name, state: "ready", message: "", block, picture: null };
    });
    this.list.value = [...this.list.peek(), ...more].slice(0, MOST);
  }

  /** Takes one out; what is on its way is given up. */
  remove(id: number): void {
    this.#uploads.get(id)?.abort();
    this.#drop(this.list.peek().filter((one) => one.id === id));
    this.list.value = this.list.peek().filter((one) => one.id !== id);
    this.complaint.value = "";
  }

  /** What the prompt carries; nothing while some are on their way or have failed. */
  take(): readonly PromptBlock[] | null {
    const all = this.list.peek();
    if (all.some(({ state }) => state !== "ready")) {
      this.complaint.value = t("attach.wait");
      return null;
    }
    this.#drop(all);
    this.list.value = [];
    this.complaint.value = "";
    return all.flatMap(({ block }) => block ?? []);
  }

  /** Gives up all that is on its way. */
  close(): void {
    for (const upload of this.#uploads.values()) upload.abort();
    this.#drop(this.list.peek());
  }

  #drop(gone: readonly Attached[]): void {
    for (const { picture } of gone) if (picture) URL.revokeObjectURL(picture);
  }

  #put(id: number, more: Partial<Attached>): void {
    this.list.value = this.list.peek().map((one) => (one.id === id ? { ...one, ...more } : one));
  }

  async #send(file: File): Promise<void> {
    const id = this.#next++;
    const name = file.name || t("attach.file");
    const fixed = { message: "", block: null, picture: null };
    this.list.value = [...this.list.peek(), { id, name, state: "busy", ...fixed }];
    const upload = new AbortController();
    this.#uploads.set(id, upload);
    try {
      const made = await this.#make(id, file, name, upload.signal);
      this.#put(id, { state: "ready", block: made });
    } catch (error) {
      if (upload.signal.aborted) return;
      if (!(error instanceof ApiFault) && !(error instanceof Refused)) throw error;
      this.#put(id, { state: "failed", message: error.message });
    } finally {
      this.#uploads.delete(id);
    }
  }

  async #make(id: number, file: File, name: string, signal: AbortSignal): Promise<PromptBlock> {
    const isPicture = file.type.startsWith("image/") && file.type !== "image/svg+xml";
    // A picture gets smaller, however large it comes.
    if (!isPicture && file.size > MAX_BYTES) {
      throw new Refused(t("attach.large", { size: MAX_BYTES / BYTES_OF_MB }));
    }
    const bytes = await read(isPicture ? shrinkPicture(file) : copyOf(file));
    if (signal.aborted) throw new DOMException("removed", "AbortError");
    if (isPicture) this.#put(id, { picture: URL.createObjectURL(bytes) });
    const kept = await uploadFile(bytes, name, signal);
    const { media_type } = kept;
    return isPicture
      ? { type: "image", media_type, file: kept.file }
      : { type: "file", name, media_type, file: kept.file };
  }
}

/** A file that was never sent. */
class Refused extends Error {}

/** The bytes as they are now: a folder has none, and a file may change while it is sent. */
async function copyOf(file: File): Promise<Blob> {
  if (file.size === 0) throw new TypeError();
  return new Blob([await file.arrayBuffer()], { type: file.type });
}

async function read(bytes: Promise<Blob>): Promise<Blob> {
  try {
    return await bytes;
  } catch (error) {
    if (!(error instanceof DOMException) && !(error instanceof TypeError)) throw error;
    throw new Refused(t("attach.unreadable"));
  }
}
