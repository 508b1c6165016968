/**
 * The globals of the runtime that a simulated process would read: time, timers, chance. While a world runs they answer
 * for the process whose turn it is, and throw outside of a turn: real time and real chance cannot reach the run.
 */
import net from "node:net";
import process from "node:process";
import { ChildProcessRegistry, type ProcessSystem, useProcessSystem } from "../../src/base/support/own_process.ts";

/** What the process whose turn it is sees. */
export interface Surroundings {
  readonly name: string;
  /** Monotonic milliseconds, without suspends. */
  monotonicMs(): number;
  /** Wall clock, milliseconds since 1970. */
  wallMs(): number;
  random(): number;
  fillRandom(into: Uint8Array): void;
  startTimer(delayMs: number, callback: () => void): () => void;
  /** Calls back after the microtasks of the turn. */
  nextTick(callback: () => void): void;
  readonly system: ProcessSystem | null;
}

/** In place of the real processes of this machine. */
const noProcesses: ProcessSystem = {
  pid: 0,
  readText: refuse("a file of /proc"),
  list: refuse("/proc"),
  readLink: refuse("a link of /proc"),
  keepOpen: refuse("a file of /proc"),
  kill: refuse("kill"),
  own: new ChildProcessRegistry(),
};

let current: Surroundings | null = null;
/**
 * Called with what was used outside of a turn. The error alone could be caught, or be lost in a listener of an event.
 */
let reportLeak: (message: string) => void = () => {};

export function setCurrent(next: Surroundings | null): void {
  current = next;
  useProcessSystem(next?.system ?? noProcesses);
}

/** Functions of the runtime that are used by the world itself. */
export const real = {
  now: performance.now.bind(performance),
  setImmediate: globalThis.setImmediate,
  Date,
};

function inTurn(what: string): Surroundings {
  if (current !== null) return current;
  const message = `${what} was used outside of a turn: real surroundings have leaked into the simulation`;
  reportLeak(message);
  throw new Error(message);
}

interface SimTimer {
  ref(): SimTimer;
  unref(): SimTimer;
  readonly cancel: () => void;
}

function timer(cancel: () => void): SimTimer {
  const made: SimTimer = { cancel, ref: () => made, unref: () => made };
  return made;
}

type Callback = (...values: unknown[]) => void;

function startTimer(callback: Callback, delayMs = 0, ...values: unknown[]): SimTimer {
  return timer(inTurn("setTimeout").startTimer(Math.max(0, delayMs), () => callback(...values)));
}

function startInterval(callback: Callback, delayMs = 0, ...values: unknown[]): SimTimer {
  const own = inTurn("setInterval");
  let cancel = () => {};
  const arm = () => {
    cancel = own.startTimer(Math.max(1, delayMs), () => {
      arm();
      callback(...values);
    });
  };
  arm();
  return timer(() => cancel());
}

function startImmediate(callback: Callback, ...values: unknown[]): SimTimer {
  return timer(inTurn("setImmediate").startTimer(0, () => callback(...values)));
}

const clear = (one: unknown) => (one as SimTimer | null | undefined)?.cancel?.();

class SimDate extends real.Date {
  constructor(...values: []) {
    super(...(values.length === 0 ? [inTurn("new Date").wallMs()] : values) as []);
  }

  static override now(): number {
    return inTurn("Date.now").wallMs();
  }
}

function refuse(what: string): () => never {
  return () => {
    throw new Error(`${what} was called: real sockets and processes are not part of a simulation`);
  };
}

function fillRandom<T extends ArrayBufferView>(view: T): T {
  inTurn("crypto.getRandomValues").fillRandom(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
  return view;
}

function randomUuid(): string {
  const bytes = fillRandom(new Uint8Array(16));
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]].map(([from, to]) => hex.slice(from, to)).join("-");
}

type Place = readonly [owner: object | undefined, name: string, value: unknown];

function replacements(): readonly Place[] {
  const scope = globalThis as unknown as Record<string, object | undefined>;
  return [
    [performance, "now", () => inTurn("performance.now").monotonicMs()],
    [globalThis, "Date", SimDate],
    [Math, "random", () => inTurn("Math.random").random()],
    [crypto, "getRandomValues", fillRandom],
    [crypto, "randomUUID", randomUuid],
    [globalThis, "setTimeout", startTimer],
    [globalThis, "setInterval", startInterval],
    [globalThis, "setImmediate", startImmediate],
    [globalThis, "clearTimeout", clear],
    [globalThis, "clearInterval", clear],
    [globalThis, "clearImmediate", clear],
    [process, "nextTick", (callback: Callback, ...values: unknown[]) => {
      inTurn("process.nextTick").nextTick(() => callback(...values));
    }],
    [net, "connect", refuse("net.connect")],
    [net, "createConnection", refuse("net.createConnection")],
    [net, "createServer", refuse("net.createServer")],
    [globalThis, "fetch", refuse("fetch")],
    ...["connect", "listen", "spawn"].map((name) => [scope["Bun"], name, refuse(`Bun.${name}`)] as const),
    ...["connect", "listen"].map((name) => [scope["Deno"], name, refuse(`Deno.${name}`)] as const),
  ];
}

/**
 * Replaces the globals. Returns a function that puts the real ones back. `onLeak` is called when one is used outside of
 * a turn.
 */
export function replaceGlobals(onLeak: (message: string) => void): () => void {
  reportLeak = onLeak;
  const realSystem = useProcessSystem(noProcesses);
  const before: { owner: object; name: string; found: PropertyDescriptor | undefined }[] = [];
  for (const [owner, name, value] of replacements()) {
    if (owner === undefined) continue;
    const found = Object.getOwnPropertyDescriptor(owner, name);
    if (found?.configurable === false && found.writable !== true) continue;
    before.push({ owner, name, found });
    if (found?.configurable === false) Reflect.set(owner, name, value);
    else Object.defineProperty(owner, name, { value, configurable: true, writable: true, enumerable: true });
  }
  return () => {
    reportLeak = () => {};
    useProcessSystem(realSystem);
    for (const { owner, name, found } of before.reverse()) {
      if (found === undefined) Reflect.deleteProperty(owner, name);
      else if (found.configurable === false) Reflect.set(owner, name, found.value);
      else Object.defineProperty(owner, name, found);
    }
  };
}
