/** The highlighter and its languages: a chunk of its own. */

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import diff from "highlight.js/lib/languages/diff";
import ini from "highlight.js/lib/languages/ini";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { parseHighlighted } from "./coloured.ts";
import { common, css, sql } from "./grammars.ts";

/** Each language by its grammar; its other names stand behind. */
const LANGUAGES = {
  bash,
  common,
  css,
  diff,
  ini,
  json,
  markdown,
  python,
  sql,
  typescript,
  xml,
  yaml,
};

/** Languages that one of these grammars colours well enough. */
const ALSO = {
  typescript: ["javascript", "js", "jsx", "mjs"],
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
