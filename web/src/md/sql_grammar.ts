/** SQL by its commonest words: the library's own grammar lists those of the whole standard. */

import type { HLJSApi, Language } from "highlight.js";

const KEYWORDS =
  "add all alter and any as asc begin between by case cast check column commit constraint create cross database default delete desc distinct drop else end except exists explain foreign from full grant group having if in index inner insert intersect into is join key left like limit natural not null offset on or order outer over partition primary recursive references replace returning revoke right rollback row rows select set table temporary then to transaction trigger truncate union unique update using values view when where window with";

/** A small grammar of SQL. */
export function sql(hljs: HLJSApi): Language {
  return {
    name: "SQL",
    case_insensitive: true,
    keywords: {
      keyword: KEYWORDS,
      literal: "true false",
      type: "bigint blob boolean char date decimal float int integer numeric real serial smallint text time timestamp uuid varchar",
    },
    contains: [
      hljs.C_BLOCK_COMMENT_MODE,
      hljs.COMMENT("--", "$"),
      hljs.C_NUMBER_MODE,
      { scope: "string", begin: "'", end: "'", contains: [{ begin: "''" }] },
      { begin: '"', end: '"' },
      { scope: "title", begin: /\b\w+(?=\s*\()/, keywords: KEYWORDS },
    ],
  };
}
