/** Serves `/healthz` and `/metrics` over HTTP. Owns the listener and its connections. */
import { rmSync } from "node:fs";
import { BatonError, messageOf } from "../errors.ts";
import { type Address, type Connection, formatAddress } from "../sockets/connection.ts";
import { listen } from "../sockets/listen.ts";
import { parseListenAddress } from "../sockets/parse_address.ts";
import { takeAddress } from "../sockets/take_address.ts";
import { abortable } from "../support/abort.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { type Metric, metricsContentType, metricsText } from "./metrics_text.ts";
import { plainText, StatusConnection, type StatusRequest, type StatusResponse } from "./status_connection.ts";

export interface StatusSource {
  /** Null if the process is healthy; else the reason. */
  readonly health: () => string | null | Promise<string | null>;
  readonly metrics: () => Metric[] | Promise<Metric[]>;
}

export interface StatusPage extends AsyncDisposable {
  /** The actual listen address. */
  readonly address: Address;
  close(): Promise<void>;
}

const connectionsMax = 64;
/** A process that does not report its health within this time counts as unhealthy. */
const healthMsMax = 2000;

/** Listens on `host:port`, `:port` (loopback) or `unix:PATH`. Rejects with USAGE or CANNOT_CREATE. */
export async function serveStatusPage(
  listenAt: string,
  source: StatusSource,
  { clock = systemClock() }: { readonly clock?: Clock } = {},
): Promise<StatusPage> {
  const address = parseListenAddress(listenAt);
  if (address === null) {
    throw new BatonError(
      "USAGE",
      `Cannot serve /metrics on "${listenAt}": write host:port, :port or unix:/absolute/path`,
    );
  }
  const connections = new Set<StatusConnection>();
  const respond = (request: StatusRequest) => responseTo(request, source, clock);
  const accept = (connection: Connection) => {
    if (connections.size >= connectionsMax) closeOldestIdle(connections);
    const accepted: StatusConnection = new StatusConnection(connection, {
      clock,
      respond,
      closed: () => void connections.delete(accepted),
    });
    connections.add(accepted);
    return accepted;
  };
  const action = `serve /metrics on ${formatAddress(address)}`;
  const listener = await takeAddress(address, () => listen(address, accept, { halfOpen: true }), { action });
  const close = async () => {
    await listener.close();
    for (const connection of connections) connection.destroy();
    if (address.kind === "unix") rmSync(address.path, { force: true });
  };
  return { address: listener.address, close, [Symbol.asyncDispose]: close };
}

/** Closes the oldest connection without a request, so that a new request does not wait. */
function closeOldestIdle(connections: Set<StatusConnection>): void {
  const [oldest] = connections;
  const gone = [...connections].find(({ hasRequest }) => !hasRequest) ?? oldest;
  if (gone === undefined) return;
  connections.delete(gone); // closing may take a moment
  gone.destroy();
}

async function responseTo(
  { method, path }: StatusRequest,
  { health, metrics }: StatusSource,
  clock: Clock,
): Promise<StatusResponse> {
  const plain = (status: StatusResponse["status"], text: string) => ({ status, type: plainText, text });
  try {
    if (method !== "GET" && method !== "HEAD") return plain(405, "Only GET and HEAD\n");
    if (path === "/healthz") {
      const why = await healthInTime(health, clock);
      return why === null ? plain(200, "ok\n") : plain(503, `${why}\n`);
    }
    if (path === "/metrics") return { status: 200, type: metricsContentType, text: metricsText(await metrics()) };
    return plain(404, "There is /healthz and /metrics\n");
  } catch (thrown) {
    return plain(500, `${messageOf(thrown)}\n`);
  }
}

async function healthInTime(health: StatusSource["health"], clock: Clock): Promise<string | null> {
  const late = new BatonError("IO", `the process or its disk did not respond within ${healthMsMax / 1000} s`);
  using deadline = deadlineAfter(clock, healthMsMax, { reason: () => late });
  try {
    return await abortable(Promise.resolve(health()), deadline.signal);
  } catch (thrown) {
    if (thrown === late) return late.message;
    throw thrown;
  }
}
