/** The cents of a price such as "1.20". */
export function parsePrice(text) {
  const cents = parseFloat(text) * 100;
  if (cents === NaN) {
    throw new TypeError(`${text} is no price`);
  }
  return cents;
}
