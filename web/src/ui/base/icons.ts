/** The page's own icons: paths in a 24 by 24 box, drawn with one stroke. */
export const ICONS = {
  alert: "M12 4 2.8 19.5h18.4ZM12 10v4.5M12 17h.01",
  arrow_down: "M12 5v14M6 13l6 6 6-6",
  arrow_up: "M12 19V5M6 11l6-6 6 6",
  check: "m5 12.5 4.5 4.5L19 7.5",
  chevron: "m9 6 6 6-6 6",
  clock: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17ZM12 7.5V12l3 2",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v11H9ZM15 9V4H5v11h4",
  file: "M6 3.5h8l4 4v13H6ZM14 3.5v4h4",
  globe:
    "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17ZM3.5 12h17M12 3.5c5 5 5 12 0 17-5-5-5-12 0-17Z",
  menu: "M4 7h16M4 12h16M4 17h16",
  more: "M12 5a.4.4 0 1 0 .01 0ZM12 11.6a.4.4 0 1 0 .01 0ZM12 18.2a.4.4 0 1 0 .01 0Z",
  pencil: "m4 20 1-4L16 5l3 3L8 19ZM14 7l3 3",
  plus: "M12 5v14M5 12h14",
  shield: "M12 3.5 5 6v5.5c0 4.5 3 7.5 7 9 4-1.5 7-4.5 7-9V6Z",
  stop: "M7.5 7.5h9v9h-9Z",
  terminal: "m5 7 5 5-5 5M12.5 17H19",
  wrench:
    "M14.5 6.5a4 4 0 0 1 5-1l-2.5 2.5 1 1 2.5-2.5a4 4 0 0 1-5.5 5l-7 7a1.8 1.8 0 0 1-2.5-2.5l7-7a4 4 0 0 1 2-2.5Z",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof ICONS;
