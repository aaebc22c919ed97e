import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { colourWithin } from "../../md/highlight.ts";
import { renderMarkdown } from "../../md/render.ts";
import type { MarkdownStream } from "../../md/stream.ts";

interface MarkdownProps {
  text: string;
  /** Whether more text may come. */
  open: boolean;
}

type StreamModule = typeof import("../../md/stream.ts");

let streamer: StreamModule | undefined;

/** Fetches the streamer: not needed for what is finished, so not part of the first load. */
export async function preloadStreamer(): Promise<void> {
  streamer ??= await import("../../md/stream.ts");
}

/** One text in its host element: plain at worst, streamed if it grows, rendered when it is whole. */
class Writer {
  readonly #host: HTMLElement;
  #stream: MarkdownStream | undefined;
  #text = "";
  #done = false;

  constructor(host: HTMLElement) {
    this.#host = host;
  }

  show(text: string, open: boolean): void {
    if (this.#done && text === this.#text) return;
    if (this.#done) this.#stream = undefined;
    this.#done = !open;
    if (open) this.#grow(text);
    else this.#finish(text);
    this.#text = text;
  }

  dispose(): void {
    this.#stream?.dispose();
  }

  #grow(text: string): void {
    if (!this.#stream && streamer) {
      this.#stream = new streamer.MarkdownStream(this.#host, colourWithin);
      this.#text = "";
    }
    if (!this.#stream) this.#host.textContent = text;
    else if (text.startsWith(this.#text)) this.#stream.push(text.slice(this.#text.length));
    else this.#stream.replace(text);
  }

  #finish(text: string): void {
    if (this.#stream) {
      this.#stream.end(text);
    } else {
      this.#host.replaceChildren(...renderMarkdown(text));
      colourWithin(this.#host);
    }
  }
}

/** A text as Markdown. Its element belongs to the writer, not to the view library. */
export function Markdown({ text, open }: MarkdownProps) {
  const host = useRef<HTMLDivElement>(null);
  const writer = useRef<Writer | null>(null);
  const [, setLoaded] = useState(streamer !== undefined);

  useLayoutEffect(() => {
    if (!host.current) return;
    writer.current ??= new Writer(host.current);
    writer.current.show(text, open);
  });
  useLayoutEffect(() => {
    if (open) {
      preloadStreamer().then(
        () => setLoaded(true),
        () => undefined,
      );
    }
    return () => writer.current?.dispose();
  }, []);

  return <div ref={host} class={open ? "md streaming" : "md"} />;
}
