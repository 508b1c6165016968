/** Marks of states, which differ in color and shape, and the icons of the views. */
import type { JSX } from "preact";
import { shownText } from "../ui/shown_text.ts";

export type MarkKind = "good" | "warn" | "bad" | "busy" | "idle";

const markShapes: Readonly<Record<MarkKind, JSX.Element>> = {
  good: (
    <>
      <circle cx="7" cy="7" r="6.4" />
      <path class="in" d="M4.2 7.2 6.2 9.2 9.9 5" />
    </>
  ),
  warn: (
    <>
      <path d="M7 .8 13.6 12.8H.4Z" />
      <path class="in" d="M7 5v3.6M7 10.9v.1" />
    </>
  ),
  bad: (
    <>
      <path d="M4.2.6h5.6L13.4 4.2v5.6L9.8 13.4H4.2L.6 9.8V4.2Z" />
      <path class="in" d="M4.9 4.9l4.2 4.2M9.1 4.9 4.9 9.1" />
    </>
  ),
  busy: <path d="M3 1.2v11.6L13 7Z" />,
  idle: <circle cx="7" cy="7" r="5.4" />,
};

/** Draws the mark of a state. Give a `label` where no word beside the mark names the state. */
export function Mark({ kind, label }: { readonly kind: MarkKind; readonly label?: string }): JSX.Element {
  const naming = label === undefined
    ? { "aria-hidden": "true" as const }
    : { role: "img" as const, "aria-label": label };
  return <svg class={`mark ${kind}`} viewBox="0 0 14 14" {...naming}>{markShapes[kind]}</svg>;
}

/** Shows a state in words with its mark. */
export function StateMark({ kind, text }: { readonly kind: MarkKind; readonly text: string }): JSX.Element {
  return (
    <span class={`state ${kind}`}>
      <Mark kind={kind} />
      <span>{shownText(text)}</span>
    </span>
  );
}

const iconPaths = {
  overview: "M2.5 9.5h3l2-6 3 11 2-5h3",
  locks: "M4 8h10v7.5H4ZM6 8V5.8a3 3 0 0 1 6 0V8",
  elections: "M3 14.5h12M3.2 11.5 2.5 5l3.6 2.6L9 3l2.9 4.6L15.5 5l-.7 6.5Z",
  barriers: "M3 3v12M15 3v12M6 6h6M6 9h6M6 12h6",
  pools: "M9 2.5 15.5 6 9 9.5 2.5 6ZM2.5 9.2 9 12.7l6.5-3.5M2.5 12.2 9 15.7l6.5-3.5",
  ticks: "M15.5 9A6.5 6.5 0 1 1 2.5 9a6.5 6.5 0 0 1 13 0M9 5.3V9l2.5 1.6",
  topics: "M2.5 5h8M2.5 9h13M2.5 13h8M12 3l2.5 2L12 7",
  retry: "M14.8 7A6.2 6.2 0 1 0 15 10.6M15.2 3.2V7H11.4",
  servers: "M3.5 3h11v5h-11ZM3.5 10h11v5h-11ZM6 5.5h.1M6 12.5h.1",
  search: "M12 7.5a4.5 4.5 0 1 1-9 0a4.5 4.5 0 0 1 9 0M11 11l3.5 3.5",
  theme: "M15 9A6 6 0 1 1 3 9a6 6 0 0 1 12 0M9 3v12M9 6h4M9 9h6M9 12h4",
} as const;

export type IconName = keyof typeof iconPaths;

export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 18 18" aria-hidden="true">
      <path d={iconPaths[name]} />
    </svg>
  );
}

export function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 26 26" aria-hidden="true">
      <rect x="1" y="10" width="24" height="6.5" rx="3.25" transform="rotate(-38 13 13)" />
      <path d="m9.2 12.2 4 5.1M14 8.45l4 5.1" />
    </svg>
  );
}
