/**
 * Operations of ZooKeeper 3.6 and later, for programs that follow many nodes. The client loads this file when it needs
 * one.
 */
import { type ByteWriter, protocolError } from "../../base/wire/bytes.ts";
import { multiRequestCodec, multiResponseCodec } from "./jute/multi_request.ts";
import { multiReadOperationCode, zooKeeperOperations } from "./jute/zookeeper_operations.ts";
import { isSessionResumable } from "./handshake.ts";
import type { SessionWatches } from "./watches.ts";
import type { NodeData, NodeOperationOptions, Watcher } from "./zookeeper.ts";
import {
  givenUpOperationError,
  operationResponseError,
  type ZooKeeperError,
  type ZooKeeperOperationLabel,
} from "./zookeeper_error.ts";
import type { ZooKeeperClientSession } from "./zookeeper_session.ts";

export interface TreeOperationsOptions {
  readonly session: ZooKeeperClientSession;
  readonly watches: SessionWatches;
  readonly chroot: { readonly toServer: (path: string) => string };
  /** Returns the encoded body of a request. Throws if the body is too long. */
  readonly encode: (label: ZooKeeperOperationLabel, write: (writer: ByteWriter) => void) => Uint8Array;
}

/** The mode of a recursive watch: AddWatchMode.PERSISTENT_RECURSIVE. */
const recursiveMode = 1;

export class TreeOperations {
  readonly #options: TreeOperationsOptions;

  constructor(options: TreeOperationsOptions) {
    this.#options = options;
  }

  async addRecursiveWatch(path: string, watcher: Watcher, { signal }: NodeOperationOptions): Promise<void> {
    const { session, watches, chroot, encode } = this.#options;
    const { code, request } = zooKeeperOperations.addWatch;
    const serverPath = chroot.toServer(path);
    const label = { action: "watch", path, reads: true };
    // Does not send the operation to ClickHouse Keeper, which would close the connection because it does not know the
    // operation.
    if (!isSessionResumable(session)) throw givenUpOperationError(label, "UNIMPLEMENTED");
    await session.request({
      label,
      code,
      body: encode(label, (writer) => request.write(writer, { path: serverPath, mode: recursiveMode })),
      decode(err) {
        if (err !== 0) throw operationResponseError(label, err);
        watches.addRecursive(serverPath, watcher);
      },
    }, signal);
  }

  async getDataOfAll(
    paths: readonly string[],
    { signal }: NodeOperationOptions,
  ): Promise<(NodeData | ZooKeeperError)[]> {
    const { session, chroot, encode } = this.#options;
    const labelOf = (path: string) => ({ action: "read", path, reads: true });
    const label = labelOf(paths[0] ?? "/");
    const reads = paths.map((path) => ({ type: "getData" as const, path: chroot.toServer(path), watch: false }));
    const results = await session.request({
      label,
      code: multiReadOperationCode,
      body: encode(label, (writer) => multiRequestCodec.write(writer, reads)),
      decode(err, reader) {
        if (err !== 0) throw operationResponseError(label, err);
        return multiResponseCodec.read(reader);
      },
    }, signal);
    return paths.map((path, index) => {
      const result = results[index];
      if (result?.type === "getData") return { data: result.data ?? new Uint8Array(0), stat: result.stat };
      if (result?.type === "error") return operationResponseError(labelOf(path), result.err);
      throw protocolError(`The server returned ${results.length} results for ${paths.length} reads`);
    });
  }
}
