import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";
import { defineConfig } from "vitest/config";
import { stampSources } from "./scripts/stamp.mjs";

const root = fileURLToPath(new URL(".", import.meta.url));
const shipped = fileURLToPath(
  new URL("../packages/server/src/towline_server/web/dist", import.meta.url),
);

/** What makes a rule of marked, by a name that nothing else has: one that nobody asks for may go. */
const PURE_RULE = "makeMarkedRule";

/** The mends of remend that `md/stream.ts` switches off. */
const UNUSED_MENDS = ["singleTilde", "comparisonOperators", "htmlTags", "katex", "inlineKatex"];

/** The code of remend without them. */
function dropMends(code: string): string {
  return UNUSED_MENDS.reduce((before, name) => {
    const entry = new RegExp(`,?\\{handler:\\{name:"${name}",[^{}]*\\},optionKey:"${name}"\\}`);
    if (!entry.test(before)) throw new Error(`remend looks different now: where is ${name}?`);
    return before.replace(entry, "");
  }, code).replace("=[,{handler", "=[{handler");
}

/** All text of the page's own sources, the made tables of operations left out. */
function readSources(): string {
  return readdirSync(`${root}/src`, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !/(?:types|later)\.gen\.ts$/.test(name))
    .map((name) => readFileSync(`${root}/src/${name}`, "utf8"))
    .join("\n");
}

