import { expect, test } from "vitest";
import { type Frame, FrameTooLong, SseDecoder } from "../src/core/sse.ts";
import { seeded } from "./seeded.ts";

const STREAM = [
  "retry: 3000\n\n",
  'event: hello\ndata: {"log":"a"}\n\n',
  ": ping\n\n",
  'id: 7\r\ndata: {"text":"日本 \u{1d518} x"}\r\n\r\n',
  "data: one\rdata:two\r\r",
  "data: {}\r\n\n",
  "event: gap\r\ndata\n\r\n",
  "id: 8\n\n",
  "unknown: field\ndata:  kept space\n\n",
  "data: never finished",
].join("");

const FRAMES: Frame[] = [
  { event: "hello", data: '{"log":"a"}' },
  { event: "", data: '{"text":"日本 \u{1d518} x"}', id: "7" },
  { event: "", data: "one\ntwo" },
  { event: "", data: "{}" },
  { event: "gap", data: "" },
  { event: "", data: " kept space" },
];

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function decodeIn(pieces: Uint8Array[]): { frames: Frame[]; retry: number | undefined } {
  const decoder = new SseDecoder();
  const frames = pieces.flatMap((piece) => decoder.feed(piece));
  return { frames, retry: decoder.retry };
}

// rules: C3.4
test("a stream of mixed line ends gives its frames, ids only where they stand", () => {
  expect(decodeIn([bytes(STREAM)])).toEqual({ frames: FRAMES, retry: 3000 });
});

test("a stream cut at any byte gives the same frames", () => {
  const whole = bytes(STREAM);
  for (let cut = 0; cut <= whole.length; cut++) {
    expect(decodeIn([whole.subarray(0, cut), whole.subarray(cut)]).frames).toEqual(FRAMES);
  }
});

test("a stream that comes byte by byte or in any pieces gives the same frames", () => {
  const whole = bytes(STREAM);
  const random = seeded(11);
  for (let round = 0; round < 200; round++) {
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < whole.length; ) {
      const size = round === 0 ? 1 : 1 + random(9);
      pieces.push(whole.subarray(at, at + size));
      at += size;
    }
    expect(decodeIn(pieces).frames).toEqual(FRAMES);
  }
});

test("a byte order mark at the start is no part of the first field", () => {
  const mark = new Uint8Array([0xef, 0xbb, 0xbf]);
  expect(decodeIn([mark, bytes("data: x\n\n")]).frames).toEqual([{ event: "", data: "x" }]);
});

test("a frame ends as soon as its blank line is there, also when that ends in CR", () => {
  expect(new SseDecoder().feed(bytes("data: x\r\r"))).toHaveLength(1);
});

test("an event of a mebibyte comes through in small pieces", () => {
  const text = "é".repeat(512 * 1024);
  const decoder = new SseDecoder();
  const whole = bytes(`data: ${text}\n\n`);
  const frames: Frame[] = [];
  for (let at = 0; at < whole.length; at += 1_000) {
    frames.push(...decoder.feed(whole.subarray(at, at + 1_000)));
  }
  expect(frames).toEqual([{ event: "", data: text }]);
});

test("a frame over the bound ends the stream, in one line or in many", () => {
  expect(() => new SseDecoder(100).feed(bytes(`data: ${"x".repeat(101)}`))).toThrow(FrameTooLong);
  expect(() => new SseDecoder(100).feed(bytes("data: 0123456789\n".repeat(12)))).toThrow(
    FrameTooLong,
  );
});

// rules: C3.7
test("comments and frames that are done do not count for the bound", () => {
  const decoder = new SseDecoder(100);
  decoder.feed(bytes(": a comment to keep the line warm\n\n".repeat(50)));
  decoder.feed(bytes(": another without a blank line after it\n".repeat(50)));
  expect(decoder.feed(bytes("data: 0123456789\n\n".repeat(50)))).toHaveLength(50);
});
