import "../../core/words.code.ts";
import { useEffect, useState } from "preact/hooks";
import { t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { sendText, wish } from "../../state/outbox.ts";
import { sessions } from "../../state/sessions.ts";
import {
  chooseFolder,
  readStart,
  start,
  startComplaint,
  startMode,
  startModel,
} from "../../state/start.ts";
import { Button } from "../base/Button.tsx";
import { LocalLine } from "../chat/LocalLine.tsx";
import { runSlash } from "../compose/slash.ts";
import { ChipButton, ChipsSheet } from "./Chips.tsx";
import { chipsOpen } from "./chips_open.ts";

/** Folders that are offered at once. */
const MOST = 12;

/** Prompts that make sense in the folder. */
export function Suggestions() {
  const found = start.value?.suggestions ?? [];
  const take = (text: string): void => {
    if (!text.startsWith("/")) sendText(null, tMaybe(`said.${text}`) ?? text);
    else void runSlash(null, text);
  };
  return (
    <>
      {startMode.value === "ask" && <p class="quiet">{t("start.asks")}</p>}
      <ul class="suggestions">
        {found.map((text) => (
          <li key={text}>
            <button type="button" class="suggestion" onClick={() => take(text)}>
              {tMaybe(`said.${text}`) ?? visible(text + aboutOf(text))}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** What a command does, behind its name. */
function aboutOf(text: string): string {
  const found = start.value?.commands.find(({ name }) => text === `/${name}`);
  return found ? `: ${found.about}` : "";
}

/** Where the chat will work, what answers, and what it may do unasked. */
export function StartChips() {
  useEffect(() => {
    void readStart();
    const look = (): void => void readStart();
    // Another device may have chosen otherwise.
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, []);
  const complaint = startComplaint.value;
  const folder = start.value?.folder ?? "";
  return (
    <>
      <LocalLine model={startModel.value} />
      {complaint && !chipsOpen.value && (
        <p class="complaint" role="alert">
          {visible(complaint)}
        </p>
      )}
      {start.value && (
        <ChipButton model={startModel.value} mode={startMode.value} note={nameOf(folder)} />
      )}
      {chipsOpen.value && start.value && (
        <ChipsSheet
          model={startModel.value}
          mode={startMode.value}
          onChange={async (change) => {
            wish.value = { ...wish.value, ...change };
            return null;
          }}
          onClose={() => {
            chipsOpen.value = false;
          }}
        >
          <Folders folder={folder} />
        </ChipsSheet>
      )}
    </>
  );
}

/** The last part of a path. */
function nameOf(folder: string): string {
  return visible(folder.split("/").findLast((part) => part !== "") ?? folder);
}

/** The roots of the server, the folders of earlier chats, and any other one below a root. */
function Folders({ folder }: { folder: string }) {
  const [typed, setTyped] = useState("");
  const roots = start.value?.roots ?? [];
  const used = sessions.value.flatMap(({ cwd }) => cwd ?? []).filter((cwd) => isBelow(cwd, roots));
  const all = [...new Set([folder, ...roots, ...used])].slice(0, MOST);
  return (
    <fieldset class="picks">
      <legend class="label">{t("chips.folder")}</legend>
      {all.map((one) => (
        <label key={one} class="check">
          <input
            type="radio"
            name="folder"
            checked={one === folder}
            onChange={() => void chooseFolder(one)}
          />
          <span class="change-path">{visible(one)}</span>
        </label>
      ))}
      <form
        class="folder-other"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.trim()) void chooseFolder(typed.trim());
        }}
      >
        <div class="field">
          <input
            value={typed}
            placeholder={t("chips.folder.other")}
            aria-label={t("chips.folder.other")}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </div>
        <Button type="submit">{t("chips.folder.take")}</Button>
      </form>
      {startComplaint.value && (
        <p class="complaint" role="alert">
          {visible(startComplaint.value)}
        </p>
      )}
    </fieldset>
  );
}

function isBelow(folder: string, roots: readonly string[]): boolean {
  return roots.some((root) => folder === root || folder.startsWith(root.replace(/\/*$/, "/")));
}
