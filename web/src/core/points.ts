/** Code points: what the wire counts, where JavaScript counts UTF-16 units (C1.12). */

/** How many code points a text has. */
export function countPoints(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length - 1; at++) {
    const pair =
      (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
    if (pair) {
      count -= 1;
      at += 1;
    }
  }
  return count;
}

/** The text after its first `points` code points. */
export function dropPoints(text: string, points: number): string {
  if (points <= 0) return text;
  let at = 0;
  for (let left = points; left > 0 && at < text.length; left--) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return text.slice(at);
}

/** The first `points` code points of a text. */
export function takePoints(text: string, points: number): string {
  return text.slice(0, text.length - dropPoints(text, points).length);
}
