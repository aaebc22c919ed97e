/** Style sheets by their signs: the library's own grammar lists every property there is. */

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
