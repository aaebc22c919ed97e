import { render } from "preact";
import { pageIdle } from "./platform/idle.ts";
import { askEarly } from "./platform/live.ts";
import { access, askWho } from "./state/account.ts";
import { route, startRouter, takeCode } from "./state/router.ts";
import { startSettings } from "./state/settings.ts";
import "./styles/index.css";
import { App } from "./ui/App.tsx";

/** Shows the page in the document's one place. */
async function start(): Promise<void> {
  const place = document.getElementById("app");
  if (!place) return;
  await startSettings();
  if (__FIXTURES__) {
    const { startFixture } = await import("./fixtures/start.ts");
    if (startFixture(place)) return;
  }
  const code = takeCode();
  if (location.search === "?shared=1") {
    void import("./state/shared.ts").then(({ findShared }) => findShared());
  }
  startRouter();
  const at = route.peek();
  let known: Promise<void> | undefined;
  if (code !== undefined) access.value = "out";
  else {
    known = askWho();
    if (at.page === "chat") askEarly(at.session);
  }
  render(<App code={code} />, place);
  // A page that waits for the server is idle too, and shows nothing yet.
  await known;
  pageIdle(() => void import("./state/device.ts").then(({ startDevice }) => startDevice()));
}

void start();
