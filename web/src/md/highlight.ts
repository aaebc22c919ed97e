/** Colours for code blocks: loaded when the first one has settled, done when the page is idle. */

import { pageIdle, type WhenIdle } from "../platform/idle.ts";

/** Longer code keeps its plain look: colouring it would be felt. */
const MAX_CODE_UNITS = 20 * 1024;

/** Makes the nodes of coloured code; nothing for a language that is not known. */
export type Colour = (code: string, language: string) => Node | undefined;

const loadColours = async (): Promise<Colour> => (await import("./languages.ts")).colour;

/** Colours the code blocks of a settled node, itself included. */
export function colourWithin(node: Element): void {
  for (const code of node.querySelectorAll<HTMLElement>("pre > code")) colourCode(code);
}

/** Colours one settled code block, once, in idle time; its text and height stay the same. */
export function colourCode(
  code: HTMLElement,
  whenIdle: WhenIdle = pageIdle,
  load: () => Promise<Colour> = loadColours,
): void {
  const { language } = code.dataset;
  const source = code.textContent ?? "";
  if (!language || source.length > MAX_CODE_UNITS) return;
  whenIdle(() => {
    load().then(
      (colour) => {
        const made = code.isConnected ? colour(source, language) : undefined;
        if (made) code.replaceChildren(made);
      },
      // Without the chunk (offline, or an update removed it) the code stays plain and readable.
      () => undefined,
    );
  });
}
