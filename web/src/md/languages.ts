/** The highlighter and its languages: a chunk of its own. */

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { parseHighlighted } from "./coloured.ts";
import { css } from "./css_grammar.ts";
import { sql } from "./sql_grammar.ts";

const LANGUAGES = {
  bash,
  cpp,
  csharp,
  css,
  diff,
  go,
  ini,
  java,
  json,
  markdown,
  python,
  ruby,
  rust,
  sql,
  typescript,
  xml,
  yaml,
};

/** Languages whose words a larger one has too. */
const SAME = { c: "cpp", h: "cpp", javascript: "typescript", js: "typescript", jsx: "typescript" };

for (const [name, grammar] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, grammar);
for (const [name, languageName] of Object.entries(SAME))
  hljs.registerAliases(name, { languageName });

/** Code as coloured nodes; nothing for a language that is not here. */
export function colour(code: string, language: string): Node | undefined {
  if (!hljs.getLanguage(language)) return undefined;
  return parseHighlighted(hljs.highlight(code, { language, ignoreIllegals: true }).value);
}
