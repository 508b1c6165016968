/** Charts: a line of one series, a lane of runs or holds over time, and a duration beside its usual one. */
import { type Signal, useSignal } from "@preact/signals";
import type { JSX, RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type { MarkKind } from "./marks.tsx";
import type { HourPoints } from "./recorded_hour.ts";

/** Returns the width of an element, which is followed while the element is shown. */
function useWidth(element: RefObject<HTMLDivElement | null>, first: number): Signal<number> {
  const width = useSignal(first);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return;
    const follow = () => width.value = Math.max(80, Math.round(current.clientWidth));
    follow();
    const observer = new ResizeObserver(follow);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/**
 * Draws one series over the past hour. A point is null where nothing was recorded, and no line crosses it. `least` is
 * the smallest full height, so that noise looks like noise.
 */
export function Spark({ what, points, kind, least }: {
  /** The name of the series, for a screen reader. */
  readonly what: string;
  readonly points: HourPoints;
  readonly kind: MarkKind;
  readonly least: number;
}): JSX.Element {
  const label = hourText(what, points);
  const width = 240;
  const height = 44;
  const top = Math.max(least, ...points.map((point) => point ?? 0)) * 1.1;
  const x = (index: number) => (index * width / Math.max(1, points.length - 1)).toFixed(1);
  const y = (point: number) => (height - 1 - point / top * (height - 4)).toFixed(1);
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      {unbrokenParts(points).map(({ from, values }) => {
        const points = values.map((value, index) => `${index === 0 ? "M" : "L"}${x(from + index)} ${y(value)}`);
        const line = `${points.join("")}h.01`; // a single point is a dot
        const area = `${line}L${x(from + values.length - 1)} ${height}L${x(from)} ${height}Z`;
        return (
          <g key={from}>
            <path class={`area ${kind}`} d={area} />
            <path class={`line ${kind}`} d={line} />
          </g>
        );
      })}
    </svg>
  );
}

/** Describes a series in words. */
export function hourText(what: string, points: HourPoints): string {
  const known = points.filter((point) => point !== null);
  if (known.length === 0) return `${what}: nothing was recorded yet`;
  const now = countText(points.at(-1) ?? points.at(-2) ?? null);
  return `${what}, past hour: now ${now}, at most ${countText(Math.max(...known))}`;
}

/** Returns the parts of a series between the points that were not recorded. */
function unbrokenParts(points: HourPoints): { readonly from: number; readonly values: number[] }[] {
  const parts: { from: number; values: number[] }[] = [];
  let part: { from: number; values: number[] } | null = null;
  points.forEach((point, index) => {
    if (point === null) part = null;
    else if (part === null) parts.push(part = { from: index, values: [point] });
    else part.values.push(point);
  });
  return parts;
}

export type BlockKind = "done" | "running" | "failed" | "lost" | "missed" | "skipped" | "stopped";

export interface LaneBlock {
  readonly fromMs: number;
  readonly toMs: number;
  readonly kind: BlockKind;
  readonly title: string;
}

/** Blocks later in this list are drawn over the earlier ones, so that a failure is never hidden. */
const drawnOrder: readonly BlockKind[] = ["done", "running", "skipped", "stopped", "lost", "failed", "missed"];
const tallKinds: ReadonlySet<BlockKind> = new Set(["failed", "lost", "missed", "stopped"]);

export interface LaneRange {
  readonly fromMs: number;
  readonly nowMs: number;
  readonly toMs: number;
}

const hourMs = 3_600_000;
const laneHeight = 30;

/** Draws blocks over time; the black line is now. */
export function Lane({ range, blocks, nextMs, label }: {
  readonly range: LaneRange;
  readonly blocks: readonly LaneBlock[];
  readonly nextMs: readonly number[];
  readonly label: string;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 480).value;
  const { fromMs, nowMs, toMs } = range;
  const x = (ms: number) => Math.min(width, Math.max(0, (ms - fromMs) / (toMs - fromMs) * width));
  const seen = blocks.filter((block) => block.toMs >= fromMs && block.fromMs <= toMs)
    .toSorted((a, b) => drawnOrder.indexOf(a.kind) - drawnOrder.indexOf(b.kind));
  return (
    <div class="lane" ref={box}>
      <svg width={width} height={laneHeight} role="img" aria-label={label}>
        <rect class="track" width={x(nowMs)} height={laneHeight} />
        {hoursOf(range, 3).map((ms) => <line key={ms} class="grid" x1={x(ms)} x2={x(ms)} y2={laneHeight} />)}
        {seen.map((block) => <Block key={`${block.fromMs} ${block.kind} ${block.title}`} block={block} x={x} />)}
        {nextMs.filter((ms) => ms > nowMs && x(ms) < width - 4).map((ms) => (
          <circle key={ms} class="next" cx={x(ms)} cy={laneHeight / 2} r="3.2">
            <title>next: {utcTimeText(ms)}</title>
          </circle>
        ))}
        <line class="now" x1={x(nowMs)} x2={x(nowMs)} y2={laneHeight} />
      </svg>
    </div>
  );
}

function Block({ block: { fromMs, toMs, kind, title }, x }: {
  readonly block: LaneBlock;
  readonly x: (ms: number) => number;
}): JSX.Element {
  const height = tallKinds.has(kind) ? 24 : 14;
  const isHollow = kind === "missed" || kind === "lost" || kind === "skipped";
  const width = Math.max(isHollow ? 6 : 3, x(toMs) - x(fromMs) - 1);
  const from = Math.max(0, Math.min(x(fromMs), x(toMs) - (kind === "running" ? width : 0)));
  return (
    <rect class={`block ${kind}`} x={from} width={width} y={(laneHeight - height) / 2} height={height} rx="2">
      <title>{shownText(title)}</title>
    </rect>
  );
}

/** Returns the full hours of a range that are multiples of `step`. */
function hoursOf({ fromMs, toMs }: LaneRange, step: number): number[] {
  const stepMs = step * hourMs;
  const first = Math.ceil(fromMs / stepMs) * stepMs;
  return Array.from(
    { length: Math.max(0, Math.floor((toMs - first) / stepMs) + 1) },
    (_, index) => first + index * stepMs,
  );
}

/** The hours below or above lanes, in UTC. */
export function LaneAxis({ range }: { readonly range: LaneRange }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 480).value;
  const { fromMs, nowMs, toMs } = range;
  const x = (ms: number) => (ms - fromMs) / (toMs - fromMs) * width;
  const isFree = (ms: number) => Math.abs(x(ms) - x(nowMs)) > 34 && x(ms) > 16 && x(ms) < width - 16;
  const isAtEnd = width - x(nowMs) < 16;
  return (
    <div class="lane axis" ref={box} aria-hidden="true">
      <svg width={width} height="18">
        {hoursOf(range, width < 420 ? 6 : 3).filter(isFree).map((ms) => (
          <text key={ms} x={x(ms)} y="13" text-anchor="middle">{utcTimeText(ms).slice(11, 16)}</text>
        ))}
        <text class="label" x={x(nowMs)} y="13" text-anchor={isAtEnd ? "end" : "middle"}>now</text>
      </svg>
    </div>
  );
}

