/** What was typed and not yet taken by the server: one draft for each session and one for a new one. */

/** The part of `localStorage` that drafts need. */
export interface Shelf {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

const PREFIX = "towline.draft.";
const NEW = "new.";

/** Drafts on a shelf. A shelf that refuses (private mode, full) keeps them in memory. */
export class Drafts {
  readonly #shelf: Shelf;
  readonly #whose: () => string;
  readonly #memory = new Map<string, string>();

  /** `whose` says who writes: a session is one user's anyway, a new one is so by its key. */
  constructor(shelf: Shelf, whose: () => string) {
    this.#shelf = shelf;
    this.#whose = whose;
  }

  #key(session: string | null): string {
    return PREFIX + (session ?? NEW + this.#whose());
  }

  /** The draft of a session; `null` names a new one. */
  read(session: string | null): string {
    const key = this.#key(session);
    try {
      return this.#memory.get(key) ?? this.#shelf.getItem(key) ?? "";
    } catch {
      return "";
    }
  }

  write(session: string | null, text: string): void {
    const key = this.#key(session);
    this.#memory.set(key, text);
    try {
      if (text) this.#shelf.setItem(key, text);
      else this.#shelf.removeItem(key);
    } catch {
      // The copy in memory holds until the page is left.
    }
  }

  /** Forgets a draft that the server has taken, unless something else was typed since. */
  accepted(session: string | null, text: string): void {
    if (this.read(session) === text) this.write(session, "");
  }
}
