/** Putting the page on the home screen. */

/** What a browser hands over that can install the page; others hand over nothing. */
export interface InstallOffer extends Event {
  prompt(): Promise<unknown>;
  readonly userChoice: Promise<{ outcome: "accepted" | "dismissed" }>;
}

/** How this page can be installed here. */
export type InstallWay = "installed" | "offer" | "ios" | "menu" | "insecure";

/** Whether it runs as an app already. */
export function runsAsApp(): boolean {
  const standalone = "standalone" in navigator && navigator.standalone === true;
  return standalone || matchMedia("(display-mode: standalone)").matches;
}

/** An iPad says that it is a Mac, but no Mac has a touch screen. */
export function isIos(agent: string, touchPoints: number): boolean {
  return /iPhone|iPad|iPod/.test(agent) || (/Macintosh/.test(agent) && touchPoints > 1);
}

/** The offer of the browser, now or when it comes; the little script at the head of the page keeps it. */
export function watchOffer(onOffer: (offer: InstallOffer | null) => void): void {
  const place = globalThis as { installOffer?: InstallOffer };
  if (place.installOffer) onOffer(place.installOffer);
  addEventListener("beforeinstallprompt", (event) => onOffer(event as InstallOffer));
  addEventListener("appinstalled", () => onOffer(null));
}
