/**
 * Sees how long critical sections live, from outside the processes under test. A section is a FIFO whose write end
 * every process of it holds open: it begins when somebody opens it and ends when the last of them is gone, which the
 * kernel says exactly. All times are of one monotonic clock, this process's. Two sections of one group must never be
 * open at once.
 */
import { closeSync, constants, openSync, readSync } from "node:fs";

export interface Section {
  readonly group: string;
  readonly name: string;
  /** Milliseconds; null while it has not begun, or not ended. */
  openedMs: number | null;
  closedMs: number | null;
  /** What its processes wrote. */
  text: string;
}

interface Watched extends Section {
  readonly descriptor: number;
}

export class Observer {
  readonly #watched = new Set<Watched>();
  readonly #changed: (section: Section) => void;
  #lastLookMs = 0;
  /** Between two looks while a section was open, in milliseconds: an overlap that is shorter may go unseen. */
  longestGapMs = 0;

  /** `changed` is told each time a section opens, says something or closes. */
  constructor(changed: (section: Section) => void) {
    this.#changed = changed;
  }

  /** The FIFO must exist. Whoever opens its write end waits until it is watched. */
  watch(group: string, name: string, path: string): void {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    this.#watched.add({ group, name, descriptor, openedMs: null, closedMs: null, text: "" });
  }

  /** Looks at every section, once. */
  look(nowMs: number): void {
    const open = [...this.#watched].filter((section) => section.openedMs !== null);
    if (open.length > 0) this.longestGapMs = Math.max(this.longestGapMs, nowMs - this.#lastLookMs);
    this.#lastLookMs = nowMs;
    for (const section of open) this.#lookAt(section, nowMs);
    for (const section of this.#watched) {
      if (section.openedMs !== null || !this.#lookAt(section, nowMs)) continue;
      // A section may have ended, and this one begun, since the first look at it: the order of the looks must not
      // make an overlap of that. What is still open now was open after this one began.
      for (const other of open) if (other.group === section.group) this.#lookAt(other, nowMs);
    }
  }

  /** No longer looks at a group's sections. */
  forget(group: string): void {
    for (const section of this.#watched) if (section.group === group) this.#drop(section);
  }

  /** True when the section has begun with this look. */
  #lookAt(section: Watched, nowMs: number): boolean {
    if (section.closedMs !== null) return false;
    const before = { ...section };
    let heard: string | null;
    while ((heard = read(section.descriptor)) !== null && heard !== "") {
      section.text += heard;
      section.openedMs ??= nowMs;
    }
    if (heard === null) section.openedMs ??= nowMs;
    else if (section.openedMs !== null) {
      section.closedMs = nowMs;
      this.#drop(section);
    }
    if (section.text !== before.text || section.openedMs !== before.openedMs || section.closedMs !== null) {
      this.#changed({ ...section });
    }
    return before.openedMs === null && section.openedMs !== null;
  }

  #drop(section: Watched): void {
    if (this.#watched.delete(section)) closeSync(section.descriptor);
  }
}

const buffer = new Uint8Array(4096);

/** Text; "" when nobody holds the write end; null when somebody does and says nothing. */
function read(descriptor: number): string | null {
  try {
    const length = readSync(descriptor, buffer, 0, buffer.byteLength, null);
    return new TextDecoder().decode(buffer.subarray(0, length));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return null;
    throw error;
  }
}

/**
 * The longest time, in milliseconds, that two of these sections were open together. One that has not ended lasts until
 * `nowMs`.
 */
export function overlapMs(sections: readonly Section[], nowMs: number): number {
  let longest = 0;
  for (const [index, one] of sections.entries()) {
    for (const other of sections.slice(index + 1)) {
      if (one.openedMs === null || other.openedMs === null) continue;
      const begin = Math.max(one.openedMs, other.openedMs);
      const end = Math.min(one.closedMs ?? nowMs, other.closedMs ?? nowMs);
      longest = Math.max(longest, end - begin);
    }
  }
  return longest;
}
