/**
 * Checks that arguments and variables are UTF-8. The runtime reads other bytes as U+FFFD, so two different names would become the same
 * lock, client or store. Only the arguments of a command to run may have other bytes; they are passed on unchanged.
 */
import { isUnreadableVariable, unreadableArgument } from "../src/process/spawn/raw_arguments.ts";
import { type SettingTable, variableOf } from "../src/config/setting.ts";
import { BatonError } from "../src/errors.ts";

/** `args` are the last arguments of this process; the last `passedOn` of them go to a command unchanged. Throws USAGE. */
export function refuseUnreadableArgs(args: readonly string[], passedOn: number): void {
  const found = unreadableArgument(args);
  if (found === null || found.index >= args.length - passedOn) return;
  const { index, bytes } = found;
  throw new BatonError(
    "USAGE",
    bytes === null
      ? `Cannot use ${JSON.stringify(args[index])}: without /proc, U+FFFD and invalid UTF-8 look the same`
      : `Cannot use "${escaped(bytes)}": it is not valid UTF-8; only the command after -- may have such arguments`,
  );
}

/** Checks the variables of settings without a flag on the command line. Throws CONFIG; the value is not printed, as it may be a secret. */
export function refuseUnreadableVariables(
  settings: SettingTable,
  { flags, env }: {
    readonly flags: ReadonlyMap<string, string>;
    readonly env: Readonly<Record<string, string | undefined>>;
  },
): void {
  for (const [name, { key }] of Object.entries(settings)) {
    if (key === undefined || flags.has(name)) continue;
    const variable = variableOf(key);
    const value = env[variable];
    if (value !== undefined && isUnreadableVariable(variable, value)) {
      throw new BatonError("CONFIG", `${variable}: the value is not valid UTF-8`);
    }
  }
}

function escaped(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x5c && byte !== 0x22;
    return isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  }).join("");
}
