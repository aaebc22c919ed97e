import "../../core/words.code.ts";
import { useEffect } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { visible, visibleName } from "../../core/visible.ts";
import { loadModels, models } from "../../state/providers.ts";
import { IconButton } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { Picture } from "../base/Picture.tsx";
import type { Attached, Attachments } from "./attached.ts";

/** The files that go along: pictures small, all with how far they are. */
export function AttachedList({ attachments, model }: { attachments: Attachments; model: string }) {
  const list = attachments.list.value;
  const hasPicture = list.some(({ picture, block }) => picture || block?.type === "image");
  const isBlind = useBlind(hasPicture ? model : "");
  if (list.length === 0) return null;
  return (
    <>
      {isBlind && (
        <p class="complaint attached-complaint" role="status">
          {t("attach.blind", { model: visible(model.split("/").at(-1) ?? "") })}
        </p>
      )}
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
    </>
  );
}

/** Whether a model is known to see no pictures; asked only when there is one. */
function useBlind(model: string): boolean {
  const list = models.value;
  useEffect(() => {
    if (model && models.peek().state !== "ready") void loadModels();
  }, [model]);
  if (!model || list.state !== "ready") return false;
  return list.value.models.find((one) => one.model === model)?.images === false;
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