/** The rows of `later.gen.ts` without the operations that no source names, and their structs. */
function keepAsked(code: string): string {
  const text = readSources();
  const named = new Set(text.match(/\w+/g));
  let rows = code.split("\n").filter((row) => {
    const operation = /^ {2}(\w+): \[/.exec(row)?.[1];
    return operation === undefined || text.includes(`"${operation}"`);
  });
  for (let before = 0; before !== rows.length; ) {
    before = rows.length;
    const words: string[] = rows.join("\n").match(/\w+/g) ?? [];
    const repeated = new Set(words.filter((word, at) => words.indexOf(word) !== at));
    rows = rows.filter((row) => {
      const struct = /^ {2}(\w+): "/.exec(row)?.[1];
      return struct === undefined || named.has(struct) || repeated.has(struct);
    });
  }
  return rows.join("\n");
}

/**
 * The names of texts to short ones: each stands in every book, and where it is said.
 *
 * A name that is put together at run time stays whole, and so do all that begin as it does.
 */
function shortenNames(): Map<string, string> {
  const text = readSources();
  const names = [...text.matchAll(/^ {2}"([a-z]\w*\.[\w.]+)":/gm)].map(([, name]) => name ?? "");
  const heads = [...text.matchAll(/`([a-z][\w.]*)\$\{/g)].map(([, head]) => head ?? "");
  const fixed = [...new Set(names)].filter((name) => !heads.some((head) => name.startsWith(head)));
  return new Map(fixed.sort().map((name, at) => [name, `_${at.toString(36)}`]));
}

export default defineConfig(({ mode }) => ({
  root,
  define: { __FIXTURES__: JSON.stringify(mode === "fixtures") },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [
    {
      // Of marked we use the lexer, but its one file also makes a whole converter when it is
      // loaded, which no bundler may leave out: a fifth of it.
      name: "lexer-only",
      enforce: "pre",
      transform(code: string, id: string) {
        if (!id.endsWith("/marked/lib/marked.esm.js")) return undefined;
        const start = /var (\w+)=new \w+;function \w+\(\w,\w\)\{return \1\.parse\(/.exec(
          code,
        )?.index;
        const tables = /\{normal:\w+,gfm:(\w+),(?:breaks:\w+,)?pedantic:\w+\}/g;
        const rules = [...code.matchAll(tables)].at(-1)?.index;
        const rule = /function (\w+)\(\w,\w=""\)\{let \w=typeof \w=="string"/.exec(code)?.[1];
        const names = ["Lexer", "Tokenizer"].map(
          (name) => new RegExp(`\\b\\w+ as ${name}\\b`).exec(code)?.[0],
        );
        if (start === undefined || !rules || !rule || names.includes(undefined)) {
          throw new Error("marked looks different now: find its converter and its rules");
        }
        // Always the dialect of GitHub, its line ends soft: the rules of the others go as well.
        const named = code
          .slice(0, rules)
          .replace(new RegExp(`(?<![.\\w])${rule}\\(`, "g"), `${PURE_RULE}(`);
        const lexer = (named + code.slice(rules, start))
          .replaceAll("this.options.pedantic", "!1")
          .replaceAll("this.options.breaks", "!1")
          .replaceAll("this.options.gfm", "!0")
          // No part of another maker's is put in.
          .replace(/this\.options\.(?:extensions|hooks)/g, "(void 0)")
          .replaceAll("this.options.silent", "!1")
          .replace(tables, "{normal:$1,gfm:$1}");
        return { code: `${lexer}export{${names.join(",")}};`, map: null };
      },
    },
    {
      // Of remend we use some of its mends; who is switched off in `md/stream.ts` need not come along.
      name: "used-mends",
      enforce: "pre",
      transform(code: string, id: string) {
        if (!id.endsWith("/remend/dist/index.js")) return undefined;
        return { code: dropMends(code), map: null };
      },
    },
    {
      // A server can do more than this page asks of it.
      name: "asked-operations",
      apply: "build",
      enforce: "pre",
      transform(code: string, id: string) {
        if (!id.endsWith("/protocol/later.gen.ts")) return undefined;
        return { code: keepAsked(code), map: null };
      },
    },
    {
      // The lists of words are made here, not in each browser.
      name: "word-lists",
      apply: "build",
      async transform(_code: string, id: string) {
        if (!id.endsWith("/core/words.zh.lists.ts")) return undefined;
        const { module } = await runnerImport<{ LISTS: object }>(id, { configFile: false });
        const lists = `export const LISTS = ${JSON.stringify(module.LISTS)};`;
        return { code: `export { SAID } from "./words.zh.said.ts"; ${lists}`, map: null };
      },
    },
    {
      // Vite's own loader fetches the styles of a chunk before it. Here one file has them all.
      name: "plain-import",
      enforce: "pre",
      transform(_code: string, id: string) {
        if (id !== "\0vite/preload-helper.js") return undefined;
        return { code: "export const __vitePreload = (load) => load();", map: null };
      },
    },
    {
      // Long names of texts are for who reads the sources.
      name: "short-names",
      apply: "build",
      enforce: "pre",
      transform(code: string, id: string) {
        if (!id.startsWith(root) || !/\/src\/.*\.tsx?$/.test(id)) return undefined;
        const short = shortenNames();
        const put = (whole: string, name: string): string =>
          short.has(name) ? `"${short.get(name)}"` : whole;
        return { code: code.replace(/"([a-z]\w*\.[\w.]+)"/g, put), map: null };
      },
    },
    {
      // The page compares this with the `web_build` of the server's `hello`. It stands in the
      // document and not in a script, so that an unchanged script keeps its name.
      name: "build-id",
      transformIndexHtml: (html: string) =>
        html.replace("%BUILD%", stampSources(root).slice(0, 12)),
    },
    {
      // The worker keeps a whole build, so that a window that is open can still load its parts when
      // the server holds the next one. Pictures for shop windows are not for keeping.
      name: "worker-files",
      enforce: "post", // the styles come last
      generateBundle(_options, bundle) {
        const worker = bundle["sw.js"];
        if (worker?.type !== "chunk") throw new Error("there is no worker in this build");
        const shared = worker.imports.concat(worker.dynamicImports);
        if (shared.length > 0) throw new Error(`the worker shares code with the page: ${shared}`);
        const made = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
        const files = [...made, ...readdirSync(`${root}/public`)]
          .filter((name) => /\.(?:js|css|svg|png|webmanifest)$/.test(name))
          .map((name) => `/${name}`)
          .sort();
        const shell = JSON.stringify({ build: stampSources(root).slice(0, 12), files });
        worker.code = worker.code.replace("__SHELL__", shell);
      },
    },
  ],
  // For `npm run dev`: the page from here, its data from a server that runs already.
  server: { proxy: { "/api": "http://127.0.0.1:4747" } },
  build: {
    outDir: mode === "fixtures" ? "dist-fixtures" : shipped,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      treeshake: { manualPureFunctions: [PURE_RULE] },
      input: { index: `${root}/index.html`, sw: `${root}/src/sw.ts` },
      output: {
        // What the document needs before anything is shown is one chunk. What comes later is one for
        // a stream, for the chat, the settings and the gate: small files pack badly. The rest is cut by the bundler.
        codeSplitting: {
          groups: [
            {
              name: "base",
              tags: ["$initial"],
              test: (id) => !id.includes("/src/sw"),
              priority: 4,
            },
            {
              name: "stream",
              test: /\/src\/(?:md\/stream|platform\/stream_parts|state\/presence)\.ts|\/remend\//,
              priority: 3,
            },
            { name: "gate", test: /\/src\/ui\/gate\// },
            {
              name: "settings",
              test: /\/src\/(?:ui\/settings\/|core\/words\.(?:settings|device)\.ts)/,
            },
            {
              name: "chat",
              test: /\/src\/(?:ui\/(?!gate|settings)|core\/words\.(?:later|code)\.ts|protocol\/later)/,
              priority: 2,
            },
          ],
        },
        entryFileNames: ({ name }) => (name === "sw" ? "sw.js" : "assets/[name]-[hash].js"),
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  test: {
    environment: "happy-dom",
    include: ["test/**/*.test.ts", "test/**/*.test.tsx"],
    testTimeout: 60_000,
    // Goes through the same transforms as the bundle.
    server: { deps: { inline: ["marked", "remend"] } },
  },
}));
