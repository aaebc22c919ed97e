/** Markdown text to tokens, with bounds that hold for hostile text. */

import { Lexer, type Token, Tokenizer, type Tokens } from "marked";

/** Inline marks of one block are looked for up to here; emphasis matching grows with the square. */
const MAX_INLINE_UNITS = 16 * 1024;

class ChatTokenizer extends Tokenizer {
  /** Only `~~x~~` strikes through: a single tilde stands for "about" or a range in too many texts. */
  override del(src: string, masked: string, before?: string): Tokens.Del | undefined {
    return src.startsWith("~") && !src.startsWith("~~")
      ? undefined
      : super.del(src, masked, before);
  }
}

/** The blocks of a text. */
export interface Blocks {
  /** Top-level tokens; their `raw` joined is the text. */
  tokens: Token[];
  /** Whether a link definition (`[x]: …`) stands in it, which may change any other block. */
  defines: boolean;
}

/** Line ends as the lexer counts them, so that lengths of `raw` are positions in this text. */
export function normalizeLines(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}

/** Text that is shown as it stands, character references included. */
function literal(text: string): Token {
  return { type: "escape", raw: text, text };
}

/**
 * Cuts a text with line feeds only into block tokens, inline tokens included.
 *
 * @param outline leave the inline tokens out: a third of the work, for comparing block borders
 */
export function lexBlocks(text: string, outline = false): Blocks {
  const lexer = new Lexer({ gfm: true, tokenizer: new ChatTokenizer() });
  try {
    lexer.blockTokens(text, lexer.tokens);
    for (const { src, tokens } of outline ? [] : lexer.inlineQueue) {
      // An unclosed `<a>` or `<pre>` counts to the end of its own block only.
      lexer.state.inLink = false;
      lexer.state.inRawBlock = false;
      if (src.length <= MAX_INLINE_UNITS) lexer.inlineTokens(src, tokens);
      else tokens.push(literal(src));
    }
  } catch {
    // Nesting deeper than the stack: nobody wrote that to be read as lists in lists.
    const whole = { type: "paragraph", raw: text, text, tokens: [literal(text)] };
    return { tokens: [whole], defines: false };
  }
  return { tokens: lexer.tokens, defines: Object.keys(lexer.tokens.links).length > 0 };
}
