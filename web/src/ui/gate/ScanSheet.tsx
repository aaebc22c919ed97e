import "../../core/words.later.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/i18n.ts";
import { scanCode, scanObstacle } from "../../platform/scanner.ts";
import { Sheet } from "../base/Sheet.tsx";

interface ScanSheetProps {
  onCode: (code: string) => void;
  onClose: () => void;
}

/** Reads the code with the camera, or says how else it can be read. */
export function ScanSheet({ onCode, onClose }: ScanSheetProps) {
  const video = useRef<HTMLVideoElement>(null);
  const obstacle = scanObstacle();
  const [state, setState] = useState<"start" | "point" | "denied">("start");
  useEffect(() => {
    const shown = video.current;
    if (obstacle || !shown) return;
    const stop = new AbortController();
    const begin = (): void => setState("point");
    shown.addEventListener("playing", begin, { once: true });
    scanCode(shown, stop.signal).then(
      (code) => {
        if (code && !stop.signal.aborted) onCode(code);
      },
      () => setState("denied"),
    );
    return () => stop.abort();
  }, []);
  return (
    <Sheet title={t("gate.scan.title")} onClose={onClose}>
      {!obstacle && state !== "denied" && (
        <video ref={video} class="viewfinder" playsInline muted />
      )}
      <p role="status">{t(`gate.scan.${obstacle ?? state}`, { command: "towline pair" })}</p>
    </Sheet>
  );
}
