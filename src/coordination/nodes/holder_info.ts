/**
 * The description of the process behind a contender's or holder's node, for people to read. No decision depends on it.
 */
import { hostname } from "node:os";
import process from "node:process";
import { encodeJson, isJsonObject, parseJsonFields, stringOrEmpty } from "../../base/support/json_fields.ts";
import { isUnixTimeMs } from "../../base/support/instant.ts";
import { printable } from "../../base/support/text.ts";
import { ownUserName } from "../../base/support/user_name.ts";

export interface HolderInfo {
  readonly host: string;
  readonly pid: number;
  readonly user: string;
  /** First word of the command, because the rest may contain secrets. */
  readonly argv0: string;
  /** The reason why the user wants the lock, in the user's words. */
  readonly reason: string;
  /** Value that a candidate publishes in an election. */
  readonly value?: string;
  /** Priority of a candidate. A candidate of better priority may ask it to step down. */
  readonly priority?: number;
  /** The priority of a candidate. A candidate with a better priority may ask this one to step down. */
  readonly isChoosing?: boolean;
}

export interface HolderNodeInfo extends HolderInfo {
  /**
   * True for a pool call that is choosing items. The call releases the component's lock as soon as it has chosen some.
   */
  readonly sinceMs: number;
  /** Session timeout of the process, in milliseconds. `break --force` waits this long. */
  readonly sessionTimeoutMs: number;
  /** Warning for an operator: the holder's command cannot be stopped, or runs without a guard. */
  readonly warning?: string;
  readonly revoke: HolderRevocation | null;
}

export interface HolderRevocation {
  readonly by: string;
  readonly reason: string;
}

export const unknownHolder: HolderInfo = { host: "", pid: 0, user: "", argv0: "", reason: "" };

/** Describes this process to other contenders. If this process holds the lock for a script, describes the script. */
export function describeThisHolder({ command, values, script }: {
  readonly command: readonly [string, ...string[]];
  /** The script for which the lock is held, if it is not a child of this process. */
  readonly script?: { readonly pid: number };
  readonly values: { readonly publishCommand: boolean; readonly reason?: string | undefined };
}): HolderInfo {
  return {
    host: hostname(),
    pid: script?.pid ?? process.pid,
    user: ownUserName(),
    argv0: shortenCommand(values.publishCommand ? command.join(" ") : command[0]),
    reason: values.reason ?? "",
  };
}

/**
 * The longest published command, in characters. Every contender reads the command, and a node can store at most a
 * megabyte.
 */
const commandLengthMax = 1000;

function shortenCommand(command: string): string {
  return command.length <= commandLengthMax ? command : `${command.slice(0, commandLengthMax)}…`;
}

export function formatHolderNodeInfo(info: HolderNodeInfo): Uint8Array {
  return encodeJson(info);
}

export function formatNewHolderNodeInfo(info: HolderInfo, session: { readonly timeoutMs: number }): Uint8Array {
  return formatHolderNodeInfo({ ...info, sinceMs: Date.now(), sessionTimeoutMs: session.timeoutMs, revoke: null });
}

/** Parses the data of a contender's or holder's node. A missing or invalid field becomes empty. Never throws. */
export function parseHolderNodeInfo(data: Uint8Array): HolderNodeInfo {
  const fields = parseJsonFields(data);
  const { revoke, value, priority, isChoosing, warning } = fields;
  return {
    host: stringOrEmpty(fields["host"]),
    pid: count(fields["pid"]),
    user: stringOrEmpty(fields["user"]),
    argv0: stringOrEmpty(fields["argv0"]),
    reason: stringOrEmpty(fields["reason"]),
    sinceMs: isUnixTimeMs(fields["sinceMs"]) ? fields["sinceMs"] : 0,
    sessionTimeoutMs: count(fields["sessionTimeoutMs"]),
    ...(typeof value === "string" ? { value } : {}),
    ...(typeof priority === "number" ? { priority } : {}),
    ...(isChoosing === true ? { isChoosing } : {}),
    ...(typeof warning === "string" && warning !== "" ? { warning } : {}),
    revoke: isJsonObject(revoke) ? { by: stringOrEmpty(revoke["by"]), reason: stringOrEmpty(revoke["reason"]) } : null,
  };
}

/** Returns a name such as `root@db1 (pid 812, backup.sh)`. Omits unknown parts. */
export function nameOfHolder(info: HolderInfo): string {
  if (info.host === "" && info.user === "") return "an unknown holder";
  return printable(`${info.user}@${info.host} (pid ${info.pid}${info.argv0 === "" ? "" : `, ${info.argv0}`})`);
}

const count = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0);
