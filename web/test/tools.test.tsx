import { beforeEach, describe, expect, test, vi } from "vitest";
import { learn } from "../src/platform/api.ts";
import { fitPicture } from "../src/platform/images.ts";
import { ComposerTools } from "../src/ui/chat/Composer.tsx";
import { SESSION, useChatScreen } from "./chat_screen.tsx";
import { json, problem } from "./fake_server.ts";

const on = useChatScreen();
const PROMPTS = `/api/sessions/${SESSION}/prompts`;
const COMMANDS = `/api/sessions/${SESSION}/commands`;

beforeEach(async () => {
  await Promise.all([ComposerTools.preload(), learn()]);
  HTMLElement.prototype.hidePopover = () => undefined; // the test's document has none
  on.screen.server.on(`GET ${COMMANDS}`, () =>
    json({
      commands: [
        { name: "compact", about: "sum it up", operation: "compact_session" },
        { name: "commit", about: "make a commit", operation: "run_command" },
        { name: "tools", about: "list tools", operation: "list_tools" },
      ],
    }),
  );
  on.screen.server.on(`POST ${PROMPTS}`, () => json({ prompt: "pmt_1", session: SESSION }, 202));
});

function key(name: string): boolean {
  const event = new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true });
  return on.screen.field.dispatchEvent(event);
}

async function typeAtEnd(text: string): Promise<void> {
  on.screen.field.value = text;
  on.screen.field.setSelectionRange(text.length, text.length);
  await on.screen.type(text);
  document.dispatchEvent(new Event("selectionchange"));
  await on.screen.settle(200);
  await on.screen.settle(200);
}

const names = (): (string | null)[] =>
  [...on.screen.place.querySelectorAll(".palette-name")].map((one) => one.textContent);

describe("a slash", () => {
  test("lists the commands that this page carries out, and keys choose among them", async () => {
    await on.screen.show();
    await typeAtEnd("/com");
    expect(names()).toEqual(["/compact", "/commit"]);
    expect(key("ArrowDown")).toBe(false);
    await on.screen.settle();
    expect(on.screen.text(".palette-choice[aria-current=true] .palette-name")).toBe("/commit");
    key("Tab");
    await on.screen.settle();
    expect(on.screen.field.value).toBe("/commit ");
  });

  test("Escape closes the list and leaves the text", async () => {
    await on.screen.show();
    await typeAtEnd("/com");
    key("Escape");
    await on.screen.settle();
    expect(names()).toEqual([]);
    expect(on.screen.field.value).toBe("/com");
  });

  test("a command is carried out by its operation, not sent as words", async () => {
    on.screen.server.on(`POST ${COMMANDS}/commit`, () =>
      json({ prompt: "pmt_2", session: SESSION }, 202),
    );
    await on.screen.show();
    await on.screen.type("/commit all of it");
    await on.screen.press("Send");
    await on.screen.settle();
    const [asked] = on.screen.server.to(`${COMMANDS}/commit`);
    expect(asked?.body).toEqual({ arguments: "all of it", when: "auto" });
    expect(on.screen.server.to(PROMPTS)).toEqual([]);
    expect(on.screen.field.value).toBe("");
  });

  test.each([
    ["/nothing", "There is no command /nothing."],
    ["/tools", "/tools is not for this page"],
  ])("%s comes back with the reason", async (text, reason) => {
    await on.screen.show();
    await on.screen.type(text);
    await on.screen.press("Send");
    await on.screen.settle();
    expect(on.screen.text(".complaint")).toContain(reason);
    expect(on.screen.field.value).toBe(text);
  });

  test("a path is no command", async () => {
    await on.screen.show();
    await on.screen.type("/etc/hosts is what?");
    await on.screen.press("Send");
    expect(on.screen.server.to(PROMPTS)).toHaveLength(1);
  });
});

test("an at sign lists paths, and a folder stays open", async () => {
  on.screen.server.on(`GET /api/sessions/${SESSION}/paths`, () =>
    json({ paths: ["src/", "src/app.py"] }),
  );
  await on.screen.show();
  await typeAtEnd("see @sr");
  expect(names()).toEqual(["@src/", "@src/app.py"]);
  key("Enter");
  await on.screen.settle();
  expect(on.screen.field.value).toBe("see @src/");
  expect(on.screen.server.to(PROMPTS)).toEqual([]);
  await on.screen.type("");
});

