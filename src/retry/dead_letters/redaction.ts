/** What of a message is left out where it leaves the store: credentials in headers and URLs. Redelivery does not use it. Pure. */
import { BatonError } from "../../errors.ts";
import type { MessageHead } from "../queue/stored_message.ts";

/** In the place of a value. */
export const redacted = "[redacted]";

/** Headers that are credentials (RFC 9110, 11.6.2 and 11.7.2; RFC 6265). */
export const secretHeaders = ["Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie"] as const;

/** Names in lower case. Null: nothing is left out. */
export type Redaction = {
  readonly headers: ReadonlySet<string>;
  readonly parameters: ReadonlySet<string>;
} | null;

/** The headers above and these, and these query parameters. Throws USAGE for what cannot be a header's name. */
export function redactionOf(headers: readonly string[], parameters: readonly string[]): NonNullable<Redaction> {
  for (const name of headers) {
    if (/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) continue;
    throw new BatonError("USAGE", `"${name}" is not the name of a header`);
  }
  const names = (all: readonly string[]) => new Set(all.map((name) => name.toLowerCase()));
  return { headers: names([...secretHeaders, ...headers]), parameters: names(parameters) };
}

/** The head as others may see it. */
export function redactedHead(head: MessageHead, redaction: Redaction): MessageHead {
  if (redaction === null) return head;
  if (head.kind === "command") {
    return { ...head, argv: head.argv === null ? null : head.argv.map((word) => redactedUrls(word, redaction)) };
  }
  return {
    ...head,
    path: redactedQuery(head.path, redaction),
    headers: head.headers.map(([name, value]) => {
      return [name, redaction.headers.has(name.toLowerCase()) ? redacted : redactedUrls(value, redaction)] as const;
    }),
  };
}

/** What went wrong, in words that may name a URL. */
export function redactedText(text: string | null, redaction: Redaction): string | null {
  return text === null || redaction === null ? text : redactedUrls(text, redaction);
}

/** Every URL in a text, as in a Referer or in a command's words: user, password and query parameters. */
function redactedUrls(text: string, redaction: NonNullable<Redaction>): string {
  return text.replaceAll(/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>]+/gi, (url) => {
    // RFC 3986, 3.2.1: what stands before the last @ of the authority.
    const named = url.replace(/^([^:]+:\/\/)[^/?#]*@/, `$1${redacted}@`);
    return redactedQuery(named, redaction);
  });
}

function redactedQuery(url: string, { parameters }: NonNullable<Redaction>): string {
  if (parameters.size === 0) return url;
  const [, before = url, query = null, fragment = ""] = /^([^?#]*)\?([^#]*)(#.*)?$/s.exec(url) ?? [];
  if (query === null) return url;
  const pairs = query.split(/([&;])/).map((pair) => {
    const [name = "", ...value] = pair.split("=");
    return value.length > 0 && parameters.has(decoded(name)) ? `${name}=${redacted}` : pair;
  });
  return `${before}?${pairs.join("")}${fragment}`;
}

/** A parameter's name as a server reads it, in lower case. */
function decoded(name: string): string {
  const spaced = name.replaceAll("+", " ");
  try {
    return decodeURIComponent(spaced).toLowerCase();
  } catch {
    return spaced.toLowerCase();
  }
}
