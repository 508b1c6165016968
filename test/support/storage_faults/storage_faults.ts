/**
 * A program's storage that forgets, fails and kills, by the library in storage_faults.c, which is compiled when it is
 * first needed. Owns a folder of its own beside the watched one; works on the compiled binary and on the source under
 * Bun.
 */
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  realpathSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { compiledProgram } from "../compiled_program.ts";
import { loseUnsynced, type Lost } from "./undo_journal.ts";

/** What a call is, a bit each, as in storage_faults.c. */
export const callKinds = {
  write: 1,
  sync: 2,
  rename: 4,
  truncate: 8,
  create: 16,
  remove: 32,
  folder: 64,
  send: 128,
  receive: 256,
} as const;
export type CallKind = keyof typeof callKinds;

/** Everything that changes files or makes them durable. */
export const durableSteps: readonly CallKind[] = ["write", "sync", "rename", "truncate", "create", "remove", "folder"];

export interface Fault {
  readonly calls: readonly CallKind[];
  readonly error: "ENOSPC" | "EIO";
  /** How the file's path ends; any file when left out. */
  readonly path?: string;
  /** So many such calls are done before; none when left out. */
  readonly skip?: number;
  /** So many fail; all when left out. */
  readonly times?: number;
  /** A write writes its first half. */
  readonly isShort?: boolean;
  /** Only writes of so many bytes and more. */
  readonly leastBytes?: number;
}

/** Offsets in the control file. */
const at = { steps: 8, killAt: 16, stepKinds: 24, hits: 40, syncsLie: 48, counts: 64, lastStep: 136, faults: 400 };
const lastStepBytes = 256;
const faultBytes = 64;
const faultsMax = 4;
const controlBytes = 4096;
const forever = 0xffffffff;

export class StorageFaults implements Disposable {
  /** What a program needs in its environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly under: string;
  readonly #folder: string;
  readonly #control: number;

  /** Of the files below `under`, which is there; `sockets`: what is sent and received are steps, too. */
  constructor(under: string, { sockets = false }: { readonly sockets?: boolean } = {}) {
    this.under = realpathSync(under);
    this.#folder = mkdtempSync(join(realpathSync(tmpdir()), "baton-faults-"));
    mkdirSync(join(this.#folder, "trash"));
    writeFileSync(join(this.#folder, "control"), new Uint8Array(controlBytes));
    writeFileSync(join(this.#folder, "journal"), "");
    this.#control = openSync(join(this.#folder, "control"), "r+");
    this.env = {
      LD_PRELOAD: compiledProgram(join(import.meta.dirname, "storage_faults.c"), ["-shared", "-fPIC", "-ldl"]),
      STORAGE_FAULTS: this.#folder,
      STORAGE_FAULTS_UNDER: this.under,
      ...(sockets ? { STORAGE_FAULTS_SOCKETS: "1" } : {}),
    };
  }

  /** The process kills itself before the step of this number, counted from 1 and from now on; 0: never. */
  killAt(step: number, calls: readonly CallKind[] = durableSteps): void {
    this.#set(at.stepKinds, 0);
    this.#set(at.killAt, step);
    this.#set(at.steps, 0);
    this.#set(at.stepKinds, bits(calls));
  }

  /** No step counts any more; whether the one to be killed at was reached: then the process has ended, or does now. */
  disarm(): boolean {
    this.#set(at.stepKinds, 0);
    const step = this.#get(at.killAt);
    return step > 0 && this.steps >= step;
  }

  /** Steps since `killAt`. */
  get steps(): number {
    return this.#get(at.steps);
  }

  /** The last step that was begun: what kind of call, and which file. */
  get lastStep(): string {
    const bytes = new Uint8Array(lastStepBytes);
    readSync(this.#control, bytes, 0, lastStepBytes, at.lastStep);
    const [kind = "", name = ""] = new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0))).split(" ");
    const call = Object.entries(callKinds).find(([, bit]) => bit === Number(kind))?.[0] ?? "nothing";
    return `${call} ${name}`;
  }

  /** From now on these and no others, at most four. */
  fail(...faults: readonly Fault[]): void {
    if (faults.length > faultsMax) throw new RangeError(`${faults.length} faults; ${faultsMax} are the limit`);
    for (let place = 0; place < faultsMax; place++) {
      const bytes = new Uint8Array(faultBytes);
      const fault = faults[place];
      if (fault !== undefined) {
        const { calls, error, path = "", skip = 0, times = forever, isShort = false, leastBytes = 0 } = fault;
        const numbers = [bits(calls), constants.errno[error], skip, times, isShort ? 1 : 0, leastBytes];
        numbers.forEach((value, index) => new DataView(bytes.buffer).setUint32(index * 4, value, true));
        bytes.set(new TextEncoder().encode(path).subarray(0, 39), 24);
      }
      writeSync(this.#control, bytes, 0, faultBytes, at.faults + place * faultBytes);
    }
  }

  /** Calls that failed because they were told to. */
  get hits(): number {
    return this.#get(at.hits);
  }

  /** Calls so far. */
  count(kind: CallKind): number {
    return this.#get(at.counts + Math.log2(callKinds[kind]) * 8);
  }

  /** Syncs that say they are done and are not: a program that acknowledges without syncing. */
  set syncsLie(value: boolean) {
    this.#set(at.syncsLie, value ? 1 : 0);
  }

  /** The power fails: what was not synced is lost, all of it or as `random` decides. No watched process may run. */
  losePower(random: () => number = () => 1): Lost {
    const lost = loseUnsynced(join(this.#folder, "journal"), this.under, random);
    this.settle();
    return lost;
  }

  /** What was done until now counts as durable. Watched processes are ended or stopped. */
  settle(): void {
    truncateSync(join(this.#folder, "journal"), 0);
    rmSync(join(this.#folder, "trash"), { recursive: true });
    mkdirSync(join(this.#folder, "trash"));
  }

  [Symbol.dispose](): void {
    closeSync(this.#control);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #get(offset: number): number {
    const word = new BigUint64Array(1);
    readSync(this.#control, word, 0, 8, offset);
    return Number(word[0]);
  }

  #set(offset: number, value: number): void {
    writeSync(this.#control, new BigUint64Array([BigInt(value)]), 0, 8, offset);
  }
}

function bits(calls: readonly CallKind[]): number {
  return calls.reduce((sum, call) => sum | callKinds[call], 0);
}
