/** Text that a person decides on: what would hide or reorder in it is spelled out. */

/**
 * Controls but the line feed and the tab, line separators, and what a screen is told not to draw:
 * direction marks, joiners, variation selectors, tags, fillers, soft hyphens. The anchors of
 * annotations (U+FFF9-FFFB) are as invisible, but not in that property.
 */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\p{DI}\uFFF9-\uFFFB]/gu;

/** The same, or a whole emoji with the selectors and joiners that make it one. */
const HIDDEN_OR_EMOJI = new RegExp(
  `(${"_(?:\\u200D_)*".replaceAll("_", "\\p{ExtPict}[\\uFE0E\\uFE0F]?\\p{EMod}?")}|[\\d#*]\\uFE0F\\u20E3)|${HIDDEN.source}`,
  "gu",
);

function spell(text: string): string {
  return `⟨U+${text.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/**
 * The text with each character that shows nothing, or moves others, as `⟨U+202E⟩`: for commands,
 * previews, rules, titles of calls and faults.
 */
export function visible(text: string): string {
  return text.replace(HIDDEN, spell);
}

/** The same for the names of things: emoji stay whole. */
export function visibleName(text: string): string {
  return text.replace(HIDDEN_OR_EMOJI, (found, emoji?: string) => emoji ?? spell(found));
}
