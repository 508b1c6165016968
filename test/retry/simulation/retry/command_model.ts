/**
 * A model of commands and of the guard that they run under: it kills a command within a second after the processor has
 * died, and when the lease ends, also while the processor is stopped.
 */
import type { Lease } from "../../../../src/base/process/lease.ts";
import type { TryLease } from "../../../../src/retry/queue/processor_lease.ts";
import { outcomeOfExit } from "../../../../src/retry/targets/outcome.ts";
import { type TryResult, tryResult } from "../../../../src/retry/targets/target.ts";
import { CleanupScope, onAbort } from "../../../../src/base/support/abort.ts";
import type { SimProcess } from "../../../world/sim_process.ts";

/** What a command does. */
export interface CommandAct {
  readonly runsMs: number;
  readonly code: number;
}

/** Milliseconds until the guard has killed a command whose processor has died. */
const guardMsMax = 1000;

export interface CommandRun {
  readonly process: SimProcess;
  readonly lease: Pick<Lease, "lost" | "endMs">;
  readonly timeoutMs: number;
  readonly act: CommandAct;
  /** Called when nothing of the command runs; the code is null if it was killed. */
  readonly onGone: (code: number | null) => void;
}

type CommandEnd = { readonly kind: "exited"; readonly code: number } | { readonly kind: "late" | "stopped" | "lost" };

/** Resolves at the processor, if it still runs. */
export function runModel({ process, lease, timeoutMs, act, onGone }: CommandRun): Promise<CommandEnd> {
  const { world, machine, life } = process;
  const chance = world.chance.fork(`guard ${world.nowMs}`);
  let isGone = false;
  return new Promise((resolve) => {
    const stops = new CleanupScope();
    const gone = (code: number | null, end: CommandEnd | null) => {
      if (isGone) return;
      isGone = true;
      stops[Symbol.dispose]();
      onGone(code);
      // A command outlives a killed processor by up to a second: the processor may have started again by then.
      if (end !== null && process.life === life) process.schedule("network", 0, () => resolve(end));
    };
    world.after(act.runsMs, () => gone(act.code, { kind: "exited", code: act.code }));
    world.after(timeoutMs, () => gone(null, { kind: "late" }));
    stops.add(onAbort(lease.lost, () => gone(null, { kind: "stopped" })));
    process.whenDead((how) => {
      if (how === "lost") gone(null, null);
      else world.after(chance.between(0, guardMsMax), () => gone(null, null));
    });
    // The guard has the clock of the machine, and is told each new end of the lease.
    const watch = () => {
      if (isGone) return;
      const leftMs = (lease.endMs() - machine.bootMs()) / machine.clockRate;
      if (leftMs > 0) world.after(leftMs + 0.001, watch);
      else {
        world.count("mark command killed at the end of its lease");
        gone(null, { kind: "lost" });
      }
    };
    watch();
  });
}

/** One try by a command. */
export async function runCommand(run: CommandRun & { readonly lease: TryLease }): Promise<TryResult> {
  const end = await runModel(run);
  if (end.kind === "lost" || (end.kind === "stopped" && !run.lease.stopped.aborted)) return { kind: "lost" };
  if (end.kind === "late") return tryResult("retry", "ran too long");
  if (end.kind !== "exited") return tryResult("retry", "was stopped because baton was stopped");
  const outcome = outcomeOfExit(end.code, { retryOn: [], noRetryOn: [] });
  return tryResult(outcome, outcome === "done" ? null : `exited with ${end.code}`);
}
