/** Draws an animated SVG of terminals, one below the other. Without animation it shows their final state. Pure. */
import type { TextRun } from "./terminal_screen.ts";

export interface PictureTerminal {
  readonly title: string;
  readonly rows: number;
  readonly runs: readonly TextRun[];
}

export interface PictureOptions {
  readonly title: string;
  /** A description for readers who cannot see the picture: the final text of the terminals. */
  readonly description: string;
  readonly columns: number;
  readonly terminals: readonly PictureTerminal[];
  readonly lengthMs: number;
  /** How long the final state is shown before the animation restarts. */
  readonly restMs: number;
}

const characterWidth = 8.4;
const lineHeight = 20;
const fontSize = 14;
const padding = 14;
const barHeight = 30;
const gap = 12;
const background = "#0d1117";
const bar = "#21262d";
const text = "#e6edf3";
const faint = "#8b949e";
/** ANSI colors 0 to 7 on a dark background. */
const colors = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4"];

export function drawPicture(options: PictureOptions): string {
  const { title, description, columns, terminals, lengthMs, restMs } = options;
  const width = Math.ceil(columns * characterWidth + 2 * padding);
  const timeline = new Timeline(lengthMs + restMs);
  let top = 0;
  const bodies = terminals.map((terminal) => {
    const height = barHeight + terminal.rows * lineHeight + padding;
    const body = drawTerminal(terminal, { top, width, height, timeline });
    top += height + gap;
    return body;
  });
  const height = top - gap;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
    `role="img">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(description)}</desc>`,
    "<style>",
    `text{font:${fontSize}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:${text}}`,
    `.bar{fill:${faint};font-size:12px}.gone{visibility:hidden}`,
    ...timeline.rules(),
    "@media (prefers-reduced-motion:reduce){text{animation:none!important}}",
    "</style>",
    ...bodies.flat(),
    "</svg>",
    "",
  ].join("\n");
}

/** Names an animation for each span of time in which text is visible. */
class Timeline {
  readonly #totalMs: number;
  readonly #spans = new Map<string, string>();

  constructor(totalMs: number) {
    this.#totalMs = totalMs;
  }

  /** Returns the CSS class of text that is visible from one time to another. */
  classOf(sinceMs: number, untilMs: number): string {
    const span = `${this.#percent(sinceMs)} ${this.#percent(untilMs)}`;
    const name = this.#spans.get(span) ?? `t${this.#spans.size}`;
    this.#spans.set(span, name);
    return name;
  }

  rules(): string[] {
    return [...this.#spans].flatMap(([span, name]) => {
      const [since, until] = span.split(" ");
      const hides = until === "100" ? "" : `${until}%{visibility:hidden}`;
      return [
        `@keyframes ${name}{0%{visibility:hidden}${since}%{visibility:visible}${hides}}`,
        `.${name}{animation:${name} ${this.#totalMs / 1000}s step-end infinite}`,
      ];
    });
  }

  #percent(atMs: number): string {
    return String(Math.min(100, Math.round(10_000 * atMs / this.#totalMs) / 100));
  }
}

function drawTerminal(
  { title, runs }: PictureTerminal,
  { top, width, height, timeline }: {
    readonly top: number;
    readonly width: number;
    readonly height: number;
    readonly timeline: Timeline;
  },
): string[] {
  const dots = [colors[1], colors[3], colors[2]].map((color, index) =>
    `<circle cx="${16 + 18 * index}" cy="${top + 15}" r="5" fill="${color}"/>`
  );
  return [
    `<rect y="${top}" width="${width}" height="${height}" rx="8" fill="${background}"/>`,
    `<path d="M0 ${top + barHeight}v-22a8 8 0 0 1 8-8h${width - 16}a8 8 0 0 1 8 8v22z" fill="${bar}"/>`,
    ...dots,
    `<text class="bar" x="${width / 2}" y="${top + 19}" text-anchor="middle">${escaped(title)}</text>`,
    ...runs.map((run) => drawRun(run, top + barHeight, timeline)),
  ];
}

function drawRun({ row, column, text, style, sinceMs, untilMs }: TextRun, top: number, timeline: Timeline): string {
  // Readers of SVG treat spaces at the ends of a text in different ways.
  const shown = text.trim();
  const x = round(padding + (column + text.indexOf(shown)) * characterWidth);
  const y = top + (row + 1) * lineHeight;
  const classes = [timeline.classOf(sinceMs, untilMs), ...untilMs === Infinity ? [] : ["gone"]].join(" ");
  const color = style.color === null ? style.dim ? faint : "" : colors[style.color] ?? "";
  const attributes = [
    color === "" ? "" : ` style="fill:${color}"`,
    style.bold ? ' font-weight="bold"' : "",
    // The width of characters differs between fonts.
    shown.length > 1 ? ` textLength="${round(shown.length * characterWidth)}"` : "",
  ].join("");
  return `<text class="${classes}" x="${x}" y="${y}"${attributes} xml:space="preserve">${escaped(shown)}</text>`;
}

const round = (value: number) => Math.round(value * 10) / 10;

function escaped(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
