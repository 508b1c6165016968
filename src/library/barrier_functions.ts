/**
 * Provides barriers, which start several processes together, and gates, which one process closes and opens for others.
 */
import {
  liftGate as liftGateAt,
  setGate as setGateAt,
  waitGate as waitGateAt,
} from "../coordination/barrier/barrier_gate.ts";
import { enterBarrier as enterBarrierAt } from "../coordination/barrier/enter_barrier.ts";
import { BatonError } from "../base/errors.ts";
import { WaitTimeout } from "../base/support/deadline.ts";
import { formatDuration } from "../base/support/duration.ts";
import {
  checkArgument,
  checkOptions,
  choiceForm,
  countForm,
  functionForm,
  type OptionForms,
  textForm,
} from "./check_arguments.ts";
import type { Held } from "./held_lease.ts";
import {
  findNamedSession,
  ownInfo,
  requestForms,
  type RequestOptions,
  waitForms,
  type WaitOptions,
} from "./session.ts";

export interface BarrierOptions extends WaitOptions {
  /** The purpose in a few words, which `baton who` shows. */
  readonly reason?: string | undefined;
  /**
   * How the barrier reacts to the loss of a participant before the start: "fail" (the default) breaks the barrier,
   * "wait" waits for another participant.
   */
  readonly onMemberLost?: "fail" | "wait" | undefined;
  /** Called with the number of participants when the wait begins, and when participants enter or leave. */
  readonly onWaiting?: ((gathered: number) => void) | undefined;
}

/** A place in a barrier that has started. */
export interface HeldBarrier extends Held {
  /** The number of this participant, from 0 to size - 1. */
  readonly rank: number;
  readonly size: number;
  /** How many times the barrier has started, including this start. */
  readonly generation: number;
  /**
   * Leaves the barrier, and waits until all other participants have left or are lost. Rejects with LOCK_LOST if this
   * participant was lost, or BARRIER_TIMEOUT after `wait` milliseconds.
   */
  leave(options?: Pick<WaitOptions, "wait" | "signal">): Promise<void>;
}

const barrierForms: OptionForms<BarrierOptions> = {
  ...waitForms,
  reason: textForm,
  onMemberLost: choiceForm("fail", "wait"),
  onWaiting: functionForm,
};

/**
 * Enters the barrier, and waits until `parties` participants have entered; then all of them start. Rejects with
 * BARRIER_TIMEOUT, BARRIER_BROKEN, LIMIT_MISMATCH (the others give another number of parties), LOCK_LOST or
 * UNREACHABLE, or with the signal's reason.
 */
export async function enterBarrier(
  name: string,
  parties: number,
  options: BarrierOptions = {},
): Promise<HeldBarrier> {
  checkArgument("enterBarrier", "the number of parties", parties, countForm);
  const session = findNamedSession("enterBarrier", { kind: "a barrier", name }, options, barrierForms);
  const { onMemberLost = "fail", reason } = options;
  // A wait of 0 becomes 1 ms, because entering a barrier always takes some time.
  const wait = typeof options.wait === "number" ? Math.max(1, options.wait) : options.wait;
  const { membership, held } = await session.call(
    `enter barrier "${name}"`,
    { ...options, wait },
    async ({ zk, root, clock, waiting: { signal, sinceMs }, guard }) => {
      const entry = { ...guard(options), signal, sinceMs, root, clock, parties, onMemberLost, info: ownInfo(reason) };
      const membership = await enterBarrierAt(zk, name, entry);
      return { membership, held: session.hold(membership) };
    },
  );
  const { rank, size, generation } = membership;
  const leave = async (limits: Pick<WaitOptions, "wait" | "signal"> = {}) => {
    const { wait, signal } = waitForms;
    checkOptions("leave", limits, { wait, signal });
    await session.call(`leave barrier "${name}"`, limits, async ({ waiting }) => {
      await held.release();
      await membership.leave({ signal: waiting.signal }).catch((thrown: unknown) => {
        if (!(thrown instanceof WaitTimeout)) throw thrown;
        const why = `others have not left it within ${formatDuration(thrown.waitMs)}`;
        throw new BatonError("BARRIER_TIMEOUT", `Barrier "${name}": ${why}`);
      });
    });
  };
  return Object.assign(held, { rank, size, generation, leave });
}

/**
 * Closes the gate, which stays closed even when this process has ended. Returns false if the gate was closed already.
 */
export async function setGate(
  name: string,
  options: RequestOptions & { readonly reason?: string | undefined } = {},
): Promise<boolean> {
  const forms = { ...requestForms, reason: textForm };
  const session = findNamedSession("setGate", { kind: "a gate", name }, options, forms);
  return await session.call(
    `close gate "${name}"`,
    { ...options, changes: true },
    ({ zk, root, clock, waiting: { signal } }) =>
      setGateAt(zk, name, { root, clock, signal, info: ownInfo(options.reason) }),
  );
}

/** Opens the gate. Returns false if the gate was open already. */
export async function liftGate(name: string, options: RequestOptions = {}): Promise<boolean> {
  const session = findNamedSession("liftGate", { kind: "a gate", name }, options, requestForms);
  return await session.call(
    `open gate "${name}"`,
    { ...options, changes: true },
    ({ zk, root, clock, waiting: { signal } }) => liftGateAt(zk, name, { root, clock, signal }),
  );
}

/**
 * Waits until the gate is open. Rejects with BARRIER_TIMEOUT if the gate is still closed after `wait`, with
 * UNREACHABLE, or with the signal's reason.
 */
export async function waitGate(name: string, options: WaitOptions = {}): Promise<void> {
  const session = findNamedSession("waitGate", { kind: "a gate", name }, options, waitForms);
  await session.call(
    `read gate "${name}"`,
    options,
    ({ zk, root, clock, waiting: { wait, signal } }) =>
      waitGateAt(zk, name, { root, clock, signal, ...(wait === "none" ? { waitMs: 0 } : {}) }),
  );
}
