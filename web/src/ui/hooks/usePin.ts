import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Pin } from "./pin.ts";

/** A finger that goes down the glass moves the text up; less than this is a tremble, in pixels. */
const DRAG_PX = 4;

/** What opens steps that are over; who opens those that go on sees their head stay. */
const OPENS = ".doings:not(.live) > .activity > [aria-expanded=false]";

const UP_KEYS = new Set(["PageUp", "Home", "ArrowUp"]);

/** What the page does with a followed scroller. */
export interface Followed {
  scroller: RefObject<HTMLDivElement | null>;
  column: RefObject<HTMLDivElement | null>;
  /** Whether the view follows the end. */
  pinned: boolean;
  toEnd: () => void;
}

/**
 * Follows the end of a growing column until the reader moves up.
 *
 * @param key names the column shown
 * @param follows whether growth moves the view of who is at the end
 */
export function usePin(key: string, follows: () => boolean): Followed {
  const scroller = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const pin = useRef<Pin | null>(null);
  const [pinned, setPinned] = useState(true);

  useEffect(() => {
    const element = scroller.current;
    const content = column.current;
    if (!element || !content) return;
    const follow = new Pin(element, setPinned, follows);
    pin.current = follow;
    setPinned(true);
    follow.toEnd();
    const done = listen(element, follow);
    const watcher = new ResizeObserver(() => follow.resized());
    watcher.observe(content);
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      done();
    };
  }, [key]);

  return { scroller, column, pinned, toEnd: () => pin.current?.toEnd() };
}

function listen(element: HTMLElement, pin: Pin): () => void {
  const stop = new AbortController();
  const options = { passive: true, signal: stop.signal };
  let touchY = 0;
  element.addEventListener("scroll", () => pin.scrolled(), options);
  element.addEventListener(
    "wheel",
    (event) => {
      if (event.deltaY < 0) pin.movedUp();
    },
    options,
  );
  element.addEventListener(
    "touchstart",
    (event) => {
      touchY = event.touches[0]?.clientY ?? 0;
    },
    options,
  );
  element.addEventListener(
    "touchmove",
    (event) => {
      const y = event.touches[0]?.clientY ?? 0;
      if (y - touchY > DRAG_PX) pin.movedUp();
    },
    options,
  );
  element.addEventListener(
    "click",
    ({ target }) => {
      // Who opens what is over wants to read it from its head.
      if (target instanceof Element && target.closest(OPENS)) pin.movedUp();
    },
    { ...options, capture: true }, // before it is open
  );
  element.addEventListener(
    "keydown",
    (event) => {
      if (UP_KEYS.has(event.key)) pin.movedUp();
    },
    options,
  );
  return () => stop.abort();
}
