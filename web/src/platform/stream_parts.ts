/** What reads a stream. The stored view is shown before there is one, so this comes with the first. */

export { reduceAll } from "../core/reducer.ts";
export { SseDecoder } from "../core/sse.ts";
export { decodeFrame } from "../protocol/frames.ts";
