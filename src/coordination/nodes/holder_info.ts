/** Description of the process behind a node: stored in the nodes of contenders and holders, for display only. */
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
  /** First word of the command; the rest may contain secrets. */
  readonly argv0: string;
  /** Purpose, as given by the user. */
  readonly reason: string;
  /** Value of a candidate of an election. */
  readonly value?: string;
  /** Priority of a candidate: a better candidate may ask it to step down. */
  readonly priority?: number;
  /** True for a pool call that lists and chooses items: it releases the component's lock as soon as it has some. */
  readonly isChoosing?: boolean;
}

export interface HolderNodeInfo extends HolderInfo {
  /** Start of the wait, or of the hold, by the wall clock of its host, in Unix milliseconds. */
  readonly sinceMs: number;
  /** Timeout T of its session: the time that `break --force` waits. */
  readonly sessionTimeoutMs: number;
  /** Warning for an operator: the holder's command cannot be stopped, or runs without a guard. */
  readonly warning?: string;
  /** Request to give the lock back, if there is one. */
  readonly revoke: HolderRevocation | null;
}

export interface HolderRevocation {
  readonly by: string;
  readonly reason: string;
}

export const unknownHolder: HolderInfo = { host: "", pid: 0, user: "", argv0: "", reason: "" };

/** Describes this process, or the script that it holds for, to other contenders. */
export function describeThisHolder({ command, values, script }: {
  readonly command: readonly [string, ...string[]];
  /** A script that is not a child of this process. */
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

/** The longest published command, in characters: every contender reads it, and a node holds a megabyte at most. */
const commandLengthMax = 1000;

function shortenCommand(command: string): string {
  return command.length <= commandLengthMax ? command : `${command.slice(0, commandLengthMax)}…`;
}

export function formatHolderNodeInfo(info: HolderNodeInfo): Uint8Array {
  return encodeJson(info);
}

/** Formats the data of a node that a contender or holder creates now. */
export function formatNewHolderNodeInfo(info: HolderInfo, session: { readonly timeoutMs: number }): Uint8Array {
  return formatHolderNodeInfo({ ...info, sinceMs: Date.now(), sessionTimeoutMs: session.timeoutMs, revoke: null });
}

/** Reads the known fields of `data`; the others are empty. Never throws. */
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

/** Returns `root@db1 (pid 812, backup.sh)`, as far as known. */
export function nameOfHolder(info: HolderInfo): string {
  if (info.host === "" && info.user === "") return "an unknown holder";
  return printable(`${info.user}@${info.host} (pid ${info.pid}${info.argv0 === "" ? "" : `, ${info.argv0}`})`);
}

const count = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0);
