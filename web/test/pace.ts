import type { Pace } from "../src/md/stream.ts";

/** A clock that a test moves by hand. */
export class HandPace implements Pace {
  time = 0;
  isHidden = false;
  #timers: { due: number; run: () => void }[] = [];
  #watchers = new Set<() => void>();

  now = (): number => this.time;
  hidden = (): boolean => this.isHidden;

  after = (ms: number, run: () => void): (() => void) => {
    const timer = { due: this.time + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  };

  onVisibility = (run: () => void): (() => void) => {
    this.#watchers.add(run);
    return () => this.#watchers.delete(run);
  };

  /** Lets time pass and runs what is due on the way. */
  pass(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      this.#timers.sort((a, b) => a.due - b.due);
      const next = this.#timers[0];
      if (!next || next.due > end) break;
      this.#timers.shift();
      this.time = Math.max(this.time, next.due);
      next.run();
    }
    this.time = end;
  }

  setHidden(hidden: boolean): void {
    this.isHidden = hidden;
    for (const run of this.#watchers) run();
  }

  get pending(): number {
    return this.#timers.length;
  }
}
