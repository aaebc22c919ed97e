/**
 * Windows of this page that hold a stream: over plain HTTP a browser opens six to one server.
 *
 * With all six taken the next request waits for ever, and looks like a dead line.
 */

const CHANNEL = "towline.windows";
/** How long the others have to answer, in milliseconds. */
const ANSWER_MS = 400;

/** Answers when another window counts; `streams` says whether this one counts. */
export function answerCounts(streams: () => boolean): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }) => {
    if (data === "who" && streams()) channel.postMessage("me");
  };
  return () => channel.close();
}

/** How many other windows of this browser hold a stream. */
export function countOthers(): Promise<number> {
  const channel = new BroadcastChannel(CHANNEL);
  let count = 0;
  channel.onmessage = ({ data }) => {
    if (data === "me") count += 1;
  };
  channel.postMessage("who");
  return new Promise((resolve) => {
    setTimeout(() => {
      channel.close();
      resolve(count);
    }, ANSWER_MS);
  });
}
