/** Defines the options of commands that send messages by HTTP. */
import { addOriginToErrors } from "../../src/base/config/resolve_settings.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { type SettingValueType, textType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import { HttpClient } from "../../src/base/http/http_client.ts";
import { chooseHttpProxy } from "../../src/base/http/proxy_choice.ts";
import type { HttpRequestTarget } from "../../src/base/http/request_target.ts";
import { TlsFiles } from "../../src/base/sockets/tls_files.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { Log } from "../../src/base/support/log.ts";
import type { CommandCall } from "../command.ts";

export const httpClientSettings = {
  follow: toggleSetting("--follow", {
    help: "follow the redirections 301, 302 and 303, too: 301 and 302 with the same method and body, 303 by GET",
  }),
  urlCa: flagSetting("--url-ca", textType("file"), {
    once: true,
    help: "PEM file with the authorities to trust for https, instead of the system's; read for each new " +
      "connection",
  }),
  urlCert: flagSetting("--url-cert", textType("file"), {
    once: true,
    help: "PEM file with a client certificate for https; another host to which a redirection leads does not get it",
  }),
  urlKey: flagSetting("--url-key", textType("file"), { once: true, help: "PEM file with its private key" }),
} satisfies SettingTable;

/** A list of headers, one for each flag. Commas and spaces in the value belong to the header. */
const headersType: SettingValueType<readonly string[]> = {
  placeholder: "name:value",
  fileType: "strings",
  joint: "\0",
  parse: (written) => written.split("\0"),
  format: (values) => values.join("\0"),
};

export const httpRequestSettings = {
  method: flagSetting("--method", textType("method"), {
    help: "HTTP method for messages without their own; it must have a body",
    default: "POST",
  }),
  headers: flagSetting("-H, --header", headersType, {
    once: true,
    basic: true,
    help: "a header for --url, with its value as it is; may be repeated; headers of a message override it",
  }),
  ...httpClientSettings,
} satisfies SettingTable;

/**
 * Throws USAGE if an option needs a URL and there is none. `command` names the command in the error. If `sendsOwn` is
 * true, messages that have a URL of their own are sent, too.
 */
export function checkHttpOptions(
  command: string,
  url: string | undefined,
  given: ReadonlyMap<string, unknown>,
  { sendsOwn = false }: { readonly sendsOwn?: boolean } = {},
): void {
  if (url !== undefined) return;
  for (const [name, { flag }] of Object.entries(httpRequestSettings)) {
    if (!given.has(name) || (sendsOwn && name in httpClientSettings)) continue;
    throw new BatonError("USAGE", `${command}: ${flag} needs --url`);
  }
}

/**
 * Opens the HTTP client of a command, which the caller closes. Reads the TLS files immediately, so that mistakes are
 * reported early, and again for new connections. `places` are the destinations of requests. Throws USAGE for invalid
 * files, or CONFIG for environment variables.
 */
export function openHttpClient(
  { values, sources, io }: Pick<CommandCall<typeof httpClientSettings>, "values" | "sources" | "io">,
  { places, log = () => {} }: { readonly places: readonly HttpRequestTarget[]; readonly log?: Log },
): HttpClient {
  const settingNames = { ca: "urlCa", cert: "urlCert", key: "urlKey" } as const;
  const tls = new TlsFiles({ ca: values.urlCa, cert: values.urlCert, key: values.urlKey }, {
    at: (name, act) => addOriginToErrors(settingNames[name], httpClientSettings[settingNames[name]], sources, act),
    warn: (text) => log("warning", "tls", text),
  });
  for (const { origin } of places) chooseHttpProxy(origin, io.env);
  return new HttpClient({ clock: systemClock(), env: io.env, tls: () => tls.current() });
}
