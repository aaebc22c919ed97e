import { ICONS, type IconName } from "./icons.ts";

/** A picture beside a word, by its name or drawn by the caller: screen readers pass over it. */
export function Icon({
  name,
  path,
}: { name: IconName; path?: never } | { name?: never; path: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={path ?? ICONS[name]} />
    </svg>
  );
}
