import { visible } from "../../core/visible.ts";

/** Lines of a diff that are shown at once: more would freeze a phone. */
const MAX_LINES = 200;

function lineClass(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---")) return "meta";
  if (line.startsWith("+")) return "add";
  if (line.startsWith("-")) return "del";
  return line.startsWith("@@") ? "meta" : "";
}

/** A unified diff: signs and colours, scrolled sideways by itself. */
export function Diff({ text }: { text: string }) {
  const lines = visible(text).replace(/\n$/, "").split("\n");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls must take the keys
    <pre class="diff" tabIndex={0}>
      <code>
        {lines.slice(0, MAX_LINES).map((line, place) => (
          <span key={place} class={lineClass(line)}>
            {`${line}\n`}
          </span>
        ))}
        {lines.length > MAX_LINES && <span class="meta">{`… +${lines.length - MAX_LINES}\n`}</span>}
      </code>
    </pre>
  );
}
