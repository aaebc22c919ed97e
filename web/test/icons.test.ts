import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { ICONS, packPng, paint, readDrawing } from "../scripts/icons.mjs";

const PUBLIC = join(import.meta.dirname, "../public");

/** What is in a PNG as our script packs it: its size, and its pixels in rows. */
function unpack(png: Buffer): { size: [number, number]; rows: Buffer } {
  const length = png.readUInt32BE(33);
  expect(png.toString("latin1", 37, 41)).toBe("IDAT");
  const rows = inflateSync(png.subarray(41, 41 + length));
  return { size: [png.readUInt32BE(16), png.readUInt32BE(20)], rows };
}

// Compressed bytes may differ between versions of Node, so the pixels are compared.
test("the icons are what the drawing says", () => {
  const drawing = readDrawing(readFileSync(join(PUBLIC, "icon.svg"), "utf8"));
  for (const [name, [size, kind]] of Object.entries(ICONS)) {
    const found = unpack(readFileSync(join(PUBLIC, name)));
    expect(found.size, name).toEqual([size, size]);
    const made = unpack(packPng(paint(drawing, size, kind), size));
    expect(found.rows.equals(made.rows), `${name}: run npm run icons`).toBe(true);
  }
});

test("a drawing with other shapes is not guessed at", () => {
  expect(() => readDrawing("<svg/>")).toThrow("icon.svg has nothing like");
});

test("the manifest names what is there, in the sizes that it says", () => {
  const told = JSON.parse(readFileSync(join(PUBLIC, "manifest.webmanifest"), "utf8"));
  const icons: { src: string; sizes: string; purpose: string }[] = told.icons;
  expect(icons.map(({ purpose, sizes }) => `${purpose} ${sizes}`)).toEqual([
    "any 192x192",
    "any 512x512",
    "maskable 512x512",
    "any any",
  ]);
  const pictures: { src: string; sizes: string; form_factor?: string }[] = [
    ...icons,
    ...told.screenshots,
  ];
  for (const { src, sizes } of pictures.filter(({ src }) => src.endsWith(".png"))) {
    const png = readFileSync(join(PUBLIC, src));
    expect(`${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`, src).toBe(sizes);
  }
  expect(told.screenshots.map(({ form_factor }: { form_factor: string }) => form_factor)).toEqual([
    "narrow",
    "wide",
  ]);
});