export function LaneLegend({ kinds }: { readonly kinds: readonly BlockKind[] }): JSX.Element {
  return (
    <p class="legend">
      {kinds.map((kind) => (
        <span key={kind}>
          <svg width="12" height="16" aria-hidden="true">
            <rect
              class={`block ${kind}`}
              x="1"
              y={tallKinds.has(kind) ? 1 : 4}
              width={tallKinds.has(kind) ? 7 : 10}
              height={tallKinds.has(kind) ? 14 : 8}
              rx="2"
            />
          </svg>
          {kind === "running" ? "runs" : kind}
        </span>
      ))}
    </p>
  );
}

/** A duration is called longer than usual if it is this many times as long, and at least a minute. */
const longerThanUsual = 3;

export const isLongerThanUsual = (ms: number, usualMs: number | null): boolean =>
  usualMs !== null && ms > longerThanUsual * usualMs && ms > 60_000;

/** Draws a duration as a part of the usual one. Past that, it says how many times as long it is. */
export function AgainstUsual({ ms, usualMs }: { readonly ms: number; readonly usualMs: number }): JSX.Element {
  if (ms > usualMs) {
    const times = ms / usualMs;
    const kind = isLongerThanUsual(ms, usualMs) ? "state warn" : "";
    return <span class={`against ${kind}`}>{countText(Number(times.toFixed(times < 10 ? 1 : 0)))}x usual</span>;
  }
  return (
    <svg class="against" viewBox="0 0 72 6" aria-hidden="true">
      <rect class="track" width="72" height="6" rx="3" />
      <rect class="fill busy" width={Math.max(3, ms / usualMs * 72)} height="6" rx="3" />
    </svg>
  );
}

/** The pattern of lost runs, to which all lanes refer. */
export function ChartPatterns(): JSX.Element {
  return (
    <svg class="patterns" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect class="wash" width="5" height="5" />
          <rect class="stripe" width="2" height="5" />
        </pattern>
      </defs>
    </svg>
  );
}
