/**
 * Manages the sessions of the library's functions. A session is opened when a call needs it. It is closed when nothing
 * is held and no call waits, so that an unused session keeps no process running.
 */
import { hostname } from "node:os";
import { basename } from "node:path";
import process from "node:process";
import { BatonError } from "../base/errors.ts";
import type { Lease } from "../base/process/lease.ts";
import { anyAbortSignal, rejectOnAbort, RunningCalls, throwIfAborted } from "../base/support/abort.ts";
import { type Clock, systemClock } from "../base/support/clock.ts";
import { type Deadline, startCallDeadline, WaitTimeout } from "../base/support/deadline.ts";
import { formatDuration } from "../base/support/duration.ts";
import { ownUserName } from "../base/support/user_name.ts";
import type { CoordinationServers } from "../coordination/connect/coordination_servers.ts";
import type { HolderInfo } from "../coordination/nodes/holder_info.ts";
import { encodeLockName } from "../coordination/nodes/node_paths.ts";
import { ServerConnectReport } from "../protocols/zookeeper/connector.ts";
import { connectTimeoutMsDefault, connectToZooKeeper } from "../protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../protocols/zookeeper/zookeeper.ts";
import { isSessionEndError } from "../protocols/zookeeper/zookeeper_error.ts";
import { checkArgument, checkOptions, type OptionForms, signalForm, textForm, waitForm } from "./check_arguments.ts";
import { HeldLease } from "./held_lease.ts";
import { checkSessionOptions, readSessionServers, type SessionOptions } from "./session_servers.ts";

/** A session that several calls share. It connects when a call needs it. */
export interface Session extends AsyncDisposable {
  /**
   * Ends all waits with an AbortError, and aborts the signals of everything that is held. Then waits for the work of
   * `lock` and `runPool`, releases everything, and closes the connection.
   */
  close(): Promise<void>;
}

/** The servers of a call, given as a session or as addresses. `SessionOptions` describes the defaults. */
export interface ServerOptions {
  readonly session?: Session | undefined;
  readonly servers?: string | undefined;
  readonly root?: string | undefined;
}

export interface CallOptions {
  /** The time limit of the whole call, in milliseconds. */
  readonly wait?: "none" | "forever" | number | undefined;
  /** Ends the call, which rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export const serverForms: OptionForms<ServerOptions> = {
  session: {
    expected: "a session that openSession has returned",
    fits: (value) => value instanceof LibrarySession,
  },
  servers: textForm,
  root: textForm,
};

/** The options of calls that read or change something without waiting for another process. */
export interface RequestOptions extends ServerOptions {
  /**
   * The time limit of the call in milliseconds, including the time to connect. By default, the call waits 10 s for a
   * server.
   */
  readonly wait?: number | undefined;
  /** Ends the call, which rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The options of calls that wait for other processes. */
export interface WaitOptions extends ServerOptions {
  /**
   * The time limit of the call, including the time to connect: milliseconds, or "forever". By default, the call waits
   * 10 s for a server.
   */
  readonly wait?: "forever" | number | undefined;
  /** Ends the wait, which rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export const requestForms: OptionForms<RequestOptions> = { ...serverForms, wait: waitForm(), signal: signalForm };
export const waitForms: OptionForms<WaitOptions> = { ...requestForms, wait: waitForm("forever") };

/**
 * Returns a session for several calls. It connects when it is first used, and again after the servers have ended it.
 * Throws USAGE for an invalid option.
 */
export function openSession(options: SessionOptions = {}): Session {
  return new LibrarySession(options);
}

/** The sessions that calls share if they do not have the option `session`, by servers and root. */
const shared = new Map<string, LibrarySession>();

/**
 * Returns the session for a call that names an object, such as a lock. Throws USAGE for a mistake in the name or in the
 * options.
 */
export function findNamedSession<O extends ServerOptions>(
  call: string,
  { kind, name }: { readonly kind: string; readonly name: string },
  options: O,
  forms: OptionForms<O>,
): LibrarySession {
  checkArgument(call, "the name", name, textForm);
  checkOptions(call, options, forms);
  encodeLockName(name, kind);
  return findSession(call, options);
}

/** Returns the session of a call. Throws USAGE if the options name both a session and servers. */
export function findSession(call: string, { session, servers, root }: ServerOptions): LibrarySession {
  if (session instanceof LibrarySession) {
    if (servers === undefined && root === undefined) return session;
    throw new BatonError("USAGE", `${call}: give servers and root to openSession, or omit session`);
  }
  const key = JSON.stringify([servers, root]);
  const known = shared.get(key) ?? new LibrarySession({ servers, root });
  shared.set(key, known);
  return known;
}

/** Gives the work of a call the open session. */
export interface CallServers {
  readonly zk: ZooKeeper;
  readonly root: string;
  readonly clock: Clock;
  /** The options for a wait, including the signal that ends the wait. */
  readonly waiting: { readonly wait?: "none"; readonly signal: AbortSignal; readonly sinceMs: number };
  /**
   * Returns the program's callback as an option of the wait. If the callback throws, the wait fails with the same
   * error.
   */
  guard<T>(options: { readonly onWaiting?: ((status: T) => void) | undefined }): { onWaiting?: (status: T) => void };
}

/** How long an unused session stays open for the next call, in milliseconds. */
const idleMs = 100;

export class LibrarySession implements Session {
  readonly clock: Clock;
  readonly #options: SessionOptions;
  readonly #closed = new AbortController();
  readonly #calls = new RunningCalls();
  readonly #held = new Set<HeldLease>();
  /** How many calls run and leases are held, together. */
  #users = 0;
  #cancelIdle: () => void = () => {};
  #connection: SessionConnection | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: SessionOptions, { clock = systemClock() }: { readonly clock?: Clock } = {}) {
    checkSessionOptions("openSession", options);
    this.#options = options;
    this.clock = clock;
  }

