import { useEffect } from "preact/hooks";

/**
 * Keeps the app as high as what the keyboard leaves, in the engines that do not do so themselves.
 *
 * The page's `interactive-widget=resizes-content` is enough for Chromium and Firefox; WebKit only
 * tells the visual viewport.
 */
export function useViewport(): void {
  useEffect(() => {
    const viewport = window.visualViewport;
    if (!viewport) return;
    const fit = (): void => {
      const root = document.documentElement;
      const covered = window.innerHeight - viewport.height * viewport.scale;
      if (covered > 1 && viewport.scale === 1) {
        root.style.setProperty("--app-height", `${viewport.height}px`);
        // WebKit scrolls the page under the keyboard; the app itself must not move.
        scrollTo(0, 0);
      } else {
        root.style.removeProperty("--app-height");
      }
    };
    viewport.addEventListener("resize", fit);
    viewport.addEventListener("scroll", fit);
    return () => {
      viewport.removeEventListener("resize", fit);
      viewport.removeEventListener("scroll", fit);
      document.documentElement.style.removeProperty("--app-height");
    };
  }, []);
}
