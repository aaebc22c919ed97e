// Makes the icons that phones want as PNG out of the one drawing, `public/icon.svg`.
//
// It knows the three shapes of that drawing and no more: a rounded ground, a stroke of cubic curves
// and filled circles. No program is needed beside Node, and the pixels are the same everywhere.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { crc32, deflateSync } from "node:zlib";

/** How fine a curve is cut into straight pieces. */
const PIECES = 24;

/** File name to size in pixels and ground: as drawn, to the edges, or none (one colour alone). */
export const ICONS = /** @type {const} */ ({
  "icon-192.png": [192, "drawn"],
  "icon-512.png": [512, "drawn"],
  "icon-maskable-512.png": [512, "full"],
  "apple-touch-icon.png": [180, "full"],
  "badge-96.png": [96, "none"],
});

/** @typedef {[x: number, y: number]} Point */
/** @typedef {{side: number, corner: number, ground: number[], ink: number[], half: number, line: Point[], dots: [x: number, y: number, r: number][]}} Drawing */

/**
 * The drawing in numbers.
 *
 * @param {string} svg
 * @returns {Drawing}
 */
export function readDrawing(svg) {
  const side = Number(find(svg, /viewBox="0 0 (\d+) /));
  const [x = 0, y = 0, ...steps] = (find(svg, /<path d="M([^"]+)"/).match(/-?[\d.]+/g) ?? []).map(
    Number,
  );
  return {
    side,
    corner: Number(find(svg, /rx="([\d.]+)"/)),
    ground: readColour(find(svg, /<rect[^>]*fill="#(\w+)"/)),
    ink: readColour(find(svg, /stroke="#(\w+)"/)),
    half: Number(find(svg, /stroke-width="([\d.]+)"/)) / 2,
    line: cutCurves([x, y], steps),
    dots: [...svg.matchAll(/<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"/g)].map(
      ([, cx, cy, r]) => [Number(cx), Number(cy), Number(r)],
    ),
  };
}

/**
 * @param {string} svg
 * @param {RegExp} pattern
 */
function find(svg, pattern) {
  const found = pattern.exec(svg)?.[1];
  if (found === undefined) throw new Error(`icon.svg has nothing like ${pattern}: teach icons.mjs`);
  return found;
}

/** @param {string} hex */
function readColour(hex) {
  const long = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
  return [0, 2, 4].map((at) => Number.parseInt(long.slice(at, at + 2), 16));
}

/**
 * Relative cubic curves as points; `c x1 y1 x2 y2 x y`, one after the other.
 *
 * @param {Point} from
 * @param {number[]} steps
 * @returns {Point[]}
 */
function cutCurves(from, steps) {
  const points = [from];
  let [x, y] = from;
  for (let at = 0; at + 5 < steps.length; at += 6) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0, x3 = 0, y3 = 0] = steps.slice(at, at + 6);
    for (let piece = 1; piece <= PIECES; piece += 1) {
      const t = piece / PIECES;
      const [a, b, c] = [3 * t * (1 - t) ** 2, 3 * t ** 2 * (1 - t), t ** 3];
      points.push([x + a * x1 + b * x2 + c * x3, y + a * y1 + b * y2 + c * y3]);
    }
    x += x3;
    y += y3;
  }
  return points;
}

/**
 * How far a point lies outside of the white lines; negative inside.
 *
 * @param {Drawing} drawing
 * @param {number} x
 * @param {number} y
 */
function beyondInk({ line, half, dots }, x, y) {
  let least = Number.POSITIVE_INFINITY;
  for (const [cx, cy, r] of dots) least = Math.min(least, Math.hypot(x - cx, y - cy) - r);
  for (let at = 1; at < line.length; at += 1) {
    const [ax, ay] = line[at - 1] ?? [0, 0];
    const [bx, by] = line[at] ?? [0, 0];
    const [dx, dy] = [bx - ax, by - ay];
    const along = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1);
    const t = Math.min(1, Math.max(0, along));
    least = Math.min(least, Math.hypot(x - ax - t * dx, y - ay - t * dy) - half);
  }
  return least;
}

/**
 * How far a point lies outside of the ground.
 *
 * @param {Drawing} drawing
 * @param {number} x
 * @param {number} y
 */
function beyondGround({ side, corner }, x, y) {
  const inner = side / 2 - corner;
  const [dx, dy] = [Math.abs(x - side / 2) - inner, Math.abs(y - side / 2) - inner];
  return Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - corner;
}

/**
 * Four bytes for each pixel, row by row.
 *
 * @param {Drawing} drawing
 * @param {number} size
 * @param {"drawn" | "full" | "none"} kind
 * @returns {Buffer}
 */
export function paint(drawing, size, kind) {
  const scale = size / drawing.side;
  /** @param {number} beyond */
  const covered = (beyond) => Math.min(1, Math.max(0, 0.5 - beyond * scale));
  const pixels = Buffer.alloc(size * size * 4);
  for (let at = 0; at < size * size; at += 1) {
    const x = ((at % size) + 0.5) / scale;
    const y = (Math.floor(at / size) + 0.5) / scale;
    const ink = covered(beyondInk(drawing, x, y));
    const ground = kind === "drawn" ? covered(beyondGround(drawing, x, y)) : 1;
    for (const channel of [0, 1, 2]) {
      const [under = 0, over = 0] = [drawing.ground[channel], drawing.ink[channel]];
      pixels[at * 4 + channel] = kind === "none" ? over : Math.round(under + (over - under) * ink);
    }
    pixels[at * 4 + 3] = Math.round(255 * (kind === "none" ? ink : ground));
  }
  return pixels;
}

/**
 * A PNG of such pixels.
 *
 * @param {Buffer} pixels
 * @param {number} size
 */
export function packPng(pixels, size) {
  const rows = Array.from({ length: size }, (_, row) =>
    Buffer.concat([Buffer.of(0), pixels.subarray(row * size * 4, (row + 1) * size * 4)]),
  );
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set([8, 6], 8);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(Buffer.concat(rows), { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/**
 * @param {string} name
 * @param {Buffer} body
 */
function chunk(name, body) {
  const named = Buffer.concat([Buffer.from(name, "latin1"), body]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const place = fileURLToPath(new URL("../public", import.meta.url));
  const drawing = readDrawing(readFileSync(join(place, "icon.svg"), "utf8"));
  for (const [name, [size, kind]] of Object.entries(ICONS)) {
    writeFileSync(join(place, name), packPng(paint(drawing, size, kind), size));
  }
}
