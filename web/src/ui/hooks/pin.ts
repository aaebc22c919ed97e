/** Following the end of a growing column: by what the reader does, never by where things are. */

/** This near to the end counts as at the end, in CSS pixels. */
const NEAR_PX = 48;

/** What the pin needs to know of the scroller. */
export interface Scroller {
  scrollTop: number;
  readonly scrollHeight: number;
  readonly clientHeight: number;
}

/**
 * Whether the view follows the end.
 *
 * It starts pinned. Only a move up by the reader unpins; reaching the end pins again. Growing content
 * moves `scrollTop` of nobody who reads.
 */
export class Pin {
  pinned = true;
  readonly #scroller: Scroller;
  readonly #changed: (pinned: boolean) => void;
  readonly #follows: () => boolean;
  #top = 0;
  #height = 0;

  /**
   * @param follows whether growth moves the view of who is at the end
   */
  constructor(
    scroller: Scroller,
    changed: (pinned: boolean) => void,
    follows: () => boolean = () => true,
  ) {
    this.#scroller = scroller;
    this.#changed = changed;
    this.#follows = follows;
  }

  /** The scroller moved, for whatever cause. */
  scrolled(): void {
    const { scrollTop, scrollHeight } = this.#scroller;
    // A layout that changes the height may move the top by itself: that is nobody's wish.
    const moved = scrollHeight === this.#height ? scrollTop - this.#top : 0;
    if (moved < 0 && this.#toGo() > 1) this.#set(false);
    else if (this.#toGo() <= (moved > 0 ? NEAR_PX : 1)) this.#set(true);
    this.#remember();
  }

  /** The reader moved up by wheel, finger or key; the scroll event may come later or not at all. */
  movedUp(): void {
    if (this.#scroller.scrollHeight > this.#scroller.clientHeight) this.#set(false);
  }

  /** The column or the scroller has another size: the end is somewhere else. */
  resized(): void {
    if (this.pinned && this.#follows()) {
      this.toEnd();
      return;
    }
    if (this.#toGo() > NEAR_PX) this.#set(false);
    this.#remember();
  }

  /** Goes to the end and follows it. */
  toEnd(): void {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#set(true);
    this.#remember();
  }

  /** Pixels to the end. */
  #toGo(): number {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    return scrollHeight - clientHeight - scrollTop;
  }

  #remember(): void {
    this.#top = this.#scroller.scrollTop;
    this.#height = this.#scroller.scrollHeight;
  }

  #set(pinned: boolean): void {
    if (pinned === this.pinned) return;
    this.pinned = pinned;
    this.#changed(pinned);
  }
}
