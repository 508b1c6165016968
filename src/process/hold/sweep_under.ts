/** Ends what a script has started under its lock, while the script itself goes on. */
import type { Clock } from "../../support/clock.ts";
import type { SuperviseOptions } from "../supervise/supervise_child.ts";
import { sendSignal } from "../proc/send_signal.ts";

const lookEveryMs = 20;

/** How long SIGKILL is given. */
const killGraceMs = 1000;

/**
 * Tells all that `find` finds to stop, each once, and kills after `killAfterMs` what is left. Resolves with what could not
 * be ended: nothing, as a rule.
 */
export async function sweepUnder(
  find: () => number[],
  { clock, killAfterMs, stopSignal }: Pick<SuperviseOptions, "clock" | "killAfterMs" | "stopSignal">,
): Promise<number[]> {
  const killAtMs = clock.now() + killAfterMs;
  const told = new Set<number>();
  for (;;) {
    const left = find();
    const nowMs = clock.now();
    if (left.length === 0 || nowMs >= killAtMs + killGraceMs) return left;
    for (const pid of left) {
      if (nowMs >= killAtMs) sendSignal(pid, "SIGKILL");
      else if (!told.has(pid)) sendSignal(pid, stopSignal);
      if (!told.has(pid)) sendSignal(pid, "SIGCONT"); // a stopped process acts on nothing else
      told.add(pid);
    }
    await pause(clock);
  }
}

function pause(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.after(lookEveryMs, resolve));
}
