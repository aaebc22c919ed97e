import "../../core/words.code.ts";
import type { RefObject } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { readSlash } from "../../core/token.ts";
import { visible } from "../../core/visible.ts";
import type { PromptBlock } from "../../protocol/types.gen.ts";
import type { Chat } from "../../state/chat.ts";
import { settleShared, shared } from "../../state/shared.ts";
import { startComplaint, startModel } from "../../state/start.ts";
import { editing } from "../chat/editing.ts";
import { editOwn } from "../turn/OwnFooter.tsx";
import { AttachedList } from "./AttachedList.tsx";
import { AttachMenu } from "./AttachMenu.tsx";
import { Attachments } from "./attached.ts";
import { Palette, usePalette } from "./Palette.tsx";
import { LONG_PASTE, pasteInto, takePasted, textFile } from "./pasted.ts";
import { SharedSheet } from "./SharedSheet.tsx";
import { runSlash } from "./slash.ts";

/** What the tools beside the field do for it. */
export interface Tools {
  /** Takes a key that is meant for an open list of suggestions. */
  key: (event: KeyboardEvent) => boolean;
  /** Does what a text asks for, when it is a command. */
  slash: (text: string) => boolean;
  /** The files that go along, which are then gone from here; nothing while some are not ready. */
  take: () => readonly PromptBlock[] | null;
}

interface ComposerToolsProps {
  session: string | null;
  chat: Chat | null;
  text: string;
  field: RefObject<HTMLTextAreaElement | null>;
  /** Where the composer finds what these tools do. */
  handle: { current: Tools | null };
  onText: (text: string) => void;
  /** How many files go along now. */
  onCount: (count: number) => void;
}

/** Files, commands and paths: what a composer does without until somebody writes. */
export function ComposerTools(props: ComposerToolsProps) {
  const { session, chat, text, field, handle, onText, onCount } = props;
  const attachments = useMemo(() => new Attachments(), []);
  const count = attachments.list.value.length;
  const palette = usePalette({ session, text, field, onText });
  useEffect(() => () => attachments.close(), [attachments]);
  useEffect(() => onCount(count), [count]);
  useEffect(() => takePasted(field.current, attachments), [attachments]);
  const waits = session === null ? shared.value : null;
  const edit = editing.value;
  useEffect(() => {
    if (edit?.session === session && edit.blocks) attachments.restore(edit.blocks);
  }, [edit, session]);
  useEffect(() => {
    handle.current = {
      key: (event) => palette.key(event) || editLast(event, chat, text, count),
      slash: (asked) => count === 0 && slash(chat, asked),
      take: () => attachments.take(),
    };
  });
  useEffect(
    () => () => {
      handle.current = null;
    },
    [],
  );
  const complaint = attachments.complaint.value;
  return (
    <>
      <Palette palette={palette} />
      <AttachMenu
        onFiles={(files) => attachments.add(files)}
        onPaste={() => void pasteInto(field.current, attachments)}
      />
      <AttachedList attachments={attachments} model={chat ? chat.parts.model : startModel.value} />
      {waits && (
        <SharedSheet
          shared={waits}
          onUse={() => {
            void settleShared();
            const isLong = waits.text.length > LONG_PASTE;
            // The words first: of files there may be more than go along.
            attachments.add([...(isLong ? [textFile(waits.text)] : []), ...waits.files]);
            // What was begun already stays, above it.
            if (waits.text && !isLong) onText([text, waits.text].filter(Boolean).join("\n\n"));
          }}
          onDrop={() => void settleShared()}
        />
      )}
      {complaint && (
        <p class="complaint attached-complaint" role="alert">
          {visible(complaint)}
        </p>
      )}
    </>
  );
}

/** An arrow up in an empty field brings the last own message back. */
function editLast(event: KeyboardEvent, chat: Chat | null, text: string, count: number): boolean {
  const { key, shiftKey, ctrlKey, metaKey, altKey, isComposing } = event;
  if (key !== "ArrowUp" || text !== "" || count > 0 || !chat || chat.turn.peek()) return false;
  if (shiftKey || ctrlKey || metaKey || altKey || isComposing) return false;
  const own = chat.messages.peek().filter(({ role, undone }) => role === "user" && !undone);
  // What steered a turn goes back with the prompt that began it.
  const said = own.find(({ turn }) => turn === own.at(-1)?.turn);
  if (!said?.turn) return false;
  event.preventDefault();
  editOwn(chat, said.turn, said.content);
  return true;
}

/** Begins a command; what was typed comes back when it is not done. */
function slash(chat: Chat | null, text: string): boolean {
  if (!readSlash(text)) return false;
  const told = chat ? chat.complaint : startComplaint;
  told.value = null;
  void runSlash(chat, text).then((complaint) => {
    told.value = complaint;
    if (complaint !== null) editing.value = { session: chat?.session ?? null, text };
  });
  return true;
}
