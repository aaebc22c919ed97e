import { ICONS, type IconName } from "./icons.ts";

/** A picture beside a word: screen readers pass over it. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={ICONS[name]} />
    </svg>
  );
}
