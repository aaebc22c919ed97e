// The stamp of the page's sources: a SHA-256 that says which sources `dist` was built from.
// The recipe stands in README.md, so that it can be recomputed without Node.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const FILES = [
  "index.html",
  "package-lock.json",
  "package.json",
  "tsconfig.json",
  "vite.config.ts",
];
const FOLDERS = ["public", "src"];

/**
 * Every file under a folder, as paths relative to the root with `/` between the parts.
 *
 * @param {string} root
 * @param {string} folder
 * @returns {string[]}
 */
function listFiles(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith("."))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? listFiles(root, path) : [path];
    });
}

/**
 * The hex digest over path, NUL, bytes, NUL of each source file in the order of the paths' bytes.
 *
 * @param {string} root the `web` folder
 * @returns {string}
 */
export function stampSources(root) {
  const paths = [...FILES, ...FOLDERS.flatMap((folder) => listFiles(root, folder))];
  paths.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const hash = createHash("sha256");
  for (const path of paths) {
    hash
      .update(path)
      .update("\0")
      .update(readFileSync(join(root, path)))
      .update("\0");
  }
  return hash.digest("hex");
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const target = join(root, "../packages/server/src/towline_server/web/dist/build.json");
  const stamp = stampSources(root);
  if (process.argv.includes("--write")) {
    writeFileSync(target, `${JSON.stringify({ sources: stamp }, null, 2)}\n`);
  } else {
    const { sources } = JSON.parse(readFileSync(target, "utf8"));
    if (sources !== stamp) {
      console.error(
        `dist was built from other sources (${sources.slice(0, 12)}, now ${stamp.slice(0, 12)}): run npm run build`,
      );
      process.exit(1);
    }
  }
}
