/** Converts the end of a command, and the limits of its history, for the history. Pure. */
import type { SupervisedChildEnding } from "../../base/process/spawn/child_outcome.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { errorMessage } from "../../base/errors.ts";
import type { HistoryLimits } from "../history/history_log.ts";
import type { RecordedHoldEnd } from "../history/history_record.ts";
import type { historySettings } from "../settings/coordination_settings.ts";
import type { TickCommandEnd } from "../tick/tick_claim.ts";

export type HistoryValues = SettingValues<typeof historySettings>;

export function readHistoryLimits(
  { historyKeep: keep, historyMaxAge: maxAgeMs }: Omit<HistoryValues, "history">,
): HistoryLimits {
  return { keep, maxAgeMs };
}

/** Converts the end of a command for the history. Returns null if the command may still be running. */
export function toRecordedHoldEnd(ending: SupervisedChildEnding, lost: AbortSignal): RecordedHoldEnd | null {
  const nothing = { exitCode: null, signal: null };
  const lossReason = lost.aborted ? errorMessage(lost.reason) : null;
  switch (ending.kind) {
    case "exited":
      return ending.code === 0
        ? { result: "done", exitCode: 0, signal: null, why: "" }
        : { result: "failed", exitCode: ending.code, signal: null, why: `exit code ${ending.code}` };
    case "signaled":
      return { result: "failed", exitCode: null, signal: ending.signal, why: `ended by ${ending.signal}` };
    case "time_limit":
      return { result: "failed", ...nothing, why: "stopped: it ran longer than --max-hold" };
    case "revoked":
      return { result: "stopped", ...nothing, why: lossReason ?? "its holder gave it up" };
    case "cancelled":
      return { result: "stopped", ...nothing, why: "a signal came before the command was started" };
    case "not_found":
    case "not_executable":
    case "start_failed":
      return { result: "failed", ...nothing, why: ending.message };
    case "unreadable":
      return { result: "failed", ...nothing, why: ending.why };
    case "lost":
      return { result: "lost", ...nothing, why: lossReason ?? "the lock was lost" };
    case "breach":
      return null;
  }
}

/**
 * Converts the end of a tick's command. Returns null if the command may still be running. Also returns null if the lock
 * is lost, because the next call records that.
 */
export function toTickEnd(ending: SupervisedChildEnding, lost: AbortSignal): TickCommandEnd | null {
  const end = toRecordedHoldEnd(ending, lost);
  return end === null || end.result === "lost" ? null : { ...end, result: end.result };
}
