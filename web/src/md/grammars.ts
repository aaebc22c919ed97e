/** Small grammars by the signs of a language: the library's own ones list every name there is. */

import type { HLJSApi, Language } from "highlight.js";

/** A small grammar of CSS, good for SCSS and Less too. */
export function css(hljs: HLJSApi): Language {
  return {
    name: "CSS",
    aliases: ["scss", "less"],
    case_insensitive: true,
    contains: [
      hljs.C_BLOCK_COMMENT_MODE,
      hljs.APOS_STRING_MODE,
      hljs.QUOTE_STRING_MODE,
      { scope: "keyword", begin: /@[\w-]+|!important\b/ },
      { scope: "attr", begin: /[\w-]+(?=\s*:[^:{};]*(?:[;}]|$))/ },
      { scope: "number", begin: /#[\da-f]{3,8}\b|[-+]?(?:\d*\.)?\d+(?:%|[a-z]+)?\b/ },
      { scope: "title", begin: /[.#][a-z_-][\w-]*|::?[a-z][\w-]*/ },
    ],
  };
}

const KEYWORDS =
  "abstract alias and as assert async await begin break case catch chan class const constexpr " +
  "continue def default defer delegate delete do echo else elseif elsif end enum except export " +
  "extends extern final finally fn for foreach from func fun function global go goto guard if impl " +
  "implements import in include init inline instanceof interface internal is lambda let local " +
  "loop match mod module move mut mutable namespace new not object operator or override package " +
  "private protected protocol public pub raise range readonly ref register repeat require rescue " +
  "return sealed select self signed sizeof static struct super switch template then this throw " +
  "throws trait try type typedef typename typeof union unless unsafe unsigned until use using val " +
  "var virtual volatile when where while with yield";
const TYPES =
  "auto bool boolean byte char double f32 f64 float i32 i64 int isize long map short str string " +
  "u8 u32 u64 uint usize void";
const LITERALS = "false nil none null nullptr true undefined False None True Nil";

/** Languages of the common kind: words, quoted text, numbers, notes behind `//` or `#`. */
export function common(hljs: HLJSApi): Language {
  return {
    name: "Code",
    keywords: { keyword: KEYWORDS, type: TYPES, literal: LITERALS },
    contains: [
      hljs.C_LINE_COMMENT_MODE,
      hljs.C_BLOCK_COMMENT_MODE,
      {
        scope: "meta",
        begin: /^\s*#\s*(?:include|define|undef|if|ifdef|ifndef|else|endif|pragma|!?\[)/,
      },
      hljs.HASH_COMMENT_MODE,
      hljs.APOS_STRING_MODE,
      hljs.QUOTE_STRING_MODE,
      { scope: "string", begin: /`/, end: /`/ },
      { scope: "title", begin: /\b[a-z_]\w*(?=\s*\()/i, keywords: KEYWORDS },
      hljs.C_NUMBER_MODE,
    ],
  };
}

/** SQL of any maker. */
export function sql(hljs: HLJSApi): Language {
  return {
    name: "SQL",
    case_insensitive: true,
    keywords: {
      keyword:
        "add all alter and any as asc begin between by case check column commit constraint create " +
        "cross database default delete desc distinct drop else end except exists foreign from full " +
        "group having if in index inner insert intersect into is join key left like limit not " +
        "offset on or order outer over partition primary references replace returning right " +
        "rollback row select set table then transaction trigger union unique update using values " +
        "view when where with",
      type: "bigint blob boolean char date decimal integer int json numeric real text timestamp varchar",
      literal: "false null true",
    },
    contains: [
      hljs.C_BLOCK_COMMENT_MODE,
      hljs.COMMENT("--", "$"),
      { scope: "string", begin: /'/, end: /'/ },
      hljs.QUOTE_STRING_MODE,
      hljs.C_NUMBER_MODE,
    ],
  };
}
