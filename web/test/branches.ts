import { Session } from "node:inspector";

/** What the test runner itself writes around a file. */
const OF_THE_LOADER = /^catch \{\s*\}$/;

interface Range {
  startOffset: number;
  endOffset: number;
  count: number;
}

interface Script {
  url: string;
  scriptId: string;
  functions: { functionName: string; ranges: Range[] }[];
}

/**
 * Counts how often each branch of a file is taken, by the engine's own counters.
 *
 * @param name how the address of the file ends
 * @param run uses the file, which is loaded already
 * @returns the pieces that were never run, each as its function and how it begins
 */
export async function findMissed(name: string, run: () => void): Promise<string[]> {
  const session = new Session();
  session.connect();
  const ask = <T>(method: string, params: object = {}): Promise<T> =>
    new Promise((resolve, reject) => {
      session.post(method, params, (error, answer) =>
        error ? reject(error) : resolve(answer as T),
      );
    });
  try {
    await ask("Profiler.enable");
    await ask("Debugger.enable");
    await ask("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    run();
    const { result } = await ask<{ result: Script[] }>("Profiler.takePreciseCoverage");
    const script = result.find(({ url }) => url.split("?")[0]?.endsWith(name));
    if (!script) throw new Error(`${name} is not loaded`);
    const { scriptId } = script;
    const { scriptSource } = await ask<{ scriptSource: string }>("Debugger.getScriptSource", {
      scriptId,
    });
    return script.functions.flatMap(({ functionName, ranges }) =>
      ranges
        .filter(({ count }) => count === 0)
        .map(({ startOffset, endOffset }) => scriptSource.slice(startOffset, endOffset))
        .filter((text) => !OF_THE_LOADER.test(text))
        .map((text) => `${functionName}: ${text.replace(/\s+/g, " ").slice(0, 120)}`),
    );
  } finally {
    session.disconnect();
  }
}
