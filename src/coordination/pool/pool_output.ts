/**
 * Prints what the commands of a pool write. Both streams of a job come through pipes. With `group`, a job's output is
 * kept until the job has ended, and then printed in one piece. With `lines`, whole lines are printed as they come. The
 * end of an item never waits for the reader of this output: a terminal stopped by ^S must not keep the item's claim.
 */
import { tmpdir } from "node:os";
import { BatonError, systemCallErrorReason } from "../../base/errors.ts";
import { ByteSpool } from "../../base/process/spawn/byte_spool.ts";
import type { CommandOutput } from "../../base/process/spawn/output_pipe.ts";
import type { StartedProcess } from "../../base/process/spawn/spawn_child.ts";
import { rejectOnAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";
import { ListenerSet } from "../../base/support/event.ts";
import { countWithNoun } from "../../base/support/text.ts";
import { WholeLines } from "../../base/support/whole_lines.ts";
import { type Io, type OutputStream, StdoutReaderGone } from "../../base/terminal/io.ts";
import { readRestOfJobOutput } from "../../base/terminal/log_sink.ts";

export interface PoolOutputOptions {
  readonly mode: "group" | "lines";
  /** Whether each line begins with its item and a tab. */
  readonly isTagged: boolean;
  /** The maximum number of ended jobs with an output that is not printed yet. Then no other job starts. */
  readonly unprintedMax: number;
}

/**
 * When all known processes of a job are dead, its output ends. If another process keeps it open, baton reads until
 * nothing has come for this time, in milliseconds, but not longer than `timesMax` such times.
 */
const rest = { quietMs: 100, timesMax: 10 };
/** How long the reader may take nothing after a signal before the rest is discarded, in milliseconds. */
const readerMsMax = 2000;

export class PoolOutput {
  readonly #options: PoolOutputOptions;
  readonly #io: Pick<Io, "out" | "err" | "written">;
  readonly #clock: Clock;
  readonly #running = new Set<JobOutput>();
  readonly #failed = new AbortController();
  readonly #room = new ListenerSet();
  /** Resolves when everything before is printed. */
  #turn: Promise<void> = Promise.resolve();
  #unprinted = 0;
  #taken = 0;

  constructor(options: PoolOutputOptions, { io, clock }: {
    readonly io: Pick<Io, "out" | "err" | "written">;
    readonly clock: Clock;
  }) {
    this.#options = options;
    this.#io = io;
    this.#clock = clock;
  }

  /** Aborts with the error if an output cannot be printed or kept. Then no other job may start. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** Whether the outputs of too many ended jobs are not printed yet. */
  isFull(): boolean {
    return this.#unprinted >= this.#options.unprintedMax;
  }

  /** Calls the listener when `isFull` may have become false. Returns the function that removes the listener. */
  readonly onRoom = this.#room.subscribe;

  async waitForRoom(signal: AbortSignal): Promise<void> {
    while (this.isFull()) await rejectOnAbort(this.#turn, signal);
  }

  /** Begins to read the output of a job, until `jobEnded`. */
  readJob(item: string, { output, errors = null }: Pick<StartedProcess, "output" | "errors">): JobOutput {
    const { mode, isTagged } = this.#options;
    const options: JobStreamOptions = {
      item,
      clock: this.#clock,
      prefix: isTagged ? `${item}\t` : mode === "lines" ? "" : null,
      print: mode === "lines" ? (stream, bytes, signal) => this.#write(stream, bytes, signal) : null,
      onProblem: (thrown) => this.#fail(thrown),
    };
    const job = [
      ...(output === null ? [] : [new JobStream("stdout", output, options)]),
      ...(errors === null ? [] : [new JobStream("stderr", errors, options)]),
    ];
    this.#running.add(job);
    if (this.#isReaderGone()) leaveStdout(job);
    return job;
  }

  /** Notes that all processes of the job have ended, and prints its output after those of earlier jobs. */
  jobEnded(job: JobOutput): void {
    this.#running.delete(job);
    const reading = Promise.all(job.map((one) => one.readRest()));
    this.#unprinted++;
    this.after(async () => {
      await reading;
      for (const one of job) for (const bytes of one.rest()) await this.#write(one.stream, bytes);
      await Promise.allSettled([this.#io.written("stdout"), this.#io.written("stderr")]);
    }, () => {
      for (const one of job) one[Symbol.dispose]();
      this.#unprinted--;
      this.#room.notify();
    });
  }

  /** Calls `work` when the outputs of all jobs that have ended are printed. */
  after(work: () => void | Promise<void>, finish = () => {}): void {
    this.#turn = this.#turn.then(work).catch((thrown: unknown) => this.#fail(thrown)).then(finish);
  }

  /** How often the readers took output. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Resolves when everything is printed. After a signal, also resolves when the reader takes nothing for some time.
   * Then says that output is lost.
   */
  async printed({ isStopped }: { readonly isStopped: boolean }): Promise<void> {
    if (!isStopped) return await this.#turn;
    await readRestOfJobOutput(this, this.#turn, { clock: this.#clock, waitMs: readerMsMax });
    const lost = countWithNoun(this.#unprinted, "item");
    if (this.#unprinted > 0) this.#io.err(`baton: the output of ${lost} is lost, because its reader does not read\n`);
  }

  async #write(stream: OutputStream, bytes: Uint8Array, signal?: AbortSignal): Promise<void> {
    if (bytes.length === 0 || (stream === "stdout" && this.#failed.signal.aborted)) return;
    try {
      this.#io.out(bytes, stream);
      await this.#io.written(stream, signal);
      this.#taken++;
    } catch (thrown) {
      // A closed stderr does not stop a command.
      if (stream === "stdout" && thrown !== signal?.reason) this.#fail(thrown);
    }
  }

  #fail(thrown: unknown): void {
    this.#failed.abort(thrown);
    if (!this.#isReaderGone()) return;
    for (const job of this.#running) leaveStdout(job);
  }

  #isReaderGone(): boolean {
    return this.#failed.signal.reason instanceof StdoutReaderGone;
  }
}

interface JobStreamOptions {
  readonly item: string;
  readonly clock: Clock;
  /** The beginning of each line; null if the output is not divided into lines. */
  readonly prefix: string | null;
  /** Prints lines, and waits for the reader until the signal aborts. Null to keep the output until the job's end. */
  readonly print: ((stream: OutputStream, lines: Uint8Array, signal: AbortSignal) => Promise<void>) | null;
  readonly onProblem: (thrown: unknown) => void;
}

/** The streams of a job, in the order in which they are printed. */
export type JobOutput = readonly JobStream[];

/** Ends the reading of stdout, so that a command that writes there gets SIGPIPE. */
function leaveStdout(job: JobOutput): void {
  for (const one of job) if (one.stream === "stdout") one.leave();
}

/** One stream of a job. */
class JobStream implements Disposable {
  readonly stream: OutputStream;
  readonly #output: CommandOutput;
  readonly #options: JobStreamOptions;
  readonly #ended = new AbortController();
  readonly #kept = new ByteSpool();
  readonly #lines: WholeLines | null;
  readonly #reading: Promise<true>;
  #received = 0;
  /** Whether the output is no longer read, or is discarded. */
  #isLeft = false;

  constructor(stream: OutputStream, output: CommandOutput, options: JobStreamOptions) {
    this.stream = stream;
    this.#output = output;
    this.#options = options;
    this.#lines = options.prefix === null ? null : new WholeLines(options.prefix);
    this.#reading = this.#read();
  }

  leave(): void {
    this.#isLeft = true;
    this.#output.destroy?.();
  }

  /** Reads what is there after the job's end. */
  async readRest(): Promise<void> {
    this.#ended.abort();
    for (let times = 0; times < rest.timesMax; times++) {
      const received = this.#received;
      if (await resultInTimeOrNull(this.#options.clock, rest.quietMs, this.#reading) === true) return;
      await new Promise((resolve) => setImmediate(resolve)); // a busy event loop reads pipes first
      if (received === this.#received) break;
    }
    this.leave();
  }

  /** Yields what is not printed yet. */
  *rest(): Generator<Uint8Array, void, void> {
    for (const piece of this.#kept.pieces()) yield this.#lines?.take(piece) ?? piece;
    if (this.#lines !== null) yield this.#lines.end();
  }

  [Symbol.dispose](): void {
    this.#kept[Symbol.dispose]();
  }

  /** Reads to the end even after a failure, because a command must not wait for a full disk. */
  async #read(): Promise<true> {
    const { print } = this.#options;
    try {
      for await (const bytes of this.#output) {
        this.#received++;
        if (this.#isLeft) continue;
        if (print === null) this.#keep(bytes);
        else await print(this.stream, this.#lines?.take(bytes) ?? bytes, this.#ended.signal);
      }
    } catch (thrown) {
      if (!this.#isLeft) this.#options.onProblem(thrown);
    }
    return true;
  }

  #keep(bytes: Uint8Array): void {
    try {
      this.#kept.add(bytes);
    } catch (cause) {
      this.#isLeft = true;
      const what = `Cannot keep the output of item ${JSON.stringify(this.#options.item)} in ${tmpdir()}`;
      this.#options.onProblem(new BatonError("IO", `${what}: ${systemCallErrorReason(cause)}`, { cause }));
    }
  }
}
