import type { ComponentChildren } from "preact";
import { formatRoute, go, type Route } from "../../state/router.ts";

interface LinkProps {
  to: Route;
  className: string;
  current?: boolean;
  onGo?: () => void;
  children: ComponentChildren;
}

/** A link to a place in the app; with a modifier it is the browser's own. */
export function Link({ to, className, current = false, onGo, children }: LinkProps) {
  return (
    <a
      class={className}
      href={formatRoute(to)}
      aria-current={current ? "page" : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go(to);
        onGo?.();
      }}
    >
      {children}
    </a>
  );
}
