/** `/healthz` and `/metrics` by HTTP, for those who watch a role. Owns the listener and its connections. */
import { rmSync } from "node:fs";
import { BatonError, messageOf } from "../errors.ts";
import { clearSocketPath } from "../sockets/clear_socket_path.ts";
import { type Address, type Connection, formatAddress, type Listener } from "../sockets/connection.ts";
import { listen } from "../sockets/listen.ts";
import { parseListenAddress } from "../sockets/parse_address.ts";
import { whyNotListening } from "../sockets/why_not_listening.ts";
import { abortable } from "../support/abort.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { type Metric, metricsContentType, metricsText } from "./metrics_text.ts";
import { plainText, StatusConnection, type StatusRequest, type StatusResponse } from "./status_connection.ts";

export interface StatusSource {
  /** Null when all is well; else why it is not, in a sentence. */
  readonly health: () => string | null | Promise<string | null>;
  readonly metrics: () => Metric[] | Promise<Metric[]>;
}

export interface StatusPage extends AsyncDisposable {
  /** Where it really listens. */
  readonly address: Address;
  close(): Promise<void>;
}

const connectionsMax = 64;
/** What does not say within this time that it is well is not. */
const healthMsMax = 2000;

/** Listens at `host:port`, `:port` (loopback) or `unix:PATH`. Rejects with USAGE or CANNOT_CREATE. */
export async function serveStatusPage(
  listenAt: string,
  source: StatusSource,
  { clock = systemClock() }: { readonly clock?: Clock } = {},
): Promise<StatusPage> {
  const wanted = parseListenAddress(listenAt);
  if (wanted === null) {
    throw new BatonError(
      "USAGE",
      `Cannot serve /metrics at "${listenAt}": write host:port, :port or unix:/absolute/path`,
    );
  }
  const connections = new Set<StatusConnection>();
  const respond = (request: StatusRequest) => responseTo(request, source, clock);
  const accept = (connection: Connection) => {
    if (connections.size >= connectionsMax) makeRoom(connections);
    const accepted: StatusConnection = new StatusConnection(connection, {
      clock,
      respond,
      closed: () => void connections.delete(accepted),
    });
    connections.add(accepted);
    return accepted;
  };
  let listener: Listener;
  try {
    if (wanted.kind === "unix") await clearSocketPath(wanted.path);
    listener = await listen(wanted, accept, { halfOpen: true });
  } catch (error) {
    const why = await whyNotListening(error, wanted);
    throw new BatonError("CANNOT_CREATE", `Cannot serve /metrics at ${formatAddress(wanted)}: ${why}`, {
      cause: error,
    });
  }
  const close = async () => {
    await listener.close();
    for (const connection of connections) connection.destroy();
    if (wanted.kind === "unix") rmSync(wanted.path, { force: true });
  };
  return { address: listener.address, close, [Symbol.asyncDispose]: close };
}

/** A probe that comes is not to wait for those that came before: the oldest goes that has not sent its request. */
function makeRoom(connections: Set<StatusConnection>): void {
  const [oldest] = connections;
  const gone = [...connections].find(({ hasRequest }) => !hasRequest) ?? oldest;
  if (gone === undefined) return;
  connections.delete(gone); // it may take a moment to leave
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
  const late = new BatonError("IO", `the process or its disk did not answer within ${healthMsMax / 1000} s`);
  const deadline = deadlineAfter(clock, healthMsMax, { reason: () => late });
  try {
    return await abortable(Promise.resolve(health()), deadline.signal);
  } catch (thrown) {
    if (thrown === late) return late.message;
    throw thrown;
  } finally {
    deadline.cancel();
  }
}
