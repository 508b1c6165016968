/** `/healthz` and `/metrics` by HTTP, for those who watch a role. Owns the listener and its connections. */
import { createServer, type Server, type ServerResponse } from "node:http";
import { rmSync } from "node:fs";
import { BatonError, messageOf } from "../../errors.ts";
import { type Address, formatAddress } from "../../sockets/connection.ts";
import { parseListenAddress } from "../../sockets/parse_address.ts";
import { whyNotListening } from "../../sockets/why_not_listening.ts";
import { type Metric, metricsContentType, metricsText } from "./metrics_text.ts";

export interface StatusSource {
  /** Null when all is well; else why it is not, in a sentence. */
  readonly health: () => string | null;
  readonly metrics: () => Metric[] | Promise<Metric[]>;
}

export interface StatusPage extends AsyncDisposable {
  /** Where it really listens. */
  readonly address: Address;
  close(): Promise<void>;
}

const connectionsMax = 64;
const requestMsMax = 10_000;
const plainText = "text/plain; charset=utf-8";

/** Listens at `host:port`, `:port` (loopback) or `unix:PATH`. Rejects with USAGE or CANNOT_CREATE. */
export async function serveStatusPage(listen: string, source: StatusSource): Promise<StatusPage> {
  const wanted = parseListenAddress(listen);
  if (wanted === null) {
    throw new BatonError(
      "USAGE",
      `Cannot serve /metrics at "${listen}": write host:port, :port or unix:/absolute/path`,
    );
  }
  const server = createServer({ requestTimeout: requestMsMax, headersTimeout: requestMsMax, keepAliveTimeout: 5000 });
  server.maxConnections = connectionsMax;
  server.on("request", (request, response) => void answer(request.method, request.url, response, source));
  try {
    await listening(server, wanted);
  } catch (error) {
    const why = await whyNotListening(error, wanted);
    throw new BatonError("CANNOT_CREATE", `Cannot serve /metrics at ${formatAddress(wanted)}: ${why}`, {
      cause: error,
    });
  }
  const bound = server.address();
  const address = wanted.kind === "tcp" && bound !== null && typeof bound === "object"
    ? { ...wanted, port: bound.port }
    : wanted;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
      if (wanted.kind === "unix") rmSync(wanted.path, { force: true });
    });
  return { address, close, [Symbol.asyncDispose]: close };
}

function listening(server: Server, address: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    const ready = () => {
      server.off("error", reject);
      server.on("error", () => {}); // of a connection that could not be accepted: whoever watches tries again
      resolve();
    };
    if (address.kind === "unix") server.listen(address.path, ready);
    else server.listen(address.port, address.host, ready);
  });
}

async function answer(
  method: string | undefined,
  url: string | undefined,
  response: ServerResponse,
  { health, metrics }: StatusSource,
): Promise<void> {
  const say = (status: number, type: string, text: string) => {
    response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
    response.end(method === "HEAD" ? "" : text);
  };
  try {
    const [path] = (url ?? "").split("?");
    if (method !== "GET" && method !== "HEAD") say(405, plainText, "Only GET and HEAD\n");
    else if (path === "/healthz") {
      const why = health();
      say(why === null ? 200 : 503, plainText, `${why ?? "ok"}\n`);
    } else if (path === "/metrics") say(200, metricsContentType, metricsText(await metrics()));
    else say(404, plainText, "There is /healthz and /metrics\n");
  } catch (thrown) {
    say(500, plainText, `${messageOf(thrown)}\n`);
  }
}