  /** Returns a signal that aborts when the session is closed, or when the call's own signal aborts. */
  stopSignal(signal?: AbortSignal): AbortSignal {
    return anyAbortSignal(this.#closed.signal, signal);
  }

  /**
   * Runs a call under its time limit, which includes connecting. `what` names the call in messages: `acquire lock "a"`.
   * Rejects with UNREACHABLE if no server responds in time, or with OUTCOME_UNKNOWN if the call may have changed
   * something by then. Rejects with SESSION_EXPIRED if the servers have ended the session.
   */
  async call<T>(
    what: string,
    options: CallOptions & { readonly changes?: boolean },
    work: (servers: CallServers) => Promise<T>,
  ): Promise<T> {
    const stop = this.stopSignal(options.signal);
    throwIfAborted(stop);
    return await this.use(async () => {
      using limit = callLimit(this.clock, options.wait, stop);
      let zk: ZooKeeper | null = null;
      try {
        const connected = await this.#connected(limit);
        zk = connected.zk;
        return await work({ ...connected, clock: this.clock, ...guardedWait(limit.waiting) });
      } catch (thrown) {
        if (stop.aborted) throw thrown;
        if (thrown instanceof WaitTimeout) {
          throw this.#timeoutError(what, thrown, options.changes === true && zk !== null);
        }
        throw (zk === null ? null : sessionExpiredError(what, zk, thrown)) ?? thrown;
      }
    });
  }

  /** Keeps the session open until the work has ended. `close` waits for the work, too. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    throwIfAborted(this.#closed.signal);
    this.#enter();
    try {
      return await this.#calls.run(work);
    } finally {
      this.#leave();
    }
  }

  /** Keeps the session open until the lease has ended. */
  hold(lease: Lease): HeldLease {
    this.#enter();
    const ended = () => {
      this.#held.delete(held);
      this.#leave();
    };
    const held = new HeldLease(lease, { closed: this.#closed.signal, ended });
    this.#held.add(held);
    return held;
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#closed.abort(new DOMException("The session was closed", "AbortError"));
    await this.#calls.ended();
    const released = await Promise.allSettled([...this.#held].map((held) => held.release()));
    await this.#closeConnection();
    for (const outcome of released) if (outcome.status === "rejected") throw outcome.reason;
  }

  async #connected(limit: CallLimit): Promise<{ readonly zk: ZooKeeper; readonly root: string }> {
    for (;;) {
      const connection = this.#connection ??= new SessionConnection(this.#options, this.clock);
      try {
        const { root, connectTimeoutMs } = await rejectOnAbort(connection.servers, limit.signal);
        const { signal } = limit.waiting;
        using connecting = startCallDeadline(this.clock, limit.limitsConnecting ? connectTimeoutMs : undefined, {
          signal,
        });
        const zk = await rejectOnAbort(connection.opened, connecting.signal);
        if (!zk.session.ended.aborted) return { zk, root };
      } catch (thrown) {
        if (this.#connection === connection && connection.hasFailed) this.#connection = null;
        throw thrown;
      }
      if (this.#connection === connection) this.#connection = null;
    }
  }

  #enter(): void {
    this.#users++;
    this.#cancelIdle();
  }

  #leave(): void {
    this.#users--;
    if (this.#users > 0 || this.#connection === null) return;
    this.#cancelIdle = this.clock.startTimer(idleMs, () => void this.#closeConnection());
  }

  async #closeConnection(): Promise<void> {
    this.#cancelIdle();
    const connection = this.#connection;
    this.#connection = null;
    await connection?.close();
  }

  #timeoutError(what: string, cause: WaitTimeout, isUnknown: boolean): BatonError {
    const why = `no server responded within ${formatDuration(cause.waitMs)}${this.#connection?.describe() ?? ""}`;
    return isUnknown
      ? new BatonError("OUTCOME_UNKNOWN", `The outcome is unknown: ${what}: ${why}`, { cause })
      : new BatonError("UNREACHABLE", `Cannot ${what}: ${why}`, { cause });
  }
}

class SessionConnection {
  readonly servers: Promise<{ readonly root: string; readonly connectTimeoutMs: number | undefined }>;
  readonly opened: Promise<ZooKeeper>;
  /** True if the connection has failed and will never be open. */
  hasFailed = false;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #report = new ServerConnectReport();
  #hint = () => "";

  constructor(options: SessionOptions, clock: Clock) {
    this.#clock = clock;
    const { signal } = this.#stop;
    const reading = readSessionServers(options, signal);
    this.servers = reading.then(({ root, connect: { connectTimeoutMs, retries, unreachableHint } }) => {
      if (unreachableHint !== undefined) this.#hint = () => `; ${unreachableHint()}`;
      return {
        root,
        connectTimeoutMs: connectTimeoutMs ?? (retries === undefined ? connectTimeoutMsDefault : undefined),
      };
    });
    this.opened = reading.then((servers) => this.#open(servers));
    for (const failing of [this.servers, this.opened]) failing.catch(() => this.hasFailed = true);
  }

  /** Returns why the connection is not open, as a part of a message; empty if the reason is unknown. */
  describe(): string {
    const why = this.#report.describe(this.#clock.now());
    return `${why === "" ? "" : `: ${why}`}${this.#hint()}`;
  }

  async close(): Promise<void> {
    this.#stop.abort(new DOMException("The session was closed", "AbortError"));
    const zk = await this.opened.catch(() => null);
    await zk?.close();
  }

  /** Connects without a time limit, because each call has its own. */
  async #open({ connect: options }: CoordinationServers): Promise<ZooKeeper> {
    const { signal } = this.#stop;
    const connectTimeoutMs = Number.MAX_SAFE_INTEGER;
    return await connectToZooKeeper({ ...options, connectTimeoutMs, clock: this.#clock, report: this.#report, signal });
  }
}

/**
 * Returns the error SESSION_EXPIRED if the servers have ended the session; otherwise null. `what` names the failed
 * call, such as `acquire lock "a"`.
 */
function sessionExpiredError(what: string, { session }: ZooKeeper, cause: unknown): BatonError | null {
  if (!isSessionEndError(session.ended.reason)) return null;
  const why = "the servers have ended its session, because they received nothing from it for the session timeout";
  return new BatonError("SESSION_EXPIRED", `Cannot ${what}: ${why}`, { cause });
}

function guardedWait(waiting: CallServers["waiting"]): Pick<CallServers, "waiting" | "guard"> {
  const failed = new AbortController();
  return {
    waiting: { ...waiting, signal: anyAbortSignal(waiting.signal, failed.signal) },
    guard: ({ onWaiting }) => {
      if (onWaiting === undefined) return {};
      return {
        onWaiting: (status) => {
          try {
            onWaiting(status);
          } catch (thrown) {
            failed.abort(thrown);
          }
        },
      };
    },
  };
}

interface CallLimit extends Deadline {
  readonly waiting: CallServers["waiting"];
  readonly limitsConnecting: boolean;
}

/**
 * Returns one time limit for a whole call, which includes connecting and waiting. If `wait` is not a time, the call
 * itself has no limit.
 */
function callLimit(clock: Clock, wait: CallOptions["wait"], signal: AbortSignal): CallLimit {
  const sinceMs = clock.now();
  const isTry = wait === "none" || (typeof wait === "number" && wait <= 0);
  const isForever = wait === "forever" || wait === Infinity;
  const limitMs = typeof wait === "number" && !isTry && !isForever ? wait : undefined;
  const limit = startCallDeadline(clock, limitMs, { signal });
  return {
    ...limit,
    limitsConnecting: limitMs === undefined && !isForever,
    waiting: { ...(isTry ? { wait: "none" } : {}), signal: limit.signal, sinceMs },
  };
}

export function ownInfo(reason = ""): HolderInfo {
  const { argv: [, program], argv0, pid } = process;
  return { host: hostname(), pid, user: ownUserName(), argv0: basename(program ?? argv0), reason };
}
