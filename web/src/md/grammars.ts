/** Small grammars by the signs of a language: the library's own ones list every name there is. */

import type { HLJSApi, Language, Mode } from "highlight.js";

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
      { scope: "title", begin: /\b[A-Za-z_]\w*(?=\s*\()/, keywords: KEYWORDS },
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

const SCRIPT_KEYWORDS = {
  keyword:
    "abstract as async await break case catch class const continue debugger declare default delete " +
    "do else enum export extends finally for from function get if implements import in infer " +
    "instanceof interface is keyof let namespace new of override private protected public readonly " +
    "return satisfies set static super switch this throw try type typeof var void while with yield",
  type: "any bigint boolean never number object string symbol unknown",
  literal: "false null true undefined NaN Infinity",
};

/** JavaScript and TypeScript. */
export function typescript(hljs: HLJSApi): Language {
  const parts: Mode[] = [
    hljs.C_LINE_COMMENT_MODE,
    hljs.C_BLOCK_COMMENT_MODE,
    hljs.APOS_STRING_MODE,
    hljs.QUOTE_STRING_MODE,
    // A slash after a sign or a word like `return` begins a pattern, else it divides.
    {
      scope: "regexp",
      begin:
        /(?<=(?:[=(,:;!&|?{}[]|^|\breturn)\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/,
    },
    { scope: "meta", begin: /@[A-Za-z_$][\w$]*/ },
    {
      scope: "title",
      begin: /(?<=\b(?:class|enum|extends|implements|interface|new|type)\s+)[A-Za-z_$][\w$]*/,
    },
    { scope: "title", begin: /#?\b[A-Za-z_$][\w$]*(?=\s*\()/, keywords: SCRIPT_KEYWORDS },
    { scope: "attr", begin: /[A-Za-z_$][\w$]*\??(?=:\s)/ },
    hljs.C_NUMBER_MODE,
  ];
  const hole: Mode = { scope: "subst", begin: /\$\{/, end: /\}/, keywords: SCRIPT_KEYWORDS };
  const template: Mode = {
    scope: "string",
    begin: /`/,
    end: /`/,
    contains: [hljs.BACKSLASH_ESCAPE, hole],
  };
  const block: Mode = { begin: /\{/, end: /\}/, contains: [...parts, template, "self"] };
  hole.contains = [...parts, template, block];
  return { name: "TypeScript", keywords: SCRIPT_KEYWORDS, contains: [...parts, template] };
}

/** Shells of the Bourne kind. */
export function bash(hljs: HLJSApi): Language {
  const variable: Mode = {
    scope: "variable",
    begin: /\$(?:\w+|[#@?!$*-]|\{[^}]*\})/,
  };
  const command: Mode = { scope: "subst", begin: /\$\(/, end: /\)/ };
  const quoted: Mode = {
    scope: "string",
    begin: /"/,
    end: /"/,
    contains: [hljs.BACKSLASH_ESCAPE, variable, command],
  };
  const parts: Mode[] = [
    { scope: "comment", begin: /(?<=^|\s)#/, end: /$/ },
    { begin: /\\./ },
    { scope: "string", begin: /'/, end: /'/ },
    quoted,
    variable,
    command,
    { scope: "string", begin: /<<-?\s*(['"]?)(\w+)\1[\s\S]*?\n\s*\2$/ },
    { scope: "title", begin: /^\s*[\w-]+(?=\s*\(\))/ },
    { scope: "attr", begin: /(?<![\w-])\w+(?==)/ },
    { scope: "number", begin: /(?<=\s)\d+\b/ },
  ];
  command.contains = parts;
  return {
    name: "Bash",
    keywords: {
      $pattern: /(?<![\w./-])[a-z]+(?![\w./-])/,
      keyword:
        "case do done elif else esac fi for function if in select then time until while " +
        "break continue exit export local readonly return set shift trap unset",
      literal: "false true",
      built_in:
        "alias bg cat cd chmod chown cp curl declare echo eval exec find fg getopts git grep head " +
        "jobs kill ls make mkdir mv printf ps pwd read rm sed sort source ssh sudo tail tar tee test " +
        "touch type ulimit umask wait wget which xargs",
    },
    contains: parts,
  };
}

/** A unified diff. */
export function diff(): Language {
  return {
    name: "Diff",
    contains: [
      { scope: "meta", begin: /^@@ .*/ },
      { scope: "comment", begin: /^(?:diff|index|---|\+\+\+) .*/ },
      { scope: "addition", begin: /^\+.*/ },
      { scope: "deletion", begin: /^-.*/ },
    ],
  };
}

/** Names and values: JSON, YAML, TOML, INI and their like. */
export function pairs(hljs: HLJSApi): Language {
  return {
    name: "Pairs",
    keywords: { literal: "false no null off on true yes" },
    contains: [
      { scope: "comment", begin: /(?<=^|\s)#/, end: /$/ },
      { scope: "comment", begin: /^\s*;/, end: /$/ },
      { scope: "section", begin: /^\s*\[+[^\]\n]+\]+\s*$/ },
      { scope: "meta", begin: /^(?:---|\.\.\.)\s*$/ },
      {
        scope: "attr",
        begin:
          /(?<=^\s*(?:- +)*|[{,]\s*)(?:"[^"\n]*"|(?!- )[\w./-][^\n:=#"'{},]*?)(?=\s*(?:=|:(?:\s|$)))/,
      },
      { scope: "symbol", begin: /(?<=\s)[&*!][^\s,\]}]*/ },
      { scope: "string", begin: /"""|'''/, end: /"""|'''/ },
      hljs.QUOTE_STRING_MODE,
      { scope: "string", begin: /(?<![\w'])'/, end: /'|$/ },
      { scope: "number", begin: /(?<![\w.-])-?\d[\d_.:+eTZ-]*(?![\w/])/ },
    ],
  };
}

/** HTML and XML. */
export function xml(hljs: HLJSApi): Language {
  return {
    name: "XML",
    contains: [
      hljs.COMMENT("<!--", "-->"),
      { scope: "meta", begin: /<[?!]/, end: />/ },
      {
        begin: /<\/?(?=[A-Za-z])/,
        end: />/,
        contains: [
          { scope: "name", begin: /(?<=<\/?)[\w:.-]+/ },
          { scope: "attr", begin: /[\w:.@-]+/ },
          { scope: "string", begin: /"/, end: /"/ },
          { scope: "string", begin: /'/, end: /'/ },
        ],
      },
      { scope: "symbol", begin: /&#?\w+;/ },
    ],
  };
}

/** Markdown. */
export function markdown(): Language {
  return {
    name: "Markdown",
    contains: [
      { scope: "section", begin: /^#{1,6} /, end: /$/ },
      { scope: "section", begin: /^(?:=+|-+)$/ },
      { scope: "code", begin: /^(`{3,})[\s\S]*?\n\1$/ },
      { scope: "code", begin: /`[^`\n]+`/ },
      { scope: "strong", begin: /\*\*(?=\S)[^*\n]+\*\*/ },
      { scope: "emphasis", begin: /(?<![*\w])[*_](?=\S)[^*_\n]+[*_]/ },
      { scope: "string", begin: /(?<=\[[^\]\n]*)\](?=[([])[([][^)\]\n]*[)\]]/ },
      { scope: "quote", begin: /^> /, end: /$/ },
      { scope: "bullet", begin: /^\s*(?:[*+-]|\d+[.)])(?= )/ },
    ],
  };
}
