/** The highlighter and its languages: a chunk of its own. */

import { colourBy, type Grammar } from "./colouring.ts";
import * as grammars from "./grammars.ts";

/** Each language by its grammar. */
const LANGUAGES: Record<string, () => Grammar> = { ...grammars };

/** Other names, and languages that one of these grammars colours well enough. */
const ALSO: Record<string, string[]> = {
  python: ["py", "gyp", "ipython"],
  css: ["scss", "less"],
  pairs: ["json", "jsonc", "yaml", "yml", "toml", "ini", "properties", "env", "conf"],
  diff: ["patch"],
  xml: ["html", "xhtml", "svg", "rss", "plist", "vue"],
  markdown: ["md", "mkd"],
  bash: ["sh", "shell", "zsh"],
  typescript: ["ts", "tsx", "mts", "cts", "javascript", "js", "jsx", "mjs", "cjs"],
  common: [
    ...["c", "h", "cpp", "cc", "hpp", "csharp", "cs", "java", "kotlin", "kt", "scala", "swift"],
    ...["go", "rust", "rs", "php", "ruby", "rb", "perl", "lua", "dart", "zig", "groovy"],
  ],
};

for (const [name, others] of Object.entries(ALSO)) {
  for (const other of others) LANGUAGES[other] = LANGUAGES[name] as () => Grammar;
}

/** Code as coloured nodes; nothing for a language that is not here. */
export function colour(code: string, language: string): Node | undefined {
  const grammar = Object.hasOwn(LANGUAGES, language) ? LANGUAGES[language] : undefined;
  return grammar && colourBy(grammar(), code);
}
