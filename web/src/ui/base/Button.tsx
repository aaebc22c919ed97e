import type { ComponentChildren } from "preact";
import { Icon } from "./Icon.tsx";
import type { IconName } from "./icons.ts";

interface ButtonProps {
  children: ComponentChildren;
  onClick?: () => void;
  kind?: "main" | "plain" | "danger";
  type?: "button" | "submit";
  disabled?: boolean;
  autoFocus?: boolean;
}

/** A button with words on it. */
export function Button({ children, kind = "plain", type = "button", ...rest }: ButtonProps) {
  return (
    <button class={`button ${kind}`} type={type} {...rest}>
      {children}
    </button>
  );
}

interface IconButtonProps {
  icon: IconName;
  label: string;
  onClick?: () => void;
  className?: string;
  disabled?: boolean;
  popoverTarget?: string;
}

/** A button that is only an icon; its label is read out and shown on hover. */
export function IconButton({
  icon,
  label,
  className = "",
  popoverTarget,
  ...rest
}: IconButtonProps) {
  return (
    <button
      class={`icon-button ${className}`}
      type="button"
      aria-label={label}
      title={label}
      {...(popoverTarget && { popovertarget: popoverTarget })}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  );
}
