/** Reading a square code with the camera, where the browser can. */

/** What this browser's own reader of codes looks like; few have one. */
interface Detector {
  detect(source: HTMLVideoElement): Promise<readonly { rawValue: string }[]>;
}

type DetectorMaker = new (options: { formats: string[] }) => Detector;

/** Looked at this often, in milliseconds: a hand holds still for longer. */
const LOOK_EVERY_MS = 200;

function findMaker(): DetectorMaker | undefined {
  return (globalThis as { BarcodeDetector?: DetectorMaker }).BarcodeDetector;
}

/** What stands in the way of scanning, if anything. */
export function scanObstacle(): "insecure" | "unable" | null {
  if (!isSecureContext) return "insecure";
  return findMaker() && navigator.mediaDevices ? null : "unable";
}

/** The one-time code in what a square code says; nothing when it is another kind. */
export function codeIn(text: string): string | undefined {
  return /#code=([\w-]+)$/.exec(text)?.[1] ?? /^[0-9a-z]{4}-?[0-9a-z]{4}$/i.exec(text)?.[0];
}

/**
 * Shows what the camera sees until a one-time code is in it.
 *
 * @throws DOMException when the camera may not be used
 */
export async function scanCode(
  video: HTMLVideoElement,
  signal: AbortSignal,
): Promise<string | undefined> {
  const Maker = findMaker();
  if (!Maker) return undefined;
  const stream = await navigator.mediaDevices.getUserMedia({
    video: { facingMode: "environment" },
  });
  try {
    video.srcObject = stream;
    await video.play();
    const detector = new Maker({ formats: ["qr_code"] });
    while (!signal.aborted) {
      // A frame that is not there yet cannot be read: the next one can.
      const found = await detector.detect(video).catch(() => []);
      const code = found.map(({ rawValue }) => codeIn(rawValue)).find(Boolean);
      if (code) return code;
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
    return undefined;
  } finally {
    for (const track of stream.getTracks()) track.stop();
    video.srcObject = null;
  }
}
