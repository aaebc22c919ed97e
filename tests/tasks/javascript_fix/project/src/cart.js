import { parsePrice } from "./price.js";

/** What a cart costs in cents; `lines` are pairs of a price such as "1.20" and a count. */
export function total(lines) {
  return lines.reduce((sum, [price, count]) => sum + parsePrice(price) * count, 0);
}

/** The lines sorted by price, the cheapest first; the lines given stay as they are. */
export function byPrice(lines) {
  return lines.sort(([one], [other]) => (one < other ? -1 : 1));
}
