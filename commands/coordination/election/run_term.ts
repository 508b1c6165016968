/**
 * One term of a leader: runs --on-elected, the command with its --health check, and --on-deposed, all under one guard.
 * Does not release the leadership and does not end the guard.
 */
import type { ChildOutcome } from "../../../src/base/process/spawn/child_outcome.ts";
import { shellHealthCheck, watchHealth } from "../../../src/base/process/supervise/health_watch.ts";
import { hookFailure, runHook } from "../../../src/base/process/supervise/run_hook.ts";
import type { SignalSource } from "../../../src/base/process/supervise/signal_source.ts";
import { superviseChild } from "../../../src/base/process/supervise/supervise_child.ts";
import type { Guard } from "../../../src/base/process/guard/guard.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import { cookieEnvironment, cookieVariable } from "../../../src/base/process/proc/process_table.ts";
import type { Leadership } from "../../../src/coordination/election/campaign.ts";
import { ResignableLease } from "../../../src/base/process/resignable_lease.ts";
import type { Clock } from "../../../src/base/support/clock.ts";
import type { ElectOptions } from "./elect_options.ts";
import { superviseOptions } from "../../../src/coordination/job/job.ts";

export interface TermDependencies {
  readonly io: Io;
  readonly clock: Clock;
  readonly signals: SignalSource;
  readonly guard: Guard;
}

export interface TermResult {
  readonly outcome: ChildOutcome;
  /** Aborts with the reason of the loss. */
  readonly lost: AbortSignal;
  /** True if the --health check ended the term. */
  readonly isUnhealthy: boolean;
  /** True if the command or a hook could not be killed: the guard continues alone. */
  readonly hasBreach: boolean;
}

/** `stop` aborts at the first signal: nothing is started after it. Rejects only for a bug. */
export async function runTerm(
  options: ElectOptions,
  leadership: Leadership,
  { deps, env, grantedAtMs, stop }: {
    readonly deps: TermDependencies;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly grantedAtMs: number;
    readonly stop: AbortSignal;
  },
): Promise<TermResult> {
  const { clock } = deps;
  const { onElected, onDeposed } = options.values;
  const lease = new ResignableLease(leadership);
  const term = (outcome: ChildOutcome, last = outcome): TermResult => ({
    outcome,
    lost: lease.lost,
    isUnhealthy: lease.hasResigned,
    hasBreach: last.kind === "breach" && !last.isDead,
  });

  if (onElected !== undefined) {
    const elected = await runElectionHook("--on-elected", onElected, options, { deps, env, lease, signal: stop });
    if (elected.kind === "breach") return term({ ...elected, heldMs: clock.now() - grantedAtMs });
  }
  const outcome = await superviseWithHealth(options, lease, { deps, env, grantedAtMs, stop });
  if (outcome.kind !== "breach") deps.guard.forget(lease.holderId);
  // The hook must not run while a process that could not be killed may still run.
  if (onDeposed === undefined || outcome.kind === "breach") return term(outcome);
  return term(outcome, await runElectionHook("--on-deposed", onDeposed, options, { deps, env }));
}

async function runElectionHook(
  flag: string,
  line: string,
  { values, quiet }: ElectOptions,
  { deps, env, ...rest }: {
    readonly deps: TermDependencies;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly lease?: ResignableLease;
    readonly signal?: AbortSignal;
  },
): Promise<ChildOutcome> {
  const { clock, signals, guard, io } = deps;
  const { hookTimeout: timeoutMs, killAfter: killAfterMs, signal: stopSignal } = values;
  const outcome = await runHook({ ...rest, line, env, clock, signals, guard, timeoutMs, killAfterMs, stopSignal });
  const complaint = hookFailure(outcome, timeoutMs);
  if (complaint !== null && !quiet) io.err(`baton: ${flag} ${complaint}\n`);
  return outcome;
}

async function superviseWithHealth(
  options: ElectOptions,
  lease: ResignableLease,
  { deps, env, grantedAtMs, stop }: {
    readonly deps: TermDependencies;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly grantedAtMs: number;
    readonly stop: AbortSignal;
  },
): Promise<ChildOutcome> {
  const { io, clock, guard } = deps;
  const ending = new AbortController();
  const supervised = superviseOptions(options, io, deps);
  let health: Promise<void> = Promise.resolve();
  const outcome = await superviseChild({
    ...supervised,
    lease,
    guard,
    keepsGuard: true,
    grantedAtMs,
    signal: stop,
    env,
    onStarted({ ended }) {
      void ended.then(() => ending.abort());
      health = resignIfUnhealthy(options, lease, { io, clock, env, signal: ending.signal });
    },
    onEvent(event) {
      if (event.kind === "stopping" || event.kind === "killing") ending.abort();
      supervised.onEvent(event);
    },
  });
  ending.abort();
  await health;
  return outcome;
}

async function resignIfUnhealthy(
  { name, quiet, values }: ElectOptions,
  lease: ResignableLease,
  { io, clock, env, signal }: {
    readonly io: Io;
    readonly clock: Clock;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { health, healthInterval, healthTimeout, healthFailures, onDoubt } = values;
  if (health === undefined) return;
  const cookie = cookieEnvironment(lease.holderId, env[cookieVariable]);
  const what = await watchHealth({
    intervalMs: healthInterval,
    timeoutMs: healthTimeout,
    failuresMax: healthFailures,
    clock,
    signal,
    isFrozen: () => onDoubt === "freeze" && lease.inDoubt(),
    check: shellHealthCheck({ line: health, env: { ...env, ...cookie }, clock }),
    onFailure: (failure, inARow) => {
      if (!quiet) io.err(`baton: --health ${failure}, ${inARow} of ${healthFailures} in a row\n`);
    },
  });
  if (what !== null) {
    lease.resign(
      `Leadership "${name}" ends: the --health check failed ${healthFailures} times in a row, the last time: ${what}`,
    );
  }
}
