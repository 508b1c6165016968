/** The data of the node of one schedule, `<root>/ticks/<name>/<id>`: which ticks are settled, and which one runs. */
import { BatonError } from "../../base/errors.ts";
import { isUnixTimeMs } from "../../base/support/instant.ts";
import {
  demandJsonFields,
  encodeJson,
  isJsonObject,
  type JsonFields,
  stringOrEmpty,
} from "../../base/support/json_fields.ts";
import { coordinationFolderPath, encodeLockName } from "../nodes/node_paths.ts";
import type { NextTickAttempt, OpenTickAttempt, TickAttempt, TickProgress } from "./tick_decision.ts";

export interface TickState extends TickProgress {
  readonly schedule: string;
  /**
   * The IANA name of the zone. It is not a part of the ID: hosts with different zones would otherwise run every tick
   * twice.
   */
  readonly zone: string;
  /** The host that wrote the zone. */
  readonly zoneHost: string;
  /** The rules of the zone on the host that ran the last tick; see timeZoneFingerprint. Empty if they are unknown. */
  readonly zonePrint: string;
}

/** The version of the data's layout. */
const layout = 1;

/** Returns the path of the container of a lock's schedules. Throws USAGE for an invalid lock name. */
export function tickSchedulesFolder(name: string, root?: string): string {
  return `${coordinationFolderPath("ticks", root)}/${encodeLockName(name)}`;
}

export function formatTickState(state: TickState): Uint8Array {
  return encodeJson({ layout, ...state });
}

/** Parses the data of a schedule's node. Throws CONFIG for an unknown layout. */
export function parseTickState(data: Uint8Array, path: string): TickState {
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `"${path}" is not a schedule of this version of baton: ${what}`, { cause });
  const fields = demandJsonFields(data, refuse, layout);
  const { uptoMs, open = null, retry = null, schedule, zone } = fields;
  if (!isUnixTimeMs(uptoMs)) throw refuse(`its mark is ${JSON.stringify(uptoMs)}`);
  if (typeof schedule !== "string" || typeof zone !== "string") {
    throw refuse("its data has no schedule or no time zone");
  }
  return {
    schedule,
    zone,
    zoneHost: stringOrEmpty(fields["zoneHost"]),
    zonePrint: stringOrEmpty(fields["zonePrint"]),
    uptoMs,
    open: open === null ? null : openOf(open) ?? throwing(refuse(`its open try is ${JSON.stringify(open)}`)),
    retry: retry === null ? null : nextOf(retry) ?? throwing(refuse(`its next try is ${JSON.stringify(retry)}`)),
  };
}

function attemptOf(value: unknown): TickAttempt | null {
  if (!isJsonObject(value)) return null;
  const { tickMs, attempt }: JsonFields = value;
  return isUnixTimeMs(tickMs) && typeof attempt === "number" && Number.isSafeInteger(attempt) && attempt >= 1
    ? { tickMs, attempt }
    : null;
}

function nextOf(value: unknown): NextTickAttempt | null {
  const run = attemptOf(value);
  if (run === null || !isJsonObject(value)) return null;
  const { fromMs, untilMs } = value;
  return { ...run, fromMs: isUnixTimeMs(fromMs) ? fromMs : 0, untilMs: isUnixTimeMs(untilMs) ? untilMs : null };
}

function openOf(value: unknown): OpenTickAttempt | null {
  const run = attemptOf(value);
  if (run === null || !isJsonObject(value)) return null;
  const { guid, host, pid, beganMs } = value;
  if (typeof guid !== "string" || !isUnixTimeMs(beganMs)) return null;
  return { ...run, guid, host: stringOrEmpty(host), pid: typeof pid === "number" ? pid : 0, beganMs };
}

function throwing(error: BatonError): never {
  throw error;
}
