/** Server-sent events: bytes in any cut, frames out. */

/** One event of the stream as it was sent. */
export interface Frame {
  /** Its name; empty for the usual kind. */
  event: string;
  /** The `data:` lines, joined with a line feed. */
  data: string;
  /** The frame's own `id:`; absent when it had none (the cursor does not move). */
  id?: string;
}

/** The most UTF-16 units of one frame: eight times the largest event of a session. */
export const MAX_FRAME_UNITS = 8 * 1024 * 1024;

/** A frame over the bound: what sends it does not speak this stream. */
export class FrameTooLong extends Error {
  constructor(units: number) {
    super(`A frame is longer than ${units} characters; the server does not speak this stream.`);
    this.name = "FrameTooLong";
  }
}

const CR = 13;
const LF = 10;

/**
 * Cuts a byte stream into frames.
 *
 * Lines end in CR, LF or CRLF, in any mixture; a CR at the end of a chunk ends its line at once, and
 * a LF that opens the next chunk is then part of it.
 */
export class SseDecoder {
  /** The last `retry:` in milliseconds; absent before one came. */
  retry: number | undefined;

  readonly #maxUnits: number;
  readonly #utf8 = new TextDecoder();
  /** The unfinished line, in the pieces it came in: a long one is never scanned twice. */
  #pieces: string[] = [];
  #held = 0;
  #afterCr = false;
  #event = "";
  #data: string[] = [];
  #id: string | undefined;

  constructor(maxUnits = MAX_FRAME_UNITS) {
    this.#maxUnits = maxUnits;
  }

  /**
   * The frames that these bytes complete; what is unfinished waits for the next call.
   *
   * @throws FrameTooLong when a frame is over the bound
   */
  feed(bytes: Uint8Array): Frame[] {
    const text = this.#utf8.decode(bytes, { stream: true });
    const frames: Frame[] = [];
    let start = 0;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      if (unit === LF && this.#afterCr) {
        start = at + 1;
      } else if (unit === LF || unit === CR) {
        this.#keep(text.slice(start, at));
        start = at + 1;
        const frame = this.#endLine();
        if (frame) frames.push(frame);
      }
      this.#afterCr = unit === CR;
    }
    this.#keep(text.slice(start));
    return frames;
  }

  #keep(piece: string): void {
    if (piece === "") return;
    this.#held += piece.length;
    if (this.#held > this.#maxUnits) throw new FrameTooLong(this.#maxUnits);
    this.#pieces.push(piece);
  }

  #endLine(): Frame | undefined {
    const line = this.#pieces.join("");
    this.#pieces = [];
    if (line === "") return this.#dispatch();
    // Only data is held beyond its line.
    if (!this.#readField(line)) this.#held -= line.length;
    return undefined;
  }

  /** Whether the line was data. */
  #readField(line: string): boolean {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const raw = colon < 0 ? "" : line.slice(colon + 1);
    const value = raw.startsWith(" ") ? raw.slice(1) : raw;
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
    return name === "data";
  }

  #dispatch(): Frame | undefined {
    const whole = this.#data.length > 0;
    const frame: Frame = { event: this.#event, data: this.#data.join("\n") };
    if (this.#id !== undefined) frame.id = this.#id;
    this.#held = 0;
    this.#event = "";
    this.#data = [];
    this.#id = undefined;
    return whole ? frame : undefined;
  }
}
