/**
 * Connects to one of several ZooKeeper servers. `tryEachServer` tries each server one time (a round); `open` repeats
 * rounds until a session is open.
 */
import { BatonError } from "../../base/errors.ts";
import { type Address, currentTlsOptions, formatAddress } from "../../base/sockets/connection.ts";
import { backoffMs, serverBackoff } from "../../base/support/backoff.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter, sleep, WaitTimeout } from "../../base/support/deadline.ts";
import { describeSocketFailure } from "../../base/sockets/describe_failure.ts";
import {
  establishConnection,
  type EstablishedConnection,
  type EstablishOptions,
  isSilentCloseError,
  sessionExpiredOutcome,
  type SessionRequest,
} from "./establish.ts";
import type { SessionIdentity } from "./handshake.ts";
import type { ZooKeeperHosts, ZooKeeperServerEndpoint } from "./hosts.ts";
import { findPermanentFault, type PermanentFault, PermanentFaultsError } from "./permanent_error.ts";
import { formatDuration } from "../../base/support/duration.ts";

export interface ConnectRoundOptions {
  readonly attemptMs: number;
  /**
   * A longer time limit, in milliseconds, which applies if there is only one server and it has accepted the connection.
   * By default `attemptMs`.
   */
  readonly soleAttemptMs?: number;
  readonly staggerMs: number;
  readonly signal: AbortSignal;
  /** The server to skip, because the session is connected to it. */
  readonly except?: Address | undefined;
  readonly report?: ServerConnectReport;
}

/** The result of a round. After `refused`, another attempt would fail in the same way. */
export type ConnectRoundOutcome =
  | { readonly kind: "accepted"; readonly established: EstablishedConnection }
  /**
   * The session has ended. `isReplaced` is true if the server opened a new session instead; the old session may then
   * still exist.
   */
  | { readonly kind: "expired"; readonly isReplaced: boolean }
  | { readonly kind: "refused"; readonly error: BatonError }
  | { readonly kind: "failed" };

export interface NewSessionOptions {
  readonly timeoutMs: number;
  /** The session to resume; undefined to open a new session. */
  readonly identity?: SessionIdentity | undefined;
  readonly connectTimeoutMs: number;
  /** The number of rounds after the first one. By default, rounds are repeated until the connect timeout. */
  readonly retries?: number | undefined;
  /** The pause between rounds, in milliseconds. By default, an exponential back-off with jitter. */
  readonly delayMs?: number | undefined;
  /** Returns advice for the user at the end of the error message, if no server responds. */
  readonly unreachableHint?: (() => string) | undefined;
  /** The object that collects, for each attempt, what it waits for and why it has failed. */
  readonly report?: ServerConnectReport;
  /** Cancels connecting. Has no effect on an open session. */
  readonly signal?: AbortSignal | undefined;
}

export class ZooKeeperConnector {
  readonly #hosts: ZooKeeperHosts;
  readonly #options: EstablishOptions;
  readonly #clock: Clock;
  /** The ports that `#protocolFault` has already tried. */
  readonly #asked = new Set<string>();

  constructor(hosts: ZooKeeperHosts, options: EstablishOptions) {
    this.#hosts = hosts;
    this.#options = options;
    this.#clock = options.clock;
  }

  /** Tries each server once. Rejects only if the signal aborts. */
  async tryEachServer(wanted: SessionRequest, options: ConnectRoundOptions): Promise<ConnectRoundOutcome> {
    const { attemptMs, soleAttemptMs = attemptMs, staggerMs, signal, except, report = new ServerConnectReport() } =
      options;
    const { endpoints, failures } = await this.#hosts.resolveServers(attemptMs, signal);
    const faults: PermanentFault[] = [];
    for (const { name, why } of failures) report.fail(name, why);
    const exceptName = except === undefined ? null : formatAddress(except);
    const candidates = endpoints.filter((endpoint) => formatAddress(endpoint.address) !== exceptName);
    const outcome = await raceStaggeredAttempts<ZooKeeperServerEndpoint, ConnectRoundOutcome>(candidates, {
      attempt: (endpoint, raceSignal) =>
        this.#attempt(endpoint, wanted, {
          attemptMs,
          connectedMs: candidates.length === 1 ? soleAttemptMs : attemptMs,
          signal: raceSignal,
          report,
          faults,
        }),
      discard(late) {
        if (late.kind === "accepted") late.established.stream.destroy();
      },
    }, { clock: this.#clock, staggerMs, signal });
    if (outcome !== null) return outcome;
    // Continues if only some servers have permanent faults, such as a bad certificate. If all servers have permanent
    // faults, waiting does not help.
    if (faults.length === 0 || faults.length < candidates.length + failures.length) return { kind: "failed" };
    const text = `Cannot open a ZooKeeper session: ${report.describe(this.#clock.now())}`;
    return { kind: "refused", error: new PermanentFaultsError(faults, text) };
  }

