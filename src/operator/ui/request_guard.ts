/**
 * Decides whether an HTTP request may load the page, read its data, or act. Other sites can send requests through an
 * operator's browser, and other users of this machine can connect directly; neither may read or act. The page uses a
 * token and no cookie, because all ports of a host share cookies. Owns the counter of wrong tokens.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../base/support/clock.ts";

/** The purpose of a request: the page without data, the data, or an action. */
export type RequestAccess = "page" | "read" | "act";

export interface GuardedRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface RequestRefusal {
  readonly status: 401 | 403 | 405 | 415 | 421 | 429;
  readonly why: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RequestGuardOptions {
  /** Names under which a browser reaches this program, without ports, in lower case: `localhost`, `[::1]`. */
  readonly hosts: ReadonlySet<string>;
  readonly readToken: string;
  /** The token for actions, which may also read; null if there are no actions. */
  readonly actToken: string | null;
  readonly clock: Clock;
}

/** Maximum number of wrong tokens within `windowMs`. Further wrong tokens are answered with 429. */
export const wrongTokensMax = 10;
const windowMs = 60_000;

export class RequestGuard {
  readonly #options: RequestGuardOptions;
  readonly #wrongTokensMs: number[] = [];

  constructor(options: RequestGuardOptions) {
    this.#options = options;
  }

  /** Returns the refusal, or null if the request is allowed. */
  check(request: GuardedRequest, access: RequestAccess): RequestRefusal | null {
    return this.#checkHost(request) ?? checkMethod(request, access) ?? checkSite(request, access) ??
      (access === "page" ? null : this.#checkToken(request, access));
  }

  /** Returns true if the request has the token for actions. */
  mayAct({ headers }: GuardedRequest): boolean {
    return isToken(headers["authorization"], this.#options.actToken);
  }

  /**
   * Prevents DNS rebinding: another site's name may resolve to this machine. Its requests then have the same origin,
   * and only the Host header reveals the name. The port is ignored, because it may belong to a tunnel.
   */
  #checkHost({ headers }: GuardedRequest): RequestRefusal | null {
    const name = textOf(headers["host"]).toLowerCase().replace(/:\d+$/, "");
    if (this.#options.hosts.has(name)) return null;
    const why = `This page is not served under the name "${name}"; if it is one of this machine, use --host-name`;
    return { status: 421, why };
  }

  #checkToken({ headers }: GuardedRequest, access: "read" | "act"): RequestRefusal | null {
    const { readToken, actToken } = this.#options;
    const given = headers["authorization"];
    if (isToken(given, actToken)) return null;
    if (isToken(given, readToken)) {
      if (access === "read") return null;
      const why = actToken === null
        ? "baton ui was started without --allow-actions"
        : "This link is for reading; actions need the other one";
      return { status: 403, why };
    }
    return this.#countWrongToken();
  }

  /**
   * Counts a wrong token. Requests with the right token are never limited; otherwise any user of this machine could
   * lock out the operator.
   */
  #countWrongToken(): RequestRefusal {
    const nowMs = this.#options.clock.now();
    const times = this.#wrongTokensMs;
    while (times.length > 0 && nowMs - (times[0] ?? nowMs) >= windowMs) times.shift();
    if (times.length < wrongTokensMax) {
      times.push(nowMs);
      const why = "The token is missing or wrong: open the link that baton ui printed, or enter the token";
      return { status: 401, why, headers: { "www-authenticate": "Bearer" } };
    }
    const seconds = Math.ceil((windowMs - (nowMs - (times[0] ?? nowMs))) / 1000);
    return {
      status: 429,
      why: "There were too many requests with a wrong token",
      headers: { "retry-after": String(seconds) },
    };
  }
}

function checkMethod({ method, headers }: GuardedRequest, access: RequestAccess): RequestRefusal | null {
  if (access !== "act") {
    if (method === "GET" || (method === "HEAD" && access === "page")) return null;
    return { status: 405, why: "Only GET", headers: { allow: "GET" } };
  }
  if (method !== "POST") return { status: 405, why: "Only POST", headers: { allow: "POST" } };
  // A form of another site can send only three content types, and application/json is not one of them.
  const type = textOf(headers["content-type"]).toLowerCase().replace(/\s*;.*$/, "");
  return type === "application/json" ? null : { status: 415, why: "The body must be application/json" };
}

/** Rejects a request that a browser sends for another site. Other programs send neither of the headers. */
function checkSite({ headers }: GuardedRequest, access: RequestAccess): RequestRefusal | null {
  const refusal: RequestRefusal = { status: 403, why: "A page of another site has sent this request" };
  const origin = headers["origin"];
  const host = textOf(headers["host"]).toLowerCase();
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return refusal;
  const site = headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin") return null;
  // A link or a typed address may open the page, which has no data. The page's own requests have the same origin.
  const isNavigation = headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
  return access === "page" && isNavigation ? null : refusal;
}

const textOf = (header: string | readonly string[] | undefined): string => (typeof header === "string" ? header : "");

const digestOf = (text: string) => createHash("sha256").update(text).digest();

/** Compares in constant time, so that response times reveal nothing. */
function isToken(header: string | readonly string[] | undefined, token: string | null): boolean {
  const given = /^Bearer +(\S+)$/i.exec(textOf(header))?.[1];
  return token !== null && given !== undefined && timingSafeEqual(digestOf(given), digestOf(token));
}
