import "../../core/words.code.ts";
import { useEffect, useState } from "preact/hooks";
import { t, tMaybe } from "../../core/i18n.ts";
import { visible } from "../../core/visible.ts";
import { ApiFault, call } from "../../platform/api.ts";
import type { TrustFile, TrustInfo } from "../../protocol/types.gen.ts";
import { complaintOf } from "../../state/outbox.ts";
import { Button } from "../base/Button.tsx";
import { Icon } from "../base/Icon.tsx";
import { Sheet } from "../base/Sheet.tsx";

/** What a person does not want to be asked about again until the page is loaded anew. */
const put_off = new Set<string>();

/** Asks whether a folder's own settings count, when it brings some that nobody has trusted. */
export function TrustCard({ session }: { session: string }) {
  const [found, setFound] = useState<TrustInfo | null>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    let left = false;
    setFound(null);
    const look = (): void => {
      if (document.visibilityState === "hidden") return;
      call("get_trust", { path: { session } }).then(
        (info) => left || setFound(info),
        (error: unknown) => {
          // What cannot be asked is not shown: nothing of the folder counts until it is trusted.
          if (!(error instanceof ApiFault)) throw error;
        },
      );
    };
    look();
    // It may be answered on another device meanwhile.
    addEventListener("focus", look);
    return () => {
      left = true;
      removeEventListener("focus", look);
    };
  }, [session]);
  if (!found || found.trusted || !found.files?.length || put_off.has(found.digest)) return null;
  const put = (): void => {
    put_off.add(found.digest);
    setFound({ ...found });
  };
  return (
    <section class="request trust" aria-label={t("trust.title")}>
      <p>{t(found.changed ? "trust.changed" : "trust.title")}</p>
      <div class="turn-ways">
        <Button onClick={put}>{t("trust.no")}</Button>
        <Button kind="main" onClick={() => setOpen(true)}>
          {t("trust.review")}
        </Button>
      </div>
      {open && (
        <TrustSheet
          session={session}
          found={found}
          onChange={setFound}
          onClose={() => setOpen(false)}
        />
      )}
    </section>
  );
}

interface TrustSheetProps {
  session: string;
  found: TrustInfo;
  onChange: (info: TrustInfo) => void;
  onClose: () => void;
}

function TrustSheet({ session, found, onChange, onClose }: TrustSheetProps) {
  const [complaint, setComplaint] = useState("");
  const trust = async (): Promise<void> => {
    setComplaint("");
    // The digest names the files as they stand here: changed ones are refused.
    const body = { digest: found.digest };
    const said = call("set_trust", { path: { session }, body });
    const problem = await complaintOf(said.then(onChange));
    if (problem === null) onClose();
    else setComplaint(problem);
  };
  const problems = found.problems ?? [];
  return (
    <Sheet title={t(found.changed ? "trust.changed" : "trust.title")} onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must take the keys */}
      <div class="sheet-scroll" tabIndex={0}>
        <p>{t("trust.lead")}</p>
        <p class="path">{visible(found.folder)}</p>
        <Contents files={found.files ?? []} contents={found.contents ?? []} />
        <Listed label={t("trust.rules")} lines={found.rules ?? []} />
        {problems.map((problem) => (
          <p key={problem} class="complaint">
            {visible(problem)}
          </p>
        ))}
      </div>
      {complaint && (
        <p class="complaint" role="alert">
          {visible(complaint)}
        </p>
      )}
      <div class="turn-ways">
        <Button onClick={onClose}>{t("trust.no")}</Button>
        <Button kind="main" onClick={() => void trust()}>
          {t("trust.yes")}
        </Button>
      </div>
    </Sheet>
  );
}

/** The files; what is known of one opens with a tap. */
function Contents({
  files,
  contents,
}: {
  files: readonly string[];
  contents: readonly TrustFile[];
}) {
  const known = new Map(contents.map((one) => [one.path, one]));
  return (
    <>
      <h3 class="label">{t("trust.files")}</h3>
      {files.map((path) => {
        const { text = "", shown = "cut" } = known.get(path) ?? {};
        return (
          <details key={path} class="plan" open={contents.length === 1}>
            <summary>
              <Icon name="chevron" />
              <span class="path">{visible(path)}</span>
            </summary>
            {text && <pre class="whole">{visible(text)}</pre>}
            {shown !== "whole" && <p class="quiet">{tMaybe(`trust.${shown}`) ?? visible(shown)}</p>}
          </details>
        );
      })}
    </>
  );
}

function Listed({ label, lines }: { label: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <>
      <h3 class="label">{label}</h3>
      <ul class="listed">
        {lines.map((line) => (
          <li key={line} class="path">
            {visible(line)}
          </li>
        ))}
      </ul>
    </>
  );
}
