/** Who stands behind a node, for people: written into the nodes of contenders and holders, decides nothing. */
import { hostname } from "node:os";
import process from "node:process";
import { isFields, jsonFields, textOf } from "../support/json_fields.ts";
import { isInstant } from "../support/instant.ts";
import { printable } from "../support/text.ts";
import { userName } from "../support/user_name.ts";

export interface HolderInfo {
  readonly host: string;
  readonly pid: number;
  readonly user: string;
  /** The command's first word; the rest may hold secrets. */
  readonly argv0: string;
  /** What the user says it is for. */
  readonly reason: string;
  /** What a candidate of an election offers. */
  readonly value?: string;
  /** Of a candidate: who is better may ask it to step down. */
  readonly priority?: number;
  /** A call of a pool that lists and chooses items: it gives the component's lock back as soon as it has some. */
  readonly isChoosing?: boolean;
}

export interface NodeInfo extends HolderInfo {
  /** The wall clock of its host when it began to wait, or to hold, in Unix milliseconds: for display. */
  readonly sinceMs: number;
  /** T of its session: how long `break --force` has to wait. */
  readonly sessionTimeoutMs: number;
  /** Somebody asks for it back. */
  readonly revoke: Revocation | null;
}

export interface Revocation {
  readonly by: string;
  readonly reason: string;
}

export const unknownHolder: HolderInfo = { host: "", pid: 0, user: "", argv0: "", reason: "" };

/** Describes this process, or the script that it holds for, to other contenders. */
export function holderInfo({ command, values, script }: {
  readonly command: readonly [string, ...string[]];
  /** A script that is not a child of this process. */
  readonly script?: { readonly pid: number };
  readonly values: { readonly publishCommand: boolean; readonly reason?: string | undefined };
}): HolderInfo {
  return {
    host: hostname(),
    pid: script?.pid ?? process.pid,
    user: userName(),
    argv0: shortened(values.publishCommand ? command.join(" ") : command[0]),
    reason: values.reason ?? "",
  };
}

/** The longest published command, in characters: every contender reads it, and a node holds a megabyte at most. */
const commandLengthMax = 1000;

function shortened(command: string): string {
  return command.length <= commandLengthMax ? command : `${command.slice(0, commandLengthMax)}…`;
}

const utf8 = new TextEncoder();

export function formatNodeInfo(info: NodeInfo): Uint8Array {
  return utf8.encode(JSON.stringify(info));
}

/** What can be understood of `data`; the rest is empty. Never throws: it is only for display. */
export function parseNodeInfo(data: Uint8Array): NodeInfo {
  const fields = jsonFields(data);
  const { revoke, value, priority, isChoosing } = fields;
  return {
    host: textOf(fields["host"]),
    pid: count(fields["pid"]),
    user: textOf(fields["user"]),
    argv0: textOf(fields["argv0"]),
    reason: textOf(fields["reason"]),
    sinceMs: isInstant(fields["sinceMs"]) ? fields["sinceMs"] : 0,
    sessionTimeoutMs: count(fields["sessionTimeoutMs"]),
    ...(typeof value === "string" ? { value } : {}),
    ...(typeof priority === "number" ? { priority } : {}),
    ...(isChoosing === true ? { isChoosing } : {}),
    revoke: isFields(revoke) ? { by: textOf(revoke["by"]), reason: textOf(revoke["reason"]) } : null,
  };
}

/** `root@db1:812 (backup.sh)`, as far as known. */
export function nameOfHolder(info: HolderInfo): string {
  if (info.host === "" && info.user === "") return "an unknown holder";
  return printable(`${info.user}@${info.host}:${info.pid}${info.argv0 === "" ? "" : ` (${info.argv0})`}`);
}

const count = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0);
