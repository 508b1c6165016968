/**
 * Colors and type styles in texts for people. By default, only terminals that can show colors get them. NO_COLOR turns
 * them off (no-color.org). CLICOLOR_FORCE turns them on, also for pipes and files. CLICOLOR=0 turns them off on
 * terminals.
 */
import type { Io } from "./io.ts";

/** The escape codes that start and end each style. The terminal's own 16 colors suit light and dark backgrounds. */
const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export const colorVariables = {
  NO_COLOR: "if it is not empty: no colors, even on a terminal",
  CLICOLOR_FORCE: "if it is neither empty nor 0: colors also in pipes and files",
} as const;

export type TextStyle = keyof typeof codes;

/** Returns `text` in a style; returns it unchanged if colors are off. */
export type TextPainter = (style: TextStyle, text: string) => string;

/**
 * Returns the painter for texts that are written to `stream`. The caller must first pass texts of other users or
 * programs through `printable`.
 */
export function chooseTextPainter(io: Io, stream: "stdout" | "stderr"): TextPainter {
  if (!hasColor(io, stream)) return (_style, text) => text;
  return (style, text) => {
    const [start, end] = codes[style];
    return `\x1b[${start}m${text}\x1b[${end}m`;
  };
}

function hasColor(io: Io, stream: "stdout" | "stderr"): boolean {
  const { NO_COLOR: never = "", CLICOLOR_FORCE: always = "", CLICOLOR: wanted, TERM: terminal } = io.env;
  if (never !== "") return false;
  if (always !== "" && always !== "0") return true;
  if (wanted === "0" || terminal === "dumb") return false;
  return stream === "stdout" ? io.stdoutIsTerminal : io.stderrIsTerminal;
}
