/** Character references in running text, without a parser that could make elements. */

/** Those that writers of Markdown use by name; others stay as they were written. */
const NAMED: Record<string, string> = {
  amp: "&",
  apos: "'",
  bull: "\u2022",
  copy: "\u00a9",
  deg: "\u00b0",
  euro: "\u20ac",
  ge: "\u2265",
  gt: ">",
  hellip: "\u2026",
  larr: "\u2190",
  le: "\u2264",
  lt: "<",
  mdash: "\u2014",
  middot: "\u00b7",
  nbsp: "\u00a0",
  ndash: "\u2013",
  quot: '"',
  rarr: "\u2192",
  times: "\u00d7",
};

const REFERENCE = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/g;
const LAST_CODE_POINT = 0x10ffff;

function decodeNumber(code: number): string {
  const real = code > 0 && code <= LAST_CODE_POINT && !(code >= 0xd800 && code <= 0xdfff);
  return real ? String.fromCodePoint(code) : "\ufffd";
}

/** The text with its references replaced; unknown names stay as they were written. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(REFERENCE, (whole, decimal?: string, hex?: string, name?: string) => {
    if (decimal) return decodeNumber(Number(decimal));
    if (hex) return decodeNumber(Number.parseInt(hex, 16));
    return NAMED[name ?? ""] ?? whole;
  });
}
