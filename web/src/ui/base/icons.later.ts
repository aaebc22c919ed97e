/** Icons that the first screen does without, as `Icon` takes them. */
export const LATER_ICONS = {
  back: "m15 6-6 6 6 6",
  bars: "M5 20v-7M12 20V5M19 20v-4M3 20h18",
  bell: "M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 2h-15ZM10 21h4",
  chat: "M4 5h16v11H10l-4.5 3.5V16H4Z",
  device: "M7.5 3h9v18h-9ZM11 18.5h2",
  download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  info: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17ZM12 11v5M12 8h.01",
  key: "M8.5 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM11.5 12.5 20 4M16 8l2.5 2.5",
  look: "M12 3.5a8.5 8.5 0 1 0 0 17ZM12 3.5a8.5 8.5 0 0 1 0 17",
  shield: "M12 3.5 5 6v5.5c0 4.5 3 7.5 7 9 4-1.5 7-4.5 7-9V6ZM9 12l2.2 2.2L15 10",
  sliders: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
} as const;
