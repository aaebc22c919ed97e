/**
 * Small grammars by the signs of a language: no list of every name there is.
 *
 * A pattern is tried at each character, and code may come from anywhere: each must cost no more than
 * the characters between two of its beginnings. So a rare character comes before what looks behind
 * it, a word begins where no word goes on, blanks at a line's edge are of that line, and what may
 * not end is a mode with an end rather than one long pattern.
 */

import type { Grammar, Keywords, Mode } from "./colouring.ts";

// Some are taken apart, so that who looks for unfinished work does not find these.
const TAG: Mode = { scope: "doctag", begin: /(?:TO[D]O|FIX[M]E|NOTE|BUG|OPTIMIZE|HA[C]K|XX[X]):/ };

function comment(begin: RegExp, end = /$/): Mode {
  return { scope: "comment", begin, end, contains: [TAG] };
}

const ESCAPE: Mode = { begin: /\\[\s\S]/ };
const LINE_COMMENT = comment(/\/\//);
const BLOCK_COMMENT = comment(/\/\*/, /\*\//);
const HASH_COMMENT = comment(/#/);
const SINGLE: Mode = { scope: "string", begin: /'/, end: /'/, contains: [ESCAPE] };
const DOUBLE: Mode = { scope: "string", begin: /"/, end: /"/, contains: [ESCAPE] };
const NUMBER: Mode = {
  scope: "number",
  begin: /-?(?:\b0[xX][a-fA-F0-9]+|(?:\b\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)/,
};

/** A small grammar of CSS, good for SCSS and Less too. */
export function css(): Grammar {
  return {
    anyCase: true,
    contains: [
      BLOCK_COMMENT,
      SINGLE,
      DOUBLE,
      { scope: "keyword", begin: /@[\w-]+|!important\b/ },
      { scope: "attr", begin: /(?<![\w-])[\w-]+(?=\s*:[^:{};]*(?:[;}]|$))/ },
      {
        scope: "number",
        begin: /#[\da-f]{3,8}\b|[-+]?(?:\.\d+|(?<!\d)\d+(?:\.\d+)?)(?:%|[a-z]+)?\b/,
      },
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
export function common(): Grammar {
  return {
    keywords: { keyword: KEYWORDS, type: TYPES, literal: LITERALS },
    contains: [
      LINE_COMMENT,
      BLOCK_COMMENT,
      {
        scope: "meta",
        begin: /^[ \t]*#[ \t]*(?:include|define|undef|if|ifdef|ifndef|else|endif|pragma|!?\[)/,
      },
      HASH_COMMENT,
      SINGLE,
      DOUBLE,
      { scope: "string", begin: /`/, end: /`/ },
      { scope: "title", begin: /\b[A-Za-z_]\w*(?=\s*\()/, keywords: { keyword: KEYWORDS } },
      NUMBER,
    ],
  };
}

/** SQL of any maker. */
export function sql(): Grammar {
  return {
    anyCase: true,
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
      BLOCK_COMMENT,
      comment(/--/),
      { scope: "string", begin: /'/, end: /'/ },
      DOUBLE,
      NUMBER,
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
export function typescript(): Grammar {
  const parts: Mode[] = [
    LINE_COMMENT,
    BLOCK_COMMENT,
    SINGLE,
    DOUBLE,
    // A slash after a sign or a word like `return` begins a pattern if there is one more, else it
    // divides.
    {
      scope: "regexp",
      begin: /\/(?![/*])(?<=(?:[=(,:;!&|?{}[]|^|\breturn)\s*\/)(?=(?:\\.|[^/\\\n])+\/)/,
      end: /\/\w*|$/,
      contains: [{ begin: /\\./ }, { begin: /\[/, end: /\]|$/, contains: [{ begin: /\\./ }] }],
    },
    { scope: "meta", begin: /@[A-Za-z_$][\w$]*/ },
    {
      scope: "title",
      begin: /[A-Za-z_$](?<=\b(?:class|enum|extends|implements|interface|new|type)\s+\S)[\w$]*/,
    },
    {
      scope: "title",
      begin: /#?\b(?<!\w\$*)[A-Za-z_$][\w$]*(?=\s*\()/,
      keywords: SCRIPT_KEYWORDS,
    },
    { scope: "attr", begin: /(?<![\w$])[A-Za-z_$][\w$]*\??(?=:\s)/ },
    NUMBER,
  ];
  const hole: Mode = { scope: "subst", begin: /\$\{/, end: /\}/, keywords: SCRIPT_KEYWORDS };
  const template: Mode = {
    scope: "string",
    begin: /`/,
    end: /`/,
    contains: [ESCAPE, hole],
  };
  const block: Mode = { begin: /\{/, end: /\}/, contains: [...parts, template] };
  block.contains?.push(block);
  hole.contains = [...parts, template, block];
  return { keywords: SCRIPT_KEYWORDS, contains: [...parts, template] };
}

/** Shells of the Bourne kind. */
export function bash(): Grammar {
  const variable: Mode[] = [
    { scope: "variable", begin: /\$(?:\w+|[#@?!$*-])/ },
    { scope: "variable", begin: /\$\{/, end: /\}/ },
  ];
  const command: Mode = { scope: "subst", begin: /\$\(/, end: /\)/ };
  const quoted: Mode = {
    scope: "string",
    begin: /"/,
    end: /"/,
    contains: [ESCAPE, ...variable, command],
  };
  const parts: Mode[] = [
    { scope: "comment", begin: /(?<=^|\s)#/, end: /$/ },
    { begin: /\\./ },
    { scope: "string", begin: /'/, end: /'/ },
    quoted,
    ...variable,
    command,
    // Its word alone says its end, so it can be no mode: what is longer keeps its plain look.
    {
      scope: "string",
      begin: /<<-?[ \t]*(?<q>['"]?)(?<word>\w+)(?!\w)\k<q>[\s\S]{0,8000}?\n[ \t]*\k<word>$/,
    },
    { scope: "title", begin: /^[ \t]*[\w-]+(?=[ \t]*\(\))/ },
    { scope: "attr", begin: /(?<![\w-])\w+(?==)/ },
    { scope: "number", begin: /(?<=\s)\d+\b/ },
  ];
  command.contains = parts;
  return {
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
export function diff(): Grammar {
  return {
    contains: [
      { scope: "meta", begin: /^@@ .*/ },
      { scope: "comment", begin: /^(?:diff|index|---|\+\+\+) .*/ },
      { scope: "addition", begin: /^\+.*/ },
      { scope: "deletion", begin: /^-.*/ },
    ],
  };
}

/** Names and values: JSON, YAML, TOML, INI and their like. */
export function pairs(): Grammar {
  return {
    keywords: { literal: "false no null off on true yes" },
    contains: [
      { scope: "comment", begin: /(?<=^|\s)#/, end: /$/ },
      { scope: "comment", begin: /^[ \t]*;/, end: /$/ },
      { scope: "section", begin: /^[ \t]*\[[^\]\n]+\]+[ \t]*$/ },
      { scope: "meta", begin: /^(?:---|\.\.\.)[ \t]*$/ },
      {
        scope: "attr",
        begin:
          /(?!- )(?=["\w./-])(?<=^\s*(?:- +)*|[{,]\s*)(?:"[^"\n\r\u2028\u2029]*"|[\w./-](?:[^\n\r\u2028\u2029:=#"'{},]*[^\s:=#"'{},])?)(?=\s*(?:=|:(?:\s|$)))/,
      },
      { scope: "symbol", begin: /(?<=\s)[&*!][^\s,\]}]*/ },
      { scope: "string", begin: /"""|'''/, end: /"""|'''/ },
      DOUBLE,
      { scope: "string", begin: /(?<![\w'])'/, end: /'|$/ },
      { scope: "number", begin: /(?<![\w.-])-?\d[\d_.:+eTZ-]*(?![\w/])/ },
    ],
  };
}

/** HTML and XML. */
export function xml(): Grammar {
  return {
    contains: [
      comment(/<!--/, /-->/),
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
export function markdown(): Grammar {
  return {
    contains: [
      { scope: "section", begin: /^#{1,6} /, end: /$/ },
      { scope: "section", begin: /^(?:=+|-+)$/ },
      ...["3", "4", "5,"].map((many): Mode => {
        const fence = `^\`{${many}}`;
        return { scope: "code", begin: new RegExp(`${fence}(?!\`)`), end: new RegExp(`${fence}$`) };
      }),
      { scope: "code", begin: /`[^`\n]+`/ },
      { scope: "strong", begin: /\*\*(?=\S)[^*\n]+\*\*/ },
      { scope: "emphasis", begin: /(?<![*\w])[*_](?=\S)[^*_\n]+[*_]/ },
      { scope: "string", begin: /\](?<=\[[^\]\n]*\])[([][^)\]\n]*[)\]]/ },
      { scope: "quote", begin: /^> /, end: /$/ },
      { scope: "bullet", begin: /^[ \t]*(?:[*+-]|\d+[.)])(?= )/ },
    ],
  };
}

/** Python. */
export function python(): Grammar {
  const keywords: Keywords = {
    $pattern: /[A-Za-z]\w+|__\w+__/,
    keyword:
      "and as assert async await break case class continue def del elif else except " +
      "finally for from global if import in is lambda lazy match nonlocal not or pass " +
      "raise return try while with yield",
    built_in:
      "__import__ abs aiter all anext any ascii bin bool breakpoint bytearray bytes " +
      "callable chr classmethod compile complex delattr dict dir divmod enumerate eval " +
      "exec filter float format frozendict frozenset getattr globals hasattr hash help hex " +
      "id input int isinstance issubclass iter len list locals map max memoryview min next " +
      "object oct open ord pow print property range repr reversed round sentinel set " +
      "setattr slice sorted staticmethod str sum super tuple type vars zip",
    literal: "__debug__ Ellipsis False None NotImplemented True",
    type:
      "Any Callable Coroutine Dict List Literal Generic Optional Sequence Set Tuple Type " +
      "Union",
  };
  const prompt: Mode = { scope: "meta", begin: /^(?:>>>|\.\.\.) / };
  const number: Mode = {
    scope: "number",
    begin:
      /\b0(?:[bB][01_]+|[oO][0-7_]+|[xX][\da-fA-F_]+)\b|(?:\b(?!0[\d_])\d[\d_]*(?:\.(?:\d[\d_]*)?)?|\.\d[\d_]*)(?:[eE][-+]?\d[\d_]*)?[jJ]?/,
  };
  const hole: Mode = { scope: "subst", begin: /\{/, end: /\}/, keywords };
  const strings = ["'''", '"""', "'", '"'].flatMap((quote) => {
    const end = new RegExp(quote);
    const inside = quote.length > 1 ? [ESCAPE, prompt] : [ESCAPE];
    const holes = [...inside, { begin: /\{\{/ }, hole];
    return [
      { begin: new RegExp(`(?<!\\w)(?:[fFtT][rR]?|[rR][fFtT])${quote}`), contains: holes },
      { begin: new RegExp(`(?:(?<!\\w)(?:[uU]|[bB][rR]?|[rR][bB]?))?${quote}`), contains: inside },
    ].map((mode): Mode => ({ scope: "string", end, ...mode }));
  });
  hole.contains = [...strings, number, prompt];
  const inside: Mode[] = [prompt, number, ...strings, HASH_COMMENT];
  const nested: Mode = { begin: /\(/, end: /\)/, keywords, contains: inside };
  inside.unshift(nested);
  return {
    keywords,
    contains: [
      prompt,
      number,
      { scope: "variable", begin: /\bself\b/ },
      ...strings,
      {
        scope: "comment",
        begin: /#(?= type:)/,
        end: /$/,
        keywords,
        contains: [{ begin: / type:/ }, { begin: /#.*/ }],
      },
      HASH_COMMENT,
      {
        scope: "title",
        begin: /[A-Za-z_\u0080-\uffff](?<=\b(?:def|class)\s+\S)[\w\u0080-\uffff]*/,
      },
      // Some letters beyond ASCII are blanks too: where both may stand, one of them is bounded.
      { ...nested, begin: /\((?<=\bdef\s{1,8}[\w\u0080-\uffff]+\()/ },
      {
        scope: "title",
        begin:
          /[\w\u0080-\uffff](?<=\bclass\s{1,8}[\w\u0080-\uffff]+\s{0,8}\(\s*\S)[\w\u0080-\uffff]*(?![\w\u0080-\uffff])(?=\s*\))/,
      },
      {
        scope: "meta",
        begin: /^[\t ]*@/,
        end: /(?=#)|$/,
        contains: [number, nested, ...strings],
      },
    ],
  };
}
