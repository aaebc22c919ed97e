/** The highlighter and its languages: a chunk of its own. */

import hljs from "highlight.js/lib/core";
import python from "highlight.js/lib/languages/python";
import { parseHighlighted } from "./coloured.ts";
import { bash, common, css, diff, markdown, pairs, sql, typescript, xml } from "./grammars.ts";

/** Each language by its grammar; its other names stand behind. */
const LANGUAGES = {
  bash,
  common,
  css,
  diff,
  markdown,
  pairs,
  python,
  sql,
  typescript,
  xml,
};

/** Languages that one of these grammars colours well enough. */
const ALSO = {
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

for (const [name, grammar] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, grammar);
for (const [languageName, names] of Object.entries(ALSO))
  hljs.registerAliases(names, { languageName });

/** Code as coloured nodes; nothing for a language that is not here. */
export function colour(code: string, language: string): Node | undefined {
  if (!hljs.getLanguage(language)) return undefined;
  return parseHighlighted(hljs.highlight(code, { language, ignoreIllegals: true }).value);
}
