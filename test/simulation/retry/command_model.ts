/**
 * A model of commands and of the guard that they run under: it kills a command within a second after the processor has died, and when the
 * lease ends, also while the processor is stopped.
 */
import type { TryLease } from "../../../src/retry/queue/processor_lease.ts";
import type { ClaimedMessage } from "../../../src/retry/queue/stored_message.ts";
import { outcomeOfExit } from "../../../src/retry/targets/outcome.ts";
import { type TryResult, tryResult } from "../../../src/retry/targets/target.ts";
import { onAbort, TaskScope } from "../../../src/support/abort.ts";
import type { SimProcess } from "../world/sim_process.ts";

/** What a command does. */
export interface CommandAct {
  readonly runsMs: number;
  readonly code: number;
}

/** Milliseconds until the guard has killed a command whose processor has died. */
const guardMsMax = 1000;

export interface CommandTry {
  readonly process: SimProcess;
  readonly message: ClaimedMessage;
  readonly lease: TryLease;
  readonly timeoutMs: number;
  readonly act: CommandAct;
  /** Called when nothing of the command runs; the code is null if it was killed. */
  readonly onGone: (code: number | null) => void;
}

export function runCommand({ process, lease, timeoutMs, act, onGone }: CommandTry): Promise<TryResult> {
  const { world, machine } = process;
  const chance = world.chance.fork(`guard ${world.nowMs}`);
  let isGone = false;
  return new Promise((resolve) => {
    const stops = new TaskScope();
    const gone = (code: number | null, result: TryResult | null) => {
      if (isGone) return;
      isGone = true;
      stops[Symbol.dispose]();
      onGone(code);
      if (result !== null) process.schedule("network", 0, () => resolve(result));
    };
    world.after(act.runsMs, () => {
      const outcome = outcomeOfExit(act.code, { retryOn: [], noRetryOn: [] });
      gone(act.code, tryResult(outcome, outcome === "done" ? null : `exited with ${act.code}`, outcome !== "retry"));
    });
    world.after(timeoutMs, () => gone(null, tryResult("retry", "ran too long", false)));
    stops.add(onAbort(lease.lost, () => {
      const stopped = tryResult("retry", "was stopped because baton was stopped", null);
      gone(null, lease.stopped.aborted ? stopped : { kind: "lost" });
    }));
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