  async #attempt(
    endpoint: ZooKeeperServerEndpoint,
    wanted: SessionRequest,
    { attemptMs, connectedMs, signal, report, faults }: {
      readonly attemptMs: number;
      /** The time limit after the server has accepted the connection. */
      readonly connectedMs: number;
      readonly signal: AbortSignal;
      readonly report: ServerConnectReport;
      readonly faults: PermanentFault[];
    },
  ): Promise<ConnectRoundOutcome> {
    const { name } = endpoint;
    const over = new AbortController();
    using limits = new CleanupScope();
    limits.add(this.#clock.startTimer(attemptMs, () => {
      const moreMs = report.isConnected(name) ? connectedMs - attemptMs : 0;
      if (moreMs <= 0) return over.abort(timeIsUp);
      limits.add(this.#clock.startTimer(moreMs, () => over.abort(timeIsUp)));
    }));
    limits.add(onAbort(signal, (reason) => over.abort(reason)));
    report.begin(name, this.#clock.now());
    const tls = currentTlsOptions(this.#options.tls);
    try {
      const established = await establishConnection(endpoint, wanted, {
        options: this.#options,
        tls,
        signal: over.signal,
        progress: (waitingFor) => report.waitFor(name, waitingFor),
      });
      if (established !== sessionExpiredOutcome) {
        if (wanted.identity === null || wanted.identity.id === established.accepted.identity.id) {
          return { kind: "accepted", established };
        }
        established.stream.destroy(); // the server lets the new session expire soon
        return { kind: "expired", isReplaced: true };
      }
      if (wanted.identity !== null) return { kind: "expired", isReplaced: false };
      throw new Error("it refused to open a session"); // another server may accept
    } catch (error) {
      const fault = findPermanentFault(error, tls) ??
        (wanted.identity === null ? await this.#protocolFault(endpoint, error, over.signal) : null);
      if (fault !== null) faults.push(fault);
      if (error === timeIsUp) report.timeOut(name, this.#clock.now());
      else report.fail(name, fault?.text ?? describeSocketFailure(error, { tls }));
      if (error instanceof BatonError && isFinal(error)) return { kind: "refused", error };
      throw error;
    }
  }

  /**
   * Finds out why a port closed a connection without a response. Connects again: with TLS if the attempt used none, and
   * without TLS otherwise. Does this for each port only one time, because the answer rarely changes.
   */
  async #protocolFault(
    { address, name }: ZooKeeperServerEndpoint,
    error: unknown,
    signal: AbortSignal,
  ): Promise<PermanentFault | null> {
    if (
      !this.#options.asksPorts || address.kind === "unix" || this.#asked.has(name) || signal.aborted ||
      !isSilentCloseError(error)
    ) return null;
    this.#asked.add(name);
    const isTls = this.#options.tls !== undefined;
    const { portAnswersWithoutTls, portAnswersTls } = await import("./port_protocol.ts"); // few calls need it
    const isOther = await (isTls ? portAnswersWithoutTls : portAnswersTls)(address, this.#options.dial, signal);
    if (!isOther) return null;
    const text = isTls ? "this port does not use TLS" : "this port needs TLS; set --tls, or --tls-ca FILE";
    return { code: "UNREACHABLE", text, isFromSecondTry: false };
  }

  /**
   * Repeats rounds until a server accepts. Rejects with UNREACHABLE, REFUSED or the signal's reason. Rejects with
   * LOCK_LOST if the session to resume has ended.
   */
  async open(options: NewSessionOptions): Promise<EstablishedConnection> {
    const {
      timeoutMs,
      connectTimeoutMs,
      retries,
      delayMs,
      unreachableHint,
      report = new ServerConnectReport(),
      signal,
    } = options;
    const { identity = null } = options;
    const startMs = this.#clock.now();
    const tooLate = new Error("the connect timeout has passed");
    using deadline = deadlineAfter(this.#clock, connectTimeoutMs, { signal, reason: () => tooLate });
    let attemptMs = Math.min(connectTimeoutMs, Math.max(1000, timeoutMs / 3));
    let soleAttemptMs = Math.max(attemptMs, Math.min(2 * timeoutMs, connectTimeoutMs * 2 / 3));
    const wanted: SessionRequest = { identity, timeoutMs, lastZxid: 0n };
    try {
      for (let retry = 0;; retry++) {
        const round = { attemptMs, soleAttemptMs, staggerMs: timeoutMs / 12, signal: deadline.signal, report };
        const { slowHandshakes } = report;
        const outcome = await this.tryEachServer(wanted, round);
        // Gives slow servers more time: opening a session is a write, which waits for the server's disk.
        if (report.slowHandshakes > slowHandshakes) {
          attemptMs = Math.min(2 * attemptMs, connectTimeoutMs, attemptMsMax);
          soleAttemptMs = Math.min(2 * soleAttemptMs, connectTimeoutMs, attemptMsMax);
        }
        if (outcome.kind === "accepted") return outcome.established;
        if (outcome.kind === "expired") throw new BatonError("LOCK_LOST", "The session has ended");
        if (outcome.kind === "refused" && !mayRetryFault(outcome.error, retry, retries)) throw outcome.error;
        if (retries !== undefined && retry >= retries) throw tooLate;
        const pauseMs = delayMs ?? backoffMs(retry, serverBackoff);
        await sleep(this.#clock, pauseMs, deadline.signal);
      }
    } catch (error) {
      if (error !== tooLate && !(error instanceof WaitTimeout)) throw error;
      const nowMs = this.#clock.now();
      const tried = `Cannot open a ZooKeeper session within ${formatDuration(nowMs - startMs)}`;
      const hint = unreachableHint === undefined ? "" : `; ${unreachableHint()}`;
      throw new BatonError("UNREACHABLE", `${tried}: ${report.describe(nowMs)}${hint}`);
    }
  }
}

function mayRetryFault(error: BatonError, retry: number, retries: number | undefined): boolean {
  return error instanceof PermanentFaultsError && error.isFromSecondTry && retry === 0 && retries !== 0;
}

const timeIsUp = new Error("the attempt ran out of time");
/** The longest attempt to open a session with a server that accepts connections, in milliseconds. */
const attemptMsMax = 120_000;

/**
 * Returns true if every later attempt would fail too, for example because of wrong credentials. An unreachable or
 * broken server may recover, so its errors are not final.
 */
function isFinal(error: BatonError): boolean {
  return error.code !== "PROTOCOL" && error.code !== "UNREACHABLE";
}

interface ConnectAttempt {
  readonly sinceMs: number;
  waitingFor: string;
}

const noConnection = "no connection";

export class ServerConnectReport {
  /** The number of attempts that ran out of time after the server had accepted the connection. */
  slowHandshakes = 0;
  readonly #failed = new Map<string, string>();
  readonly #waiting = new Map<string, ConnectAttempt>();

  begin(name: string, nowMs: number): void {
    this.#waiting.set(name, { sinceMs: nowMs, waitingFor: noConnection });
  }

  /** Records what the attempt at `name` waits for, such as "no response to the handshake". */
  waitFor(name: string, waitingFor: string): void {
    const entry = this.#waiting.get(name);
    if (entry !== undefined) entry.waitingFor = waitingFor;
  }

  isConnected(name: string): boolean {
    const attempt = this.#waiting.get(name);
    return attempt !== undefined && attempt.waitingFor !== noConnection;
  }

  fail(name: string, why: string): void {
    this.#waiting.delete(name);
    this.#failed.set(name, why);
  }

  timeOut(name: string, nowMs: number): void {
    const attempt = this.#waiting.get(name);
    if (this.isConnected(name)) this.slowHandshakes++;
    if (attempt !== undefined) this.fail(name, describeAttempt(attempt, nowMs));
  }

  /**
   * Lists all servers with their failures, separated by semicolons. Lists an unfinished attempt only if the server has
   * no earlier failure.
   */
  describe(nowMs: number): string {
    const open = [...this.#waiting].filter(([name]) => !this.#failed.has(name));
    const texts = [...this.#failed, ...open.map(([name, attempt]) => [name, describeAttempt(attempt, nowMs)])];
    return texts.map(([name, why]) => `${name}: ${why}`).join("; ");
  }
}

function describeAttempt({ waitingFor, sinceMs }: ConnectAttempt, nowMs: number): string {
  return `${waitingFor} within ${formatDuration(nowMs - sinceMs)}`;
}

interface RaceOptions {
  readonly clock: Clock;
  /**
   * The delay, in milliseconds, after which the next attempt starts while earlier attempts continue. If an attempt
   * fails, the next attempt starts immediately.
   */
  readonly staggerMs: number;
  /** Ends the race and all attempts; the promise rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

/**
 * Starts an attempt at each candidate in turn, and returns the first result; null if all attempts fail. Then aborts the
 * other attempts. If one of them still has a result, passes it to `discard`.
 */
export function raceStaggeredAttempts<C, T>(
  candidates: readonly C[],
  { attempt, discard }: { attempt(candidate: C, signal: AbortSignal): Promise<T>; discard(late: T): void },
  { clock, staggerMs, signal }: RaceOptions,
): Promise<T | null> {
  const lateAttempts = new AbortController();
  let begun = 0;
  let running = 0;
  let over = false;
  let cancelTimer = () => {};
  let offAbort = () => {};
  return new Promise<T | null>((resolve, reject) => {
    const finish = (settle: () => void, reason: unknown) => {
      over = true;
      cancelTimer();
      offAbort();
      settle();
      lateAttempts.abort(reason);
    };
    const next = () => {
      cancelTimer();
      if (over) return;
      const candidate = candidates[begun];
      if (begun === candidates.length || candidate === undefined) {
        if (running === 0) finish(() => resolve(null), null);
        return;
      }
      begun++;
      running++;
      cancelTimer = clock.startTimer(staggerMs, next);
      attempt(candidate, lateAttempts.signal).then((value) => {
        running--;
        if (over) discard(value);
        else finish(() => resolve(value), new Error("another server was faster"));
      }, () => {
        running--;
        next();
      });
    };
    offAbort = onAbort(signal, (reason) => finish(() => reject(reason), reason));
    next();
  });
}
