import { useEffect, useState } from "preact/hooks";

/** From here on the list stands beside the chat. */
const WIDE = "(min-width: 64rem)";

/** Whether there is room for two things side by side, now and after each change. */
export function useWide(): boolean {
  const [wide, setWide] = useState(() => matchMedia(WIDE).matches);
  useEffect(() => {
    const query = matchMedia(WIDE);
    const change = (): void => setWide(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return wide;
}
