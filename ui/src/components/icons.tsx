import type { ReactNode } from "react";

/** Paths in a 16 × 16 view box, in the colour of the surrounding text. */
const paths = {
  play: <path d="M4 2.5v11l9-5.5z" fill="currentColor" />,
  pause: <path d="M4 3h3v10H4zM9 3h3v10H9z" fill="currentColor" stroke="none" />,
  start: <path d="M3 3v10M13 3 6 8l7 5z" />,
  end: <path d="M13 3v10M3 3l7 5-7 5z" />,
  back: <path d="M10 3 5 8l5 5" />,
  forward: <path d="m6 3 5 5-5 5" />,
  up: <path d="m3 10 5-5 5 5" />,
  down: <path d="m3 6 5 5 5-5" />,
  sun: (
    <path d="M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1" />
  ),
  moon: <path d="M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z" />,
  search: <path d="M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5 14 14" />,
  fork: <path d="M4 2.5v11M4 10c0-3 8-2 8-6.5M2.5 4 4 2.5 5.5 4M10.5 5 12 3.5 13.5 5" />,
  rewind: <path d="M8 3 2.5 8 8 13zM14 3 8.5 8 14 13z" />,
  undo: <path d="M3 6h6.5a3.5 3.5 0 0 1 0 7H6M5.5 3 3 6l2.5 3" />,
  tool: <path d="M10 2.5a3.5 3.5 0 0 0-3.300 4.700L2.5 11.5l2 2 4.300-4.200A3.5 3.5 0 0 0 13.5 6L11 7.5 8.5 5z" />,
  copy: <path d="M5.500 5.500h7.500V13H5.500zM10.500 5.500V3H3v7.500h2.500" />,
  list: <path d="M2.500 4h.1M2.500 8h.1M2.500 12h.1M5.500 4h8M5.500 8h8M5.500 12h8" />,
  link: <path d="M6.5 9.5 9.5 6.5M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M4.5 7 3 8.5A3 3 0 0 0 7.5 13L9 11.5" />,
  stop: <rect x="3.5" y="3.5" width="9" height="9" rx="1" fill="currentColor" />,
  send: <path d="M2 8h11M9 4l4 4-4 4" />,
  close: <path d="m4 4 8 8M12 4l-8 8" />,
  check: <path d="m3 8.5 3.5 3.5L13 4.5" />,
  export: <path d="M8 10V2M5 4.5 8 2l3 2.5M3 9v4.5h10V9" />,
  help: <path d="M6 6a2 2 0 1 1 2.5 2c-.4.2-.5.5-.5 1.300M8 12v.2" />,
  thought: <path d="M8 3C4.5 3 2 5 2 7.5S4.5 12 8 12s6-2 6-4.5S11.5 3 8 3zM4 13.5v.2" />,
  clear: <path d="M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.5 9h6l.5-9" />,
  plus: <path d="M8 3v10M3 8h10" />,
  more: <path d="M3.5 8h.1M8 8h.1M12.5 8h.1" strokeWidth="2.5" />,
  edit: <path d="M10.5 3 13 5.5 6 12.5l-3 .5.5-3zM9 4.5 11.5 7" />,
  star: <path d="m8 2.5 1.700 3.500 3.800.5-2.800 2.700.7 3.800L8 11.200 4.600 13l.7-3.800L2.5 6.5 6.300 6z" />,
  starred: (
    <path
      d="m8 2.5 1.700 3.500 3.800.5-2.800 2.700.7 3.800L8 11.200 4.600 13l.7-3.800L2.5 6.5 6.300 6z"
      fill="currentColor"
    />
  ),
  archive: <path d="M2.5 3.5h11v3h-11zM3.5 6.5v6.5h9V6.5M6.5 9h3" />,
  tag: <path d="M2.5 8V2.5H8l5.500 5.500L8 13.500zM5.5 5.5h.1" />,
  lock: <path d="M4 7.5h8v6H4zM5.5 7.5V5a2.500 2.500 0 0 1 5 0v2.5" />,
  agent: <path d="M3 6h10v7H3zM8 6V3M8 2.500v.1M6 9v1M10 9v1" />,
  share: <path d="M8 9V2M5.5 4.500 8 2l2.500 2.500M5 7H3.500v6.500h9V7H11" />,
  minus: <path d="M3 8h10" />,
  fit: <path d="M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10" />,
  full: <path d="M9.5 2.500h4v4M13.500 2.500 9 7M6.500 13.500h-4v-4M2.500 13.500 7 9" />,
  flow: <path d="M1.5 5.5h5v5h-5zM9.5 8h-3M9.5 8l2.500-2.500L14.500 8 12 10.500z" />,
  chat: <path d="M2.5 3h11v7.500H7L4 13v-2.500H2.5z" />,
  dot: <circle cx="8" cy="8" r="4" fill="currentColor" stroke="none" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof paths;

/** A decorative icon, hidden from screen readers. */
export function Icon({ name, className = "" }: { name: IconName; className?: string }) {
  return (
    <svg
      viewBox="0 0 16 16"
      className={`inline-block shrink-0 ${/\bsize-/.test(className) ? "" : "size-4"} ${className}`}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {paths[name]}
    </svg>
  );
}
