/** The key bindings of `baton top`, and how each key changes the display. Pure. */

export const topSortKeys = ["kind", "name", "hold", "wait", "age"] as const;
export type TopSortKey = (typeof topSortKeys)[number];

/** The user's choices on the screen: order, filter, scroll position, help. */
export interface TopUiState {
  readonly sort: TopSortKey;
  readonly isReversed: boolean;
  /** Only rows that contain this text are shown. Empty shows all rows. */
  readonly filter: string;
  /** True while the user is typing the filter. */
  readonly isTyping: boolean;
  /** Number of the first visible line of the body, from 0. */
  readonly offset: number;
  readonly isHelp: boolean;
}

export const initialTopUi: TopUiState = {
  sort: "kind",
  isReversed: false,
  filter: "",
  isTyping: false,
  offset: 0,
  isHelp: false,
};

const escape = "\x1b";

/** The escape sequences of keys, in both cursor-key modes of terminals. */
const sequences: Readonly<Record<string, string>> = {
  "[A": "up",
  OA: "up",
  "[B": "down",
  OB: "down",
  "[5~": "pageup",
  "[6~": "pagedown",
  "[H": "home",
  OH: "home",
  "[1~": "home",
  "[F": "end",
  OF: "end",
  "[4~": "end",
};

const controls: Readonly<Record<string, string>> = {
  "\r": "enter",
  "\n": "enter",
  "\x7f": "backspace",
  "\b": "backspace",
  "\x03": "^C",
  "\x1a": "^Z",
  "\x0c": "^L",
  "\x15": "^U",
  "\x04": "^D",
};

/** Splits terminal input into key names. A printable character is its own name; unknown sequences are skipped. */
export function parseTerminalKeys(text: string): string[] {
  const keys: string[] = [];
  for (let rest = text; rest !== "";) {
    const sequence = rest.startsWith(escape) ? /^(?:\[[\d;?<]*[A-Za-z~]|O[A-Z])/.exec(rest.slice(1))?.[0] : undefined;
    const [char = ""] = rest;
    if (sequence !== undefined) {
      const key = sequences[sequence];
      if (key !== undefined) keys.push(key);
      rest = rest.slice(1 + sequence.length);
      continue;
    }
    if (char === escape) keys.push("escape");
    else if (controls[char] !== undefined) keys.push(controls[char]);
    else if (char >= " ") keys.push(char);
    rest = rest.slice(char.length);
  }
  return keys;
}

/** How many lines the body has, and how many of them fit on the screen. */
export interface TopBodySize {
  readonly lines: number;
  readonly room: number;
}

/** An action that the program must take after a key; null if only the display changes. */
export type TopAction = "quit" | "interrupt" | "suspend" | "refresh" | null;

export interface TopKeyResult {
  readonly ui: TopUiState;
  readonly action: TopAction;
}

/** Returns the display after a key press, and the action that the key requests. */
export function applyTopKey(ui: TopUiState, key: string, size: TopBodySize): TopKeyResult {
  if (key === "^C") return { ui, action: "interrupt" };
  if (key === "^Z") return { ui, action: "suspend" };
  if (key === "^L") return { ui, action: "refresh" };
  if (ui.isTyping) return { ui: typeKey(ui, key), action: null };
  if (ui.isHelp) return { ui: { ...ui, isHelp: false }, action: key === "q" ? "quit" : null };
  switch (key) {
    case "q":
    case "^D":
      return { ui, action: "quit" };
    case " ":
      return { ui, action: "refresh" };
    default:
      return { ui: changedUi(ui, key, size), action: null };
  }
}

function typeKey(ui: TopUiState, key: string): TopUiState {
  if (key === "enter") return { ...ui, isTyping: false };
  if (key === "escape") return { ...ui, isTyping: false, filter: "" };
  if (key === "backspace") return { ...ui, filter: [...ui.filter].slice(0, -1).join(""), offset: 0 };
  if (key === "^U") return { ...ui, filter: "", offset: 0 };
  return [...key].length === 1 ? { ...ui, filter: ui.filter + key, offset: 0 } : ui;
}

function changedUi(ui: TopUiState, key: string, { lines, room }: TopBodySize): TopUiState {
  const scrolled = (offset: number) => ({ ...ui, offset: Math.max(0, Math.min(offset, lines - room)) });
  switch (key) {
    case "up":
    case "k":
      return scrolled(ui.offset - 1);
    case "down":
    case "j":
      return scrolled(ui.offset + 1);
    case "pageup":
      return scrolled(ui.offset - Math.max(1, room - 1));
    case "pagedown":
      return scrolled(ui.offset + Math.max(1, room - 1));
    case "home":
    case "g":
      return scrolled(0);
    case "end":
    case "G":
      return scrolled(lines);
    case "s":
      return { ...ui, sort: topSortKeys[(topSortKeys.indexOf(ui.sort) + 1) % topSortKeys.length] ?? "kind" };
    case "r":
      return { ...ui, isReversed: !ui.isReversed };
    case "/":
      return { ...ui, isTyping: true };
    case "escape":
      return { ...ui, filter: "", offset: 0 };
    case "?":
    case "h":
      return { ...ui, isHelp: true };
    default:
      return ui;
  }
}
