import { localeNow } from "../../core/i18n.ts";
import { formatClock } from "../../core/time.ts";

/** When a message was said: seen when the pointer or the focus is on it. */
export function Clock({ time }: { time: string }) {
  return (
    <time class="quiet" dateTime={time}>
      {formatClock(time, localeNow())}
    </time>
  );
}
