/** Records of ticks that are settled together with a decision. Pure. */
import { emptyRecord, type HistoryRecord, lostWhy } from "../history/history_record.ts";
import type { SettledTicks } from "./tick_decision.ts";
import { formatTickTime } from "./tick_errors.ts";

/** `why`: the reason of a skip. */
export function settledRecords(
  settled: readonly SettledTicks[],
  { id, nowMs, why = "" }: { readonly id: string; readonly nowMs: number; readonly why?: string },
): HistoryRecord[] {
  return settled.map((one) => {
    if (one.result === "lost") {
      const { tickMs, attempt, host, pid, beganMs } = one.run;
      return { ...emptyRecord("lost", id, tickMs), attempt, host, pid, beganMs, why: lostWhy };
    }
    const record = emptyRecord(one.result, id, one.tickMs);
    if (one.result === "skipped") return { ...record, why };
    const { untilMs, count } = one;
    return { ...record, untilMs, count, why: `no host took it before ${formatTickTime(nowMs)}` };
  });
}
