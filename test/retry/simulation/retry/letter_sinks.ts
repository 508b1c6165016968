/**
 * The destinations of dead letters of simulated processors: the real ones, over a file on the simulated disk and a
 * model of commands.
 */
import { existsSync, readFileSync } from "node:fs";
import { BatonError } from "../../../../src/base/errors.ts";
import { CommandSink } from "../../../../src/retry/dead_letters/command_sink.ts";
import type { DeadLetterDestination } from "../../../../src/retry/dead_letters/dead_letter_destination.ts";
import type { DeadLetterSink } from "../../../../src/retry/dead_letters/dead_letter_forwarder.ts";
import { FileSink } from "../../../../src/retry/dead_letters/file_sink.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";
import { type CommandAct, runModel } from "./command_model.ts";
import type { RetryDisk } from "./retry_disk.ts";

export interface LetterSystem {
  readonly disk: RetryDisk;
  readonly letterPath: string;
  /** The process that sends dead letters. */
  readonly letterLock: { owner: SimProcess | null };
  readonly letterRuns: LetterRuns;
  /** What the command of a dead letter does. */
  readonly letterAct: () => CommandAct;
}

export function letterSink(
  process: SimProcess,
  system: LetterSystem,
  { destination, timeoutMs }: { readonly destination: DeadLetterDestination; readonly timeoutMs: number },
): DeadLetterSink {
  return destination.kind === "exec" ? commandSink(process, system, timeoutMs) : fileSink(process, system);
}

/** Takes the lock that the system releases when a process dies. Null: another process has it. */
function takeLock(process: SimProcess, { letterLock }: LetterSystem): (() => void) | null {
  if (letterLock.owner !== null) return null;
  letterLock.owner = process;
  let isHeld = true;
  const release = () => {
    if (isHeld && letterLock.owner === process) letterLock.owner = null;
    isHeld = false;
  };
  process.whenDead(release);
  return release;
}

function commandSink(process: SimProcess, system: LetterSystem, timeoutMs: number): DeadLetterSink {
  return new CommandSink({
    ...{ line: "letters", storeName: "sim", redaction: null, timeoutMs, killAfterMs: 0, clock: process.clock },
    takeLock: () => takeLock(process, system),
    async run({ env, body, lease, timeoutMs }) {
      const id = (JSON.parse(new TextDecoder().decode(body)) as { readonly id: string }).id;
      if (env?.["BATON_MESSAGE_ID"] !== id) process.world.fail("wrong dead letter", `${id} in place of another one`);
      const onGone = system.letterRuns.began(process, id);
      const end = await runModel({ process, lease, timeoutMs, act: system.letterAct(), onGone });
      if (end.kind !== "exited") return { code: "REVOKED", how: "was stopped" };
      return { code: end.code, how: `exited with ${end.code}` };
    },
  });
}

/** The real sink, with the lock of its file and the flushes of its disk. */
function fileSink(process: SimProcess, system: LetterSystem): DeadLetterSink {
  const { disk, letterPath } = system;
  const sink = new FileSink({
    ...{ path: letterPath, lockFile: () => true, storeName: "sim" },
    redaction: null,
  });
  return {
    skipsFailed: sink.skipsFailed,
    async open() {
      const release = takeLock(process, system);
      if (release === null) return null;
      const open = await sink.open();
      let isOpen = true;
      const close = () => {
        if (!isOpen) return;
        isOpen = false;
        release();
        open?.close();
      };
      process.whenDead(close);
      return open && {
        nextOffset: () => open.nextOffset(),
        close,
        async send(letter, offset, signal) {
          const failure = () => new BatonError("IO", `Cannot write dead letters to ${letterPath}: disk I/O error`);
          try {
            disk.check(() => void open.send(letter, offset, signal));
          } catch {
            throw failure();
          }
          await open.send(letter, offset, signal);
          const { durationMs, flushed } = disk.appended(letterPath);
          await new Promise<void>((resolve) => process.schedule("disk", durationMs, resolve));
          flushed();
        },
      };
    },
  };
}

/** The ids in the file of dead letters, in its order; a line that cannot be read is a problem. */
export function lettersIn(path: string, addProblem: (sentence: string) => void): string[] {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  return text.split("\n").filter((line) => line !== "").flatMap((line) => {
    try {
      return [(JSON.parse(line) as { id: string }).id];
    } catch {
      addProblem(`the file of dead letters has a broken line: ${line}`);
      return [];
    }
  });
}

interface LetterRun {
  readonly process: SimProcess;
  readonly life: number;
  isOver: boolean;
  /** It ended with success. */
  isGood: boolean;
}

/**
 * Judges the commands of dead letters: one at a time, and none again after success, except when its processor died, or
 * could not record it.
 */
export class LetterRuns {
  readonly #world: SimWorld;
  /** Whether an operator may have brought it back, and when an operator was told that it is purged. */
  readonly #known: (id: string) => { readonly isTouched: boolean; readonly purgedMs: number };
  readonly #runs = new Map<string, LetterRun[]>();
  readonly #unrecorded = new Set<string>();

  /** When a processor last began to ask whether a dead letter is still to be sent. */
  readonly #askedMs = new Map<string, number>();

  constructor(world: SimWorld, known: (id: string) => { readonly isTouched: boolean; readonly purgedMs: number }) {
    this.#world = world;
    this.#known = known;
  }

  /** A processor asks whether it may send a dead letter. */
  asking(seq: number): void {
    this.#askedMs.set(String(seq), this.#world.nowMs);
  }

  /** Dead letters whose command has ended with success. */
  get delivered(): string[] {
    return [...this.#runs].filter(([, runs]) => runs.some(({ isGood }) => isGood)).map(([id]) => id);
  }

  /** A command starts. Returns what is to be called when nothing of it runs. */
  began(process: SimProcess, id: string): (code: number | null) => void {
    const lives = ({ process, life }: LetterRun) => process.life === life;
    const beside = [...this.#runs].find(([, runs]) => runs.some((run) => !run.isOver && lives(run)));
    if (beside !== undefined) this.#world.fail("two dead letters at once", `${id} beside ${beside[0]}`);
    const before = this.#runs.get(id) ?? [];
    const isAgain = before.some((run) => run.isGood && lives(run));
    const { isTouched, purgedMs } = this.#known(id);
    const seq = id.slice(id.lastIndexOf("-") + 1);
    if (purgedMs < (this.#askedMs.get(seq) ?? this.#world.nowMs)) {
      this.#world.fail("purged dead letter sent", `${id} by ${process.name}, purged at ${purgedMs}`);
    }
    if (isAgain && !isTouched && !this.#unrecorded.has(seq)) {
      this.#world.fail("dead letter sent again", `${id} by ${process.name}, after a success that was recorded`);
    }
    if (before.some(({ isGood }) => isGood)) this.#world.count("mark command of a dead letter again after a crash");
    const run = { process, life: process.life, isOver: false, isGood: false };
    this.#runs.set(id, [...before, run]);
    this.#world.count("mark command of a dead letter");
    this.#world.log(() => `${process.name} runs the command of dead letter ${id}`);
    return (code) => {
      this.#world.log(() => `the command of dead letter ${id} ended, ${code ?? "cut off"}`);
      run.isOver = true;
      run.isGood = code === 0;
      if (code !== 0) this.#world.count(`mark command of a dead letter ${code === null ? "killed" : "failed"}`);
    };
  }

  /** What was delivered could not be recorded. */
  unrecorded(seq: number): void {
    this.#world.log(() => `dead letter ${seq} could not be recorded`);
    this.#unrecorded.add(String(seq));
  }
}