describe("files", () => {
  const give = async (...files: File[]): Promise<void> => {
    const input = on.screen.place.querySelector(".attach-menu label:last-of-type input");
    Object.defineProperty(input, "files", { value: files, configurable: true });
    input?.dispatchEvent(new Event("change", { bubbles: true }));
    await on.screen.settle();
    await on.screen.settle();
  };
  const kept = { file: "f".repeat(64), media_type: "text/plain", size: 3, name: "a.txt" };

  test("go along with the prompt, once all are kept", async () => {
    on.screen.server.on("POST /api/files", () => json(kept, 201));
    await on.screen.show();
    await give(new File(["abc"], "a.txt", { type: "text/plain" }));
    expect(on.screen.text(".attached-name")).toBe("a.txt");
    await on.screen.press("Send");
    const block = { type: "file", name: "a.txt", media_type: "text/plain", file: kept.file };
    expect(on.screen.server.to(PROMPTS)[0]?.body).toEqual({ content: [block], when: "auto" });
    expect(on.screen.place.querySelector(".attached")).toBeNull();
  });

  test("one that is refused says why, holds the prompt back, and can be removed", async () => {
    on.screen.server.on("POST /api/files", () => problem(413, "payload_too_large"));
    await on.screen.show();
    await give(new File(["abc"], "a.txt", { type: "text/plain" }));
    expect(on.screen.text(".attached-name")).toBe("a.txt: That is too large.");
    await on.screen.type("Look");
    await on.screen.press("Send");
    expect(on.screen.server.to(PROMPTS)).toEqual([]);
    expect(on.screen.text(".attached-complaint")).toContain("Wait until");
    expect(on.screen.field.value).toBe("Look");
    await on.screen.press("Remove a.txt");
    await on.screen.press("Send");
    expect(on.screen.server.to(PROMPTS)).toHaveLength(1);
  });

  // rules: W23
  test("a picture that the browser cannot read is refused with words", async () => {
    vi.stubGlobal("createImageBitmap", () =>
      Promise.reject(new DOMException("no", "EncodingError")),
    );
    await on.screen.show();
    await give(new File(["x"], "photo.heic", { type: "image/heic" }));
    expect(on.screen.text(".attached-name")).toContain("cannot be read.");
    expect(on.screen.server.to("/api/files")).toEqual([]);
  });

  // rules: W23
  test("a folder, an empty file and one that changed are refused before anything is sent", async () => {
    await on.screen.show();
    const folder = new File(["x"], "src");
    folder.arrayBuffer = () => Promise.reject(new DOMException("no", "NotFoundError"));
    await give(folder, new File([], "empty.txt"));
    const told = [...on.screen.place.querySelectorAll(".attached-name")];
    expect(told).toHaveLength(2);
    for (const one of told) expect(one.textContent).toContain("cannot be read");
    expect(on.screen.server.to("/api/files")).toEqual([]);
  });

  test("no more than six go along, and nothing is dropped without a word", async () => {
    on.screen.server.on("POST /api/files", () => json(kept, 201));
    await on.screen.show();
    await give(...Array.from({ length: 8 }, (_, at) => new File(["x"], `${at}.txt`)));
    expect(on.screen.place.querySelectorAll(".attached-one")).toHaveLength(6);
    expect(on.screen.text(".attached-complaint")).toBe("At most 6 at once.");
    await on.screen.press("Remove 0.txt");
    expect(on.screen.place.querySelector(".attached-complaint")).toBeNull();
  });

  test("a failed prompt gives its files back to be sent again", async () => {
    on.screen.server.on("POST /api/files", () => json(kept, 201));
    on.screen.server.on(`POST ${PROMPTS}`, () => problem(422, "rejected"));
    await on.screen.show();
    await give(new File(["abc"], "a.txt", { type: "text/plain" }));
    await on.screen.press("Send");
    await on.screen.press("Edit");
    await on.screen.settle();
    expect(on.screen.text(".attached-name")).toBe("a.txt");
  });
});

// rules: W27
test("a long pasted text becomes a file", async () => {
  on.screen.server.on("POST /api/files", () =>
    json({ file: "f".repeat(64), media_type: "text/plain", size: 3 }, 201),
  );
  await on.screen.show();
  const paste = new Event("paste", { bubbles: true, cancelable: true });
  const text = "line\n".repeat(1_000);
  Object.assign(paste, { clipboardData: { files: [], getData: () => text } });
  on.screen.field.dispatchEvent(paste);
  await on.screen.settle();
  expect(paste.defaultPrevented).toBe(true);
  expect(on.screen.text(".attached-name")).toContain("pasted text, 1000 lines");
});

