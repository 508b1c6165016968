/**
 * `baton lock --on-busy-for`: runs a shell command if another process has held the lock for a long time. Loaded only if
 * this option is given.
 */
import type { Io } from "../../../src/base/terminal/io.ts";
import {
  claimLongHoldNotice,
  type LongHoldNoticeOptions,
  type OldestLockHold,
  readOldestLockHold,
  readServersTimeMs,
} from "../../../src/coordination/history/busy_notice.ts";
import { nameOfHolder } from "../../../src/coordination/nodes/holder_info.ts";
import { isTransientFailure } from "../../../src/coordination/nodes/node_requests.ts";
import { lockPath } from "../../../src/coordination/nodes/node_paths.ts";
import { type CallNotice, runNoticeCommand } from "../../../src/coordination/job/notice_command.ts";
import { sleep } from "../../../src/base/support/deadline.ts";
import { parseDuration } from "../../../src/base/support/duration.ts";
import type { Clock } from "../../../src/base/support/clock.ts";
import type { Acl, ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../../src/base/errors.ts";

export interface BusyNoticeText {
  readonly afterMs: number;
  readonly line: string;
}

/** The time until the next check if no server has responded, in milliseconds. */
const retryMs = 1000;
/** A time in milliseconds that is added to each wait, because the servers' clock is not known exactly. */
const marginMs = 20;

/** Parses a duration and a shell command, such as `1h ./tell.sh`. Throws USAGE. */
export function parseBusyNotice(text: string): BusyNoticeText {
  const [, duration, line] = /^\s*(\S+)\s+(.*\S)\s*$/s.exec(text) ?? [];
  if (duration === undefined || line === undefined) {
    throw new BatonError(
      "USAGE",
      `--on-busy-for needs a duration and a command in one argument, as in --on-busy-for '1h ./tell.sh', and got ${
        JSON.stringify(text)
      }`,
    );
  }
  return { afterMs: parseDuration(duration), line };
}

/** Adds the watch to the notices of the call. Throws like parseBusyNotice. */
export function openBusyNotice(zk: ZooKeeper, name: string, { line, root, context }: {
  readonly line: string;
  readonly root: string;
  readonly context: {
    readonly io: Io;
    readonly clock: Clock;
    readonly acl: Acl[] | undefined;
    readonly notices: CallNotice[];
  };
}): BusyNoticeWatch {
  const { io, clock, acl = zk.acl, notices } = context;
  const options = { notice: parseBusyNotice(line), io, clock, acl, root, random: Math.random };
  const watch = new BusyNoticeWatch(zk, name, options);
  notices.push(watch);
  return watch;
}

export class BusyNoticeWatch {
  readonly #zk: ZooKeeper;
  readonly #name: string;
  readonly #notice: BusyNoticeText;
  readonly #options: LongHoldNoticeOptions;
  readonly #io: Io;
  readonly #stop = new AbortController();
  readonly #kill = new AbortController();
  #watching: Promise<void> | null = null;
  /** The servers' time, and the time on this process's clock when it was read; null until it is known. */
  #time: { readonly ms: number; readonly atMs: number } | null = null;

  constructor(
    zk: ZooKeeper,
    name: string,
    { notice, io, ...options }: LongHoldNoticeOptions & { readonly notice: BusyNoticeText; readonly io: Io },
  ) {
    this.#zk = zk;
    this.#name = name;
    this.#notice = notice;
    this.#io = io;
    this.#options = options;
  }

  start(): void {
    this.#watching ??= this.#watch().catch((thrown) => {
      if (!this.#stop.signal.aborted) this.#tell(errorMessage(thrown)); // else errors are expected
    });
  }

  /** Checks once more whether the hold is too long, for a call that did not get the lock. Never rejects. */
  async checkOnce(): Promise<void> {
    await this.end();
    await this.#check().catch((thrown) => this.#tell(errorMessage(thrown)));
  }

  /** Ends the watch. If a shell command is running, it continues. */
  stop(): void {
    this.#stop.abort();
  }

  /** Ends the watch, and kills its shell command. */
  async kill(): Promise<void> {
    this.#kill.abort();
    await this.end();
  }

  /** Ends the watch. Resolves when a running shell command has ended; it may run for at most 30 s. */
  async end(): Promise<void> {
    this.stop();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const waitMs = await this.#check().catch((thrown) => {
        if (!isTransientFailure(thrown) || this.#zk.session.ended.aborted) throw thrown;
        return retryMs;
      });
      await sleep(this.#options.clock, waitMs + marginMs, signal).catch(() => {});
    }
  }

  /**
   * Runs the shell command if a hold has lasted too long and no other call has run a command for this hold. Returns the
   * time until the next check, in milliseconds.
   */
  async #check(): Promise<number> {
    const { root } = this.#options;
    const hold = await readOldestLockHold(this.#zk, lockPath(this.#name, root));
    if (hold === null) return this.#notice.afterMs;
    const nowMs = await this.#nowMs();
    const leftMs = this.#notice.afterMs - (nowMs - hold.sinceMs);
    if (leftMs > 0) return leftMs;
    if (await claimLongHoldNotice(this.#zk, hold, { ...this.#options, nowMs })) await this.#run(hold, nowMs);
    return this.#notice.afterMs;
  }

  async #nowMs(): Promise<number> {
    const { clock } = this.#options;
    this.#time ??= { ms: await readServersTimeMs(this.#zk, this.#options), atMs: clock.now() };
    return Math.round(this.#time.ms + clock.now() - this.#time.atMs);
  }

  async #run({ info, sinceMs }: OldestLockHold, nowMs: number): Promise<void> {
    const { clock } = this.#options;
    const env = {
      ...this.#io.env,
      BATON_BUSY_NAME: this.#name,
      BATON_BUSY_HOLDER: nameOfHolder(info),
      BATON_BUSY_MS: String(nowMs - sinceMs),
    };
    const failure = await runNoticeCommand({ line: this.#notice.line, env }, { clock, signal: this.#kill.signal });
    if (failure !== null) this.#tell(failure);
  }

  #tell(what: string): void {
    this.#io.err(`baton: --on-busy-for of ${JSON.stringify(this.#name)} ${what}\n`);
  }
}
