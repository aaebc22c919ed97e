import "../../core/words.code.ts";
import { t } from "../../core/i18n.ts";
import { visible, visibleName } from "../../core/visible.ts";
import { IconButton } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { Picture } from "../base/Picture.tsx";
import type { Attached, Attachments } from "./attached.ts";

/** The files that go along: pictures small, all with how far they are. */
export function AttachedList({ attachments }: { attachments: Attachments }) {
  const list = attachments.list.value;
  if (list.length === 0) return null;
  return (
    <ul class="attached">
      {list.map((one) => (
        <li key={one.id} class={one.state === "failed" ? "attached-one bad" : "attached-one"}>
          <Sign one={one} />
          <span class="attached-name">{tell(one)}</span>
          <IconButton
            icon="close"
            label={t("attach.remove", { name: visibleName(one.name) })}
            onClick={() => attachments.remove(one.id)}
          />
        </li>
      ))}
    </ul>
  );
}

function Sign({ one: { name, state, picture } }: { one: Attached }) {
  if (state === "busy") return <span class="ring" aria-hidden="true" />;
  return picture ? (
    <Picture src={picture} name={visibleName(name)} />
  ) : (
    <Icon name={state === "failed" ? "alert" : "file"} />
  );
}

function tell({ name, state, message }: Attached): string {
  const shown = visibleName(name);
  if (state === "busy") return t("attach.busy", { name: shown });
  return state === "failed"
    ? t("attach.failed", { name: shown, message: visible(message) })
    : shown;
}
