/**
 * Windows of this page that hold a stream: over HTTP/1.1 a browser opens six connections to one
 * server, and what comes after them waits for ever, and looks like a dead line.
 */

const CHANNEL = "towline.windows";
/** How long the others have to answer, in milliseconds. */
const ANSWER_MS = 400;

/** Answers when another window counts: `since` is when this one's stream began, if it has one; no two the same. */
export function answerCounts(since: () => number | null): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }) => {
    // A hidden window lets its stream go in a moment: nobody gives way to it.
    const counts = since() !== null && document.visibilityState === "visible";
    if (data === "who" && counts) channel.postMessage(since());
  };
  return () => channel.close();
}

/** How many other windows of this browser hold a stream that began before `since`. */
export function countOthers(since: number): Promise<number> {
  const channel = new BroadcastChannel(CHANNEL);
  // Two may count at once, and each hears the answers to the other.
  const found = new Set<number>();
  channel.onmessage = ({ data }) => {
    if (typeof data === "number" && data < since) found.add(data);
  };
  channel.postMessage("who");
  return new Promise((resolve) => {
    setTimeout(() => {
      channel.close();
      resolve(found.size);
    }, ANSWER_MS);
  });
}

/** Whether all requests share one connection, as they do over HTTP/2 and later. */
export function sharesConnection(): boolean {
  return performance
    .getEntriesByType("resource")
    .some(
      (one) =>
        one.name.includes("/api/") &&
        /^h[23]/.test((one as PerformanceResourceTiming).nextHopProtocol),
    );
}
