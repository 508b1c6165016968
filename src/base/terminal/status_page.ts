/** Serves `/healthz` and `/metrics` over HTTP. */
import { BatonError, errorMessage } from "../errors.ts";
import { type HttpRequest, type HttpResponse, type HttpService, serveHttp } from "../http/serve_http.ts";
import { formatAddress } from "../sockets/connection.ts";
import { parseListenAddress } from "../sockets/parse_address.ts";
import { describeWhoReachesSockets } from "../sockets/socket_reach.ts";
import { rejectOnAbort } from "../support/abort.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import type { Log } from "../support/log.ts";
import { formatMetrics, type Metric, metricsContentType } from "./metrics_text.ts";

export interface StatusPageSource {
  /** Returns the reason why the process is not healthy; null if it is healthy. */
  readonly health: () => string | null | Promise<string | null>;
  readonly metrics: () => Metric[] | Promise<Metric[]>;
}

/** How long a process may take to report its health, in milliseconds, before it counts as unhealthy. */
const healthMsMax = 2000;

/** Listens on `host:port`, `:port` (loopback) or `unix:PATH`. Rejects with USAGE or with CANNOT_CREATE. */
export async function serveStatusPage(
  listenAt: string,
  source: StatusPageSource,
  { clock = systemClock() }: { readonly clock?: Clock } = {},
): Promise<HttpService> {
  const address = parseListenAddress(listenAt);
  if (address === null) {
    throw new BatonError(
      "USAGE",
      `Cannot serve /metrics on "${listenAt}": write host:port, :port or unix:/absolute/path`,
    );
  }
  const action = `serve /metrics on ${formatAddress(address)}`;
  return await serveHttp(address, { clock, action, handle: (request) => responseTo(request, source, clock) });
}

/** Serves the page of a service and logs where it is. Returns null if no page is wanted. */
export async function serveLoggedStatusPage(
  listenAt: string | undefined,
  source: StatusPageSource,
  log: Log,
): Promise<HttpService | null> {
  if (listenAt === undefined) return null;
  const page = await serveStatusPage(listenAt, source);
  const where = describeWhoReachesSockets([page.address], { isProtected: false });
  log("info", "metrics", `/healthz and /metrics are at ${where}`);
  return page;
}

async function responseTo(
  { method, path }: HttpRequest,
  { health, metrics }: StatusPageSource,
  clock: Clock,
): Promise<HttpResponse> {
  if (method !== "GET" && method !== "HEAD") {
    return { status: 405, body: "Only GET and HEAD\n", headers: { allow: "GET, HEAD" } };
  }
  if (path === "/healthz") {
    const why = await healthInTime(health, clock);
    return why === null ? { status: 200, body: "ok\n" } : { status: 503, body: `${why}\n` };
  }
  if (path === "/metrics") {
    return { status: 200, body: formatMetrics(await metrics()), headers: { "content-type": metricsContentType } };
  }
  return { status: 404, body: "The paths are /healthz and /metrics\n" };
}

async function healthInTime(health: StatusPageSource["health"], clock: Clock): Promise<string | null> {
  const late = new BatonError("IO", `the process or its disk did not respond within ${healthMsMax / 1000} s`);
  using deadline = deadlineAfter(clock, healthMsMax, { reason: () => late });
  try {
    return await rejectOnAbort(Promise.resolve(health()), deadline.signal);
  } catch (thrown) {
    return errorMessage(thrown);
  }
}
