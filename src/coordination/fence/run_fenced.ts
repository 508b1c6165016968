/** Runs a command while it holds a fencing store: checks the token, runs the command, releases the store. */
import process from "node:process";
import { BatonError } from "../../errors.ts";
import type { Clock } from "../../support/clock.ts";
import type { ChildEnd } from "../../process/spawn/child_outcome.ts";
import { commandSignals } from "../../process/supervise/signal_source.ts";
import { type Libc, loadLibc } from "../../process/libc.ts";
import type { SignalSource } from "../../process/supervise/signal_source.ts";
import { childEnvironment, spawnChild, type SpawnResult } from "../../process/spawn/spawn_child.ts";
import { StopRequest } from "../../process/supervise/stop_signals.ts";
import type { FencedToken } from "./token_slots.ts";
import { TokenStore } from "./token_store.ts";
import { TaskScope } from "../../support/abort.ts";

export interface RunFencedOptions {
  readonly storePath: string;
  readonly token: FencedToken;
  /** The maximum wait in milliseconds; undefined: no limit; 0: one try. */
  readonly waitMs: number | undefined;
  readonly command: readonly string[];
  /** The result of `inheritedDescriptors()` at the start of this process. */
  readonly descriptors: readonly number[];
  readonly clock: Clock;
  readonly signals: SignalSource;
}

export type FencedCommandEnd = ChildEnd | Exclude<SpawnResult, { kind: "started" | "cancelled" }>;

/**
 * Returns the end of the command, or why it was not started. Rejects STALE_TOKEN, LOCK_BUSY, LOCK_TIMEOUT, CANNOT_CREATE, BAD_DATA,
 * USAGE, IO, and with StoppedBySignal after a signal before the start.
 */
export async function runFenced(options: RunFencedOptions): Promise<FencedCommandEnd> {
  const { storePath, token, clock, waitMs, signals, descriptors } = options;
  const libc = await loadLibc();
  if (libc === null) {
    throw new BatonError(
      "START_FAILED",
      "The store needs flock(2), but baton cannot call the C library on this system; docs/limits.md lists supported systems",
    );
  }
  using stop = new StopRequest(signals);
  using store = await TokenStore.openLocked(storePath, { libc, clock, waitMs, signal: stop.signal, descriptors });
  store.admit(token);
  const spawned = await spawnWith(store, libc, { ...options, signal: stop.signal });
  if (spawned.kind === "cancelled") throw stop.signal.reason;
  if (spawned.kind !== "started") return spawned;
  return await waitForwardingSignals(spawned, signals);
}

/** Starts the command with the descriptor of the lock, so that it holds the store even if baton is killed. */
async function spawnWith(
  store: TokenStore,
  libc: Libc,
  { command, descriptors, signals, signal }: RunFencedOptions & { readonly signal: AbortSignal },
): Promise<SpawnResult> {
  using shared = store.duplicateDescriptor(libc);
  return await spawnChild(command, {
    env: childEnvironment({}),
    ownGroup: false,
    descriptors: [...descriptors, shared.fd].sort((a, b) => a - b),
    hangUpIgnored: signals.hangUpIgnored,
    signal,
  });
}

async function waitForwardingSignals(
  { pid, ended }: Extract<SpawnResult, { kind: "started" }>,
  signals: SignalSource,
): Promise<ChildEnd> {
  using _listeners = new TaskScope(
    ...commandSignals(false).map(({ signal, forwarded }) =>
      signals.listen([signal], () => forwarded && process.kill(pid, signal))
    ),
  );
  return await ended;
}
