/**
 * The settings that all runs of a component must share: the lock paths and --total. Otherwise an item could run twice
 * at the same time, or more items than --total. pool_membership.ts announces and compares the settings.
 */
import { BatonError } from "../../base/errors.ts";
import { encodeJson, parseJsonFields, stringOrEmpty } from "../../base/support/json_fields.ts";
import { printable } from "../../base/support/text.ts";
import { type HolderInfo, nameOfHolder, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import type { PoolPath, PoolPathTemplates } from "./pool_path.ts";

export interface SharedPoolSettings {
  /** The templates as configured, for messages. */
  readonly templates: PoolPathTemplates;
  /** Null if there is no limit. */
  readonly total: number | null;
}

/** The data of a run's node: its shared settings and its process. */
export interface PoolRunInfo extends SharedPoolSettings {
  readonly info: HolderInfo;
}

const utf8 = new TextEncoder();

/** Returns equal hashes for equal lock paths and --total, however the templates are written. */
export function poolSettingsHash({ places }: Pick<PoolPath, "places">, total: number | null): string {
  return fingerprint(JSON.stringify([places.component, places.item, total]));
}

/** Formats the data of a run's node. `sinceMs` is the start of the run in Unix milliseconds, for display. */
export function formatPoolRunInfo({ templates, total, info }: PoolRunInfo, sinceMs: number): Uint8Array {
  const { component, item } = templates;
  return encodeJson({ ...info, sinceMs, componentPath: component, itemPath: item, total });
}

/** Parses the data of a run's node as far as possible. Never throws. */
export function parsePoolRunInfo(data: Uint8Array): PoolRunInfo {
  const { componentPath, itemPath, total } = parseJsonFields(data);
  return {
    templates: { component: stringOrEmpty(componentPath), item: stringOrEmpty(itemPath) },
    total: typeof total === "number" ? total : null,
    info: parseHolderNodeInfo(data),
  };
}

/** Returns the error for different settings: LIMIT_MISMATCH if only --total differs, otherwise CONFIG. */
export function poolSettingsMismatchError(component: string, own: SharedPoolSettings, shown: PoolRunInfo): BatonError {
  const paths = describePoolPathDifferences(own.templates, shown.templates);
  const isTotal = own.total !== shown.total;
  const isPlace = paths.length > 0 || !isTotal;
  const differences = [
    ...paths,
    ...(paths.length === 0 && !isTotal ? ["its locks are at other paths there"] : []),
    ...(isPlace ? ["an item could run in both at the same time"] : []),
    ...(isTotal ? [`it runs ${describeTotal(own)} here and ${describeTotal(shown)} there`] : []),
  ];
  const reasons = printable(differences.join(", "));
  const message = `Cannot run pool "${component}" at the same time as ${nameOfHolder(shown.info)}: ${reasons}; ` +
    `use the same in all calls, or wait until the other calls have ended${isPlace ? whereFrom : ""}`;
  return new BatonError(isPlace ? "CONFIG" : "LIMIT_MISMATCH", message);
}

export function describePoolPathDifferences(own: PoolPathTemplates, shown: PoolPathTemplates): readonly string[] {
  return (["item", "component"] as const)
    .filter((which) => own[which] !== shown[which])
    .map((which) => `pool.${which}_path is "${own[which]}" here and "${shown[which]}" there`);
}

const whereFrom = "; baton config show --origin prints the origin of the path here";

const describeTotal = (
  { total }: SharedPoolSettings,
): string => (total === null ? "without --total" : `with --total ${total}`);

const prime = 0x100000001b3n;
const offset = 0xcbf29ce484222325n;

/**
 * Returns the FNV-1a hash of UTF-8 as 16 hexadecimal digits. It is not safe against forgery, but node:crypto costs 3 ms
 * of a start.
 */
function fingerprint(text: string): string {
  let hash = offset;
  for (const byte of utf8.encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * prime);
  return hash.toString(16).padStart(16, "0");
}