describe("the menu's way to paste", () => {
  const typed: string[] = [];

  /** What lies on the clipboard: for each item its types. */
  function lies(...items: Record<string, string>[]): void {
    const read = async () =>
      items.map((item) => ({
        types: Object.keys(item),
        getType: async (type: string) => new Blob([item[type] ?? ""], { type }),
      }));
    vi.stubGlobal("navigator", { ...navigator, userAgent: "", clipboard: { read } });
  }

  async function paste(): Promise<void> {
    typed.length = 0;
    Object.assign(document, {
      execCommand: (what: string, _: boolean, text: string) => typed.push(`${what} ${text}`),
    });
    await on.screen.show();
    await on.screen.press("Paste", on.screen.place.querySelector(".attach-menu") as HTMLElement);
    await on.screen.settle();
  }

  beforeEach(() => {
    on.screen.server.on("POST /api/files", () =>
      json({ file: "f".repeat(64), media_type: "text/plain", size: 3 }, 201),
    );
  });

  test("writes a text where the caret stands", async () => {
    lies({ "text/html": "<b>one</b>", "text/plain": "one" });
    await paste();
    expect(typed).toEqual(["insertText one"]);
    expect(document.activeElement).toBe(on.screen.field);
    expect(on.screen.place.querySelector(".attached-one, .attached-complaint")).toBeNull();
  });

  test("takes of what lies there as both the text", async () => {
    lies({ "image/png": "png", "text/plain": "a cell" });
    await paste();
    expect(typed).toEqual(["insertText a cell"]);
    expect(on.screen.place.querySelector(".attached-one")).toBeNull();
  });

  // rules: W27
  test("makes a long text a file", async () => {
    lies({ "text/plain": "line\n".repeat(1_000) });
    await paste();
    expect(typed).toEqual([]);
    expect(on.screen.text(".attached-name")).toContain("pasted text, 1000 lines");
  });

  test("attaches a picture", async () => {
    lies({ "image/png": "png" });
    await paste();
    expect(typed).toEqual([]);
    expect(on.screen.text(".attached-name")).toContain("image.png");
  });

  test.each(["nothing of use", "not allowed"])("says how else, for %s", async (why) => {
    lies({ "text/html": "<hr>" });
    if (why === "not allowed") {
      const refuse = () => Promise.reject(new DOMException("no", "NotAllowedError"));
      Object.assign(navigator.clipboard, { read: refuse });
    }
    await paste();
    expect(typed).toEqual([]);
    expect(on.screen.text(".attached-complaint")).toContain("Paste it into the field");
    expect(document.activeElement).toBe(on.screen.field);
  });

  test.each([
    ["the page was left", "one", () => on.screen.leave()],
    ["the page was left", "line\n".repeat(1_000), () => on.screen.leave()],
    ["the field is off", "one", () => on.screen.field.setAttribute("disabled", "")],
  ])("writes into nothing else when %s before it could be read", async (_, text, leave) => {
    lies({ "text/plain": text });
    const { read } = navigator.clipboard;
    const other = document.body.appendChild(document.createElement("input"));
    const slowly = async () => {
      leave();
      other.focus();
      return read();
    };
    Object.assign(navigator.clipboard, { read: slowly });
    await paste();
    expect([typed, document.activeElement]).toEqual([[], other]);
    expect(on.screen.server.to("/api/files")).toEqual([]);
    other.remove();
  });

  test.each([[undefined], [{ writeText: async () => undefined }]])(
    "is not there where no page may read it",
    async (clipboard) => {
      vi.stubGlobal("navigator", { ...navigator, userAgent: "", clipboard });
      await on.screen.show();
      const ways = [...on.screen.place.querySelectorAll(".attach-menu .menu-item")];
      expect(ways.map(({ textContent }) => textContent)).toEqual([
        "Take a photo",
        "Photo or picture",
        "File",
      ]);
    },
  );
});

// rules: W23
test.each([
  [4000, 3000, [1568, 1176]],
  [3000, 4000, [1176, 1568]],
  [800, 600, [800, 600]],
  [10_000, 1, [1568, 1]],
])("a picture of %d by %d becomes %j", (width, height, size) => {
  expect(fitPicture(width, height)).toEqual(size);
});
