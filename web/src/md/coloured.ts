/** The highlighter's output as nodes: it writes spans with a class and five entities, nothing else. */

const ENTITIES: Record<string, string> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#x27;": "'",
};

const PIECE = /<span class="([\w\s-]*)">|<\/span>|&(?:amp|lt|gt|quot|#x27);|[^<&]+|[<&]/g;

/** The nodes; whatever is not the highlighter's stays text. */
export function parseHighlighted(html: string): DocumentFragment {
  const root = document.createDocumentFragment();
  const open: ParentNode[] = [root];
  for (const [piece, className] of html.matchAll(PIECE)) {
    const parent = open.at(-1) ?? root;
    if (className !== undefined) {
      const span = document.createElement("span");
      span.className = className;
      parent.append(span);
      open.push(span);
    } else if (piece === "</span>") {
      if (open.length > 1) open.pop();
    } else {
      parent.append(ENTITIES[piece] ?? piece);
    }
  }
  root.normalize();
  return root;
}
