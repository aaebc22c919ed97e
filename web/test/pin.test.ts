import { describe, expect, test } from "vitest";
import { Pin } from "../src/ui/hooks/pin.ts";

/** A scroller whose browser clamps and tells, as a real one does. */
class Screen {
  clientHeight = 600;
  changes: boolean[] = [];
  writes = 0;
  readonly pin: Pin;
  #top = 0;
  #height: number;

  constructor(height = 2_000) {
    this.#height = height;
    this.pin = new Pin(this, (pinned) => this.changes.push(pinned));
    this.pin.toEnd();
  }

  get scrollHeight(): number {
    return this.#height;
  }

  get scrollTop(): number {
    return this.#top;
  }

  set scrollTop(top: number) {
    this.writes += 1;
    this.#top = Math.max(0, Math.min(top, this.#height - this.clientHeight));
  }

  get toEnd(): number {
    return this.#height - this.clientHeight - this.#top;
  }

  /** The reader moves the text; positive is down. */
  read(by: number): void {
    this.#top = Math.max(0, Math.min(this.#top + by, this.#height - this.clientHeight));
    this.pin.scrolled();
  }

  /** The text grows or shrinks; the browser clamps and tells before the observer does. */
  grow(by: number): void {
    this.#height += by;
    const most = this.#height - this.clientHeight;
    if (this.#top > most) {
      this.#top = most;
      this.pin.scrolled();
    }
    this.pin.resized();
  }
}

// rules: W02
test("it starts at the end and stays there while the text grows", () => {
  const screen = new Screen();
  for (let round = 0; round < 80; round++) {
    screen.grow(round % 7 === 3 ? -30 : 37);
    expect(screen.toEnd).toBe(0);
  }
  expect(screen.changes).toEqual([]);
});

// rules: W01
describe("a reader who moved up", () => {
  test("keeps the place while the text grows, settles and ends", () => {
    const screen = new Screen();
    screen.read(-300);
    const { scrollTop } = screen;
    screen.writes = 0;
    for (const by of [40, 200, -25, 900]) screen.grow(by);
    expect(screen.scrollTop).toBe(scrollTop);
    expect(screen.writes).toBe(0);
    expect(screen.changes).toEqual([false]);
  });

  test("is believed at once, even a few pixels above the end", () => {
    const screen = new Screen();
    screen.read(-10);
    screen.grow(40);
    expect(screen.pin.pinned).toBe(false);
  });

  test("is believed by wheel, finger and key before anything has moved", () => {
    const screen = new Screen();
    screen.pin.movedUp();
    screen.grow(40);
    expect(screen.toEnd).toBe(40);
  });

  test("follows again on reaching the end", () => {
    const screen = new Screen();
    screen.read(-500);
    screen.read(300);
    expect(screen.pin.pinned).toBe(false);
    screen.read(170);
    expect(screen.pin.pinned).toBe(true);
    screen.grow(100);
    expect(screen.toEnd).toBe(0);
  });

  test("follows again by the button", () => {
    const screen = new Screen();
    screen.read(-500);
    screen.pin.toEnd();
    expect(screen.toEnd).toBe(0);
    expect(screen.changes).toEqual([false, true]);
  });
});

test("a layout that moves the top is nobody's wish", () => {
  const screen = new Screen();
  screen.grow(-200);
  expect(screen.pin.pinned).toBe(true);
  screen.clientHeight = 300;
  screen.pin.resized();
  expect(screen.toEnd).toBe(0);
});

test("a text that fits has no up to move to", () => {
  const screen = new Screen(400);
  screen.pin.movedUp();
  expect(screen.pin.pinned).toBe(true);
});

// rules: W01
test("who does not want to follow stays where they are, and is told that there is more", () => {
  let isFollowed = true;
  const scroller = { scrollTop: 0, scrollHeight: 1_000, clientHeight: 500 };
  const changes: boolean[] = [];
  const pin = new Pin(
    scroller,
    (pinned) => changes.push(pinned),
    () => isFollowed,
  );
  pin.toEnd();
  scroller.scrollTop = 500;
  isFollowed = false;
  scroller.scrollHeight = 2_000;
  pin.resized();
  expect(scroller.scrollTop).toBe(500);
  expect(changes).toEqual([false]);
});
