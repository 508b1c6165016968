/**
 * The command line and the variables have to be UTF-8. The runtime reads other bytes as U+FFFD, and two names that differ
 * in them would become one lock, one client, one store. Only the words of a command that is started as it stands are
 * passed on byte for byte.
 */
import { isUnreadableVariable, unreadableArgument } from "../src/process/spawn/raw_arguments.ts";
import { type SettingTable, variableOf } from "../src/config/setting.ts";
import { BatonError } from "../src/errors.ts";

/** `words` are the last ones of this process, `passedOn` of them go to a command as they are. Throws USAGE. */
export function refuseUnreadableWords(words: readonly string[], passedOn: number): void {
  const found = unreadableArgument(words);
  if (found === null || found.index >= words.length - passedOn) return;
  const { index, bytes } = found;
  throw new BatonError(
    "USAGE",
    bytes === null
      ? `Cannot use ${JSON.stringify(words[index])}: without /proc nothing tells U+FFFD from bytes that are not UTF-8`
      : `Cannot use "${
        escaped(bytes)
      }": it is not valid UTF-8. Only the words of a command after -- may be other bytes`,
  );
}

/** Variables of settings that no flag gives another value. Throws CONFIG; never prints the value, which may be a secret. */
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
