/** Removes credentials in headers and URLs from messages that leave the store. The stored message keeps them. */
import { addOriginToErrors, type ConfigSources } from "../../base/config/resolve_settings.ts";
import { retryRedactSettings } from "../settings/retry_settings.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { BatonError } from "../../base/errors.ts";
import type { MessageHead } from "../queue/stored_message.ts";

export const redactedPlaceholder = "[redacted]";

/** Headers that are credentials (RFC 9110, 11.6.2 and 11.7.2; RFC 6265). */
export const secretHeaders = ["Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie"] as const;

/** The headers and query parameters to redact, in lower case; null to redact nothing. */
export type Redaction = {
  readonly headers: ReadonlySet<string>;
  readonly parameters: ReadonlySet<string>;
} | null;

/**
 * Returns a redaction of `secretHeaders`, `headers` and query `parameters`. Throws USAGE for an invalid header name.
 */
export function makeRedaction(headers: readonly string[], parameters: readonly string[]): NonNullable<Redaction> {
  for (const name of headers) {
    if (/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) continue;
    throw new BatonError("USAGE", `"${name}" is not a valid header name`);
  }
  const names = (all: readonly string[]) => new Set(all.map((name) => name.toLowerCase()));
  return { headers: names([...secretHeaders, ...headers]), parameters: names(parameters) };
}

export function configuredRedaction(
  values: SettingValues<typeof retryRedactSettings>,
  sources: ConfigSources,
): Redaction {
  const { retryRedact, retryRedactHeaders = [], retryRedactQuery = [] } = values;
  const redaction = addOriginToErrors("retryRedactHeaders", retryRedactSettings.retryRedactHeaders, sources, () => {
    return makeRedaction(retryRedactHeaders, retryRedactQuery);
  });
  return retryRedact === "none" ? null : redaction;
}

export function redactHead(head: MessageHead, redaction: Redaction): MessageHead {
  if (redaction === null) return head;
  if (head.kind === "command") {
    return { ...head, argv: head.argv === null ? null : head.argv.map((word) => redactUrls(word, redaction)) };
  }
  return {
    ...head,
    path: redactQuery(head.path, redaction),
    headers: head.headers.map(([name, value]) => {
      return [
        name,
        redaction.headers.has(name.toLowerCase()) ? redactedPlaceholder : redactUrls(value, redaction),
      ] as const;
    }),
  };
}

/** Returns an error message without credentials: it may contain a URL with them. */
export function redactText(text: string | null, redaction: Redaction): string | null {
  return text === null || redaction === null ? text : redactUrls(text, redaction);
}

/** Redacts user, password and query parameters of every URL in a text, such as a Referer or a command's arguments. */
function redactUrls(text: string, redaction: NonNullable<Redaction>): string {
  return text.replaceAll(/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>]+/gi, (url) => {
    // The user information ends at the last @ of the authority (RFC 3986, 3.2.1).
    const named = url.replace(/^([^:]+:\/\/)[^/?#]*@/, `$1${redactedPlaceholder}@`);
    return redactQuery(named, redaction);
  });
}

function redactQuery(url: string, { parameters }: NonNullable<Redaction>): string {
  if (parameters.size === 0) return url;
  const [, before = url, query = null, fragment = ""] = /^([^?#]*)\?([^#]*)(#.*)?$/s.exec(url) ?? [];
  if (query === null) return url;
  const pairs = query.split(/([&;])/).map((pair) => {
    const [name = "", ...value] = pair.split("=");
    return value.length > 0 && parameters.has(decodeParameterName(name)) ? `${name}=${redactedPlaceholder}` : pair;
  });
  return `${before}?${pairs.join("")}${fragment}`;
}

function decodeParameterName(name: string): string {
  const spaced = name.replaceAll("+", " ");
  try {
    return decodeURIComponent(spaced).toLowerCase();
  } catch {
    return spaced.toLowerCase();
  }
}
