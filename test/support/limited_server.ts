/**
 * A keeper behind a proxy that makes it a server with fewer operations:
 * - clickhouse: ClickHouse Keeper as it was before the end of 2025. Closes the connection at an operation that it does
 *   not know, gives each session a password of zeros, and opens a new session where a client asks for an old one
 *   (KeeperTCPHandler, ClickHouse issue 116690).
 * - zookeeper34: ZooKeeper 3.4. Answers such an operation with UNIMPLEMENTED, a transaction that contains it with
 *   MARSHALLINGERROR, and closes the connection; sessions can be resumed (UnimplementedRequestProcessor,
 *   PrepRequestProcessor).
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { encodeLengthFrame } from "../../src/base/wire/length_frame.ts";
import { multiRequestCodec } from "../../src/protocols/zookeeper/jute/multi_request.ts";
import { connectRequestCodec, connectResponseCodec } from "../../src/protocols/zookeeper/jute/session_frames.ts";
import { zooKeeperErrorNumbers } from "../../src/protocols/zookeeper/jute/zookeeper_error_codes.ts";
import { ReplyHeader } from "../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { ByteReader } from "../../src/base/wire/bytes.ts";
import { type FrameInfo, FrameObserver } from "./frame_observer.ts";
import { startKeeperProcess } from "./keeper_server.ts";
import type { BackendOptions, RunningBackend } from "./backend.ts";

export type LimitedKind = "clickhouse" | "zookeeper34";

/** Operations that both lack, and setWatches, which ClickHouse Keeper lacks. */
const unknownOperations: ReadonlySet<string> = new Set([
  ...["create2", "createContainer", "createTtl", "removeWatches", "checkWatches", "setWatches2", "addWatch"],
  ...["getEphemerals", "getAllChildrenNumber", "whoAmI", "multiRead"],
]);

export class LimitedServer implements AsyncDisposable {
  readonly kind: LimitedKind;
  /** As for `--servers`. */
  readonly servers: string;
  /** The keeper, which knows all operations. */
  readonly keeper: RunningBackend;
  /** The operations that were refused. */
  readonly refused: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  static async start(kind: LimitedKind, options: BackendOptions = {}): Promise<LimitedServer> {
    const keeper = await startKeeperProcess(options);
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return new LimitedServer(kind, keeper, server);
  }

  private constructor(kind: LimitedKind, keeper: RunningBackend, server: Server) {
    this.kind = kind;
    this.keeper = keeper;
    this.#server = server;
    this.servers = `127.0.0.1:${(server.address() as { port: number }).port}`;
    server.on("connection", (client: Socket) => this.#accept(client));
  }

  /** Resets all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
    await this.keeper.close();
  }

  #accept(client: Socket): void {
    const [host = "", port = ""] = this.keeper.servers.split(":");
    const upstream = connect({ host, port: Number(port) });
    const observer = new FrameObserver();
    let unanswered = 0;
    let refusal: Uint8Array | "close" | null = null;
    const finish = () => {
      if (refusal === null || unanswered > 0) return;
      if (refusal !== "close") client.write(refusal);
      client.end();
      upstream.destroy();
    };
    for (const [socket, other] of [[client, upstream], [upstream, client]] as const) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        if (refusal === null) other.destroy();
      });
    }
    client.on("data", (chunk: Uint8Array) => {
      for (const { bytes, info } of observer.requests(new Uint8Array(chunk))) {
        if (refusal !== null) return; // the server no longer reads
        const name = info === null ? null : this.#unknownIn(info);
        if (info === null || name === null) {
          if (info !== null) unanswered++;
          upstream.write(info?.operation === "connect" ? this.#connectRequest(info) : bytes);
          continue;
        }
        this.refused.push(name);
        refusal = this.kind === "clickhouse" ? "close" : unimplemented(info);
        finish();
      }
    });
    upstream.on("data", (chunk: Uint8Array) => {
      for (const { bytes, info } of observer.replies(new Uint8Array(chunk))) {
        client.write(info?.operation === "connect" ? this.#connectResponse(info) : bytes);
        if (info?.kind === "reply") unanswered--;
      }
      finish();
    });
  }

  /** The operation that the server does not know; null if there is none. */
  #unknownIn({ operation, body }: FrameInfo): string | null {
    if (operation === "setWatches" && this.kind === "clickhouse") return operation;
    if (operation !== "multi") return unknownOperations.has(operation) ? operation : null;
    const requests = multiRequestCodec.read(new ByteReader(body.subarray(8)));
    return requests.find(({ type }) => unknownOperations.has(type))?.type ?? null;
  }

  #connectRequest({ body }: FrameInfo): Uint8Array {
    const request = connectRequestCodec.read(new ByteReader(body));
    const asNew = this.kind === "clickhouse" ? { sessionId: 0n, passwd: new Uint8Array(16) } : {};
    return encodeLengthFrame((writer) => connectRequestCodec.write(writer, { ...request, ...asNew }));
  }

  #connectResponse({ body }: FrameInfo): Uint8Array {
    const response = connectResponseCodec.read(new ByteReader(body));
    const shown = this.kind === "clickhouse" ? { passwd: new Uint8Array(16) } : {};
    return encodeLengthFrame((writer) => connectResponseCodec.write(writer, { ...response, ...shown }));
  }
}

function unimplemented({ operation, xid }: FrameInfo): Uint8Array {
  const { UNIMPLEMENTED, MARSHALLINGERROR } = zooKeeperErrorNumbers;
  const err = operation === "multi" ? MARSHALLINGERROR : UNIMPLEMENTED;
  return encodeLengthFrame((writer) => ReplyHeader.write(writer, { xid, zxid: 0n, err }));
}
