import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { emptyView, reduce } from "../src/core/reducer.ts";
import { decodeFrame } from "../src/protocol/events.ts";
import type { SessionView } from "../src/protocol/types.gen.ts";

interface Vector {
  name: string;
  note: string;
  frames: { event: string; data: unknown }[];
  broken: number;
  view: SessionView;
}

const FOLDER = join(import.meta.dirname, "../../packages/protocol/vectors");
const VECTORS = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".json"))
  .sort()
  .map((name): Vector => JSON.parse(readFileSync(join(FOLDER, name), "utf8")));

function run(frames: Vector["frames"]): { view: SessionView; broken: number } {
  let view = emptyView();
  let broken = 0;
  for (const { event, data } of frames) {
    const frame = decodeFrame(event, JSON.stringify(data));
    if (frame.kind === "broken") broken += 1;
    else view = reduce(view, frame);
  }
  return { view, broken };
}

// rules: C1.5 C1.6 C1.8 C1.11 C1.12 C5.8
describe.each(VECTORS)("$name: $note", ({ frames, view, broken }) => {
  test("reduces to the view of the vector", () => {
    const made = run(frames);
    expect(made.view).toEqual(view);
    expect(made.broken).toBe(broken);
  });

  test("a view that went over the wire goes on as if it had not", () => {
    for (let cut = 0; cut <= frames.length; cut += 1 + Math.floor(frames.length / 12)) {
      const first = run(frames.slice(0, cut)).view;
      let later: SessionView = JSON.parse(JSON.stringify(first));
      for (const { event, data } of frames.slice(cut)) {
        later = reduce(later, decodeFrame(event, JSON.stringify(data)));
      }
      expect(later).toEqual(view);
    }
  });

  test("stored events that come again change nothing", () => {
    if (view.lost) return expect(run(frames).view.lost).toBe(true);
    const made = run(frames).view;
    let again = made;
    for (const { event, data } of frames) {
      const frame = decodeFrame(event, JSON.stringify(data));
      if (frame.kind === "envelope" && typeof frame.value.seq === "number")
        again = reduce(again, frame);
    }
    expect(again).toBe(made);
  });
});

test("there are vectors to read", () => {
  expect(VECTORS.length).toBeGreaterThan(20);
});
