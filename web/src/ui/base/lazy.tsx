import { type ComponentType, type FunctionComponent, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { pageIdle } from "../../platform/idle.ts";

/** A component of a chunk of its own; `preload` fetches the chunk before it is needed. */
export type LazyComponent<Props> = FunctionComponent<Props> & { preload: () => Promise<void> };

/**
 * Nothing is shown until the chunk is there; when it cannot be fetched, the page says so.
 *
 * @param idle whether the page can do without it: it is fetched when the page is idle, or not at all
 */
export function lazy<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  idle = false,
): LazyComponent<Props> {
  let found: ComponentType<Props> | undefined;
  const preload = async (): Promise<void> => {
    found ??= await load();
  };
  const Lazy: FunctionComponent<Props> = (props) => {
    const [state, setState] = useState<"loading" | "ready" | "failed">("loading");
    useEffect(() => {
      const begin = (): void => {
        preload().then(
          () => setState("ready"),
          () => setState("failed"),
        );
      };
      return idle ? pageIdle(begin) : begin();
    }, []);
    if (found) return h(found as ComponentType<object>, props);
    return state === "failed" && !idle ? <Missing /> : null;
  };
  return Object.assign(Lazy, { preload });
}

/** After an update of the server the old chunks are gone. */
function Missing() {
  return (
    <p class="complaint" role="alert">
      {t("error.chunk")}
      <button type="button" class="link-button" onClick={() => location.reload()}>
        {t("link.reload")}
      </button>
    </p>
  );
}
