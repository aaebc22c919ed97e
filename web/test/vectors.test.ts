import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { emptyView } from "../src/core/empty_view.ts";
import { showOutgoing } from "../src/core/outgoing.ts";
import { NOTHING_SHOWN, type Presentation, present } from "../src/core/presentation.ts";
import { reduce, reduceAll } from "../src/core/reducer.ts";
import { decodeFrame, type Incoming } from "../src/protocol/frames.ts";
import type { Block, OutgoingPrompt, SessionView } from "../src/protocol/types.gen.ts";
import { seeded } from "./seeded.ts";

interface Vector {
  name: string;
  note: string;
  frames: { event: string; data: unknown }[];
  broken: number;
  view: SessionView;
}

const FOLDER = join(import.meta.dirname, "../../packages/protocol/vectors");
const VECTORS = load<Vector>(".");

function load<T>(folder: string): T[] {
  return readdirSync(join(FOLDER, folder))
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name): T => JSON.parse(readFileSync(join(FOLDER, folder, name), "utf8")));
}

function decode(frames: Vector["frames"]): Incoming[] {
  return frames.map(({ event, data }) => decodeFrame(event, JSON.stringify(data)));
}

/** The frames in chunks, as long as chance has it. */
function fold(frames: readonly Incoming[], draw: (bound: number) => number): SessionView {
  let view = emptyView();
  for (let at = 0; at < frames.length; ) {
    const size = 1 + draw(draw(2) ? 3 : frames.length);
    view = reduceAll(view, frames.slice(at, at + size));
    at += size;
  }
  return view;
}

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

  test("chunks of any size make the same view", () => {
    const incoming = decode(frames);
    for (let seed = 0; seed < 12; seed += 1) expect(fold(incoming, seeded(seed))).toEqual(view);
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
  expect(VECTORS.length).toBeGreaterThan(40);
});

test("whatever a line makes of a log, its chunks make the same view as its frames", () => {
  for (const [number, { frames }] of VECTORS.entries()) {
    const draw = seeded(number);
    const stream = decode(frames);
    for (let change = 0; change < 4; change += 1) {
      const at = draw(stream.length);
      const length = 1 + draw(4);
      if (draw(2)) stream.splice(at, length);
      else stream.splice(at, 0, ...stream.slice(Math.max(0, at - length), at));
    }
    const single = stream.reduce(reduce, emptyView());
    expect(fold(stream, draw)).toEqual(single);
  }
});

interface Screen {
  name: string;
  note: string;
  steps: {
    presentation: Presentation;
    frames: Vector["frames"];
    messages: [string | null, Block[]][];
    open_messages: [string, Block[]][];
  }[];
}

test.each(load<Screen>("presentation"))("what is shown, $name: $note", ({ steps }) => {
  let shown = NOTHING_SHOWN;
  let view = emptyView();
  let made = view;
  for (const step of steps) {
    view = reduceAll(view, decode(step.frames));
    [shown, made] = present(shown, view, step.presentation);
    expect(made.messages.map((entry) => [entry.id, entry.content])).toEqual(step.messages);
    expect(made.open_messages.map((entry) => [entry.id, entry.content])).toEqual(
      step.open_messages,
    );
  }
});

interface Sent {
  name: string;
  note: string;
  frames: Vector["frames"];
  entries: OutgoingPrompt[];
  outgoing: OutgoingPrompt[];
}

// rules: C4.9
test.each(load<Sent>("outgoing"))("on its way, $name: $note", ({ frames, entries, outgoing }) => {
  const view = reduceAll(emptyView(), decode(frames));
  const made = showOutgoing(view, entries);
  expect(made.outgoing).toEqual(outgoing);
  expect(showOutgoing(made, entries)).toBe(made);
  expect(showOutgoing(made, [])).toEqual(view);
});
