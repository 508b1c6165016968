/** Options of commands that send messages by HTTP. */
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { listType, textType } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";

export const httpRequestSettings = {
  method: setting(textType("method"), {
    flag: "--method",
    help: "HTTP method for messages without their own; it must have a body",
    default: "POST",
  }),
  headers: setting(listType("name:value"), {
    flag: "-H, --header",
    once: true,
    help: "headers for --url; headers of a message override them",
  }),
} satisfies SettingTable;

/** `command`: its name, for the message. Throws USAGE for options of a request without a URL. */
export function checkHttpOptions(
  command: string,
  url: string | undefined,
  given: ReadonlyMap<string, unknown>,
): void {
  for (const [name, flag] of [["method", "--method"], ["headers", "--header"]] as const) {
    if (url !== undefined || !given.has(name)) continue;
    throw new BatonError("USAGE", `${command}: ${flag} needs --url`);
  }
}
