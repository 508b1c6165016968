/**
 * Replaces container nodes, which servers delete when they are empty, with plain nodes on servers that do not support
 * containers. ClickHouse Keeper before mid-2026 closes the connection at a createContainer. ZooKeeper before 3.5
 * answers UNIMPLEMENTED, or MARSHALLINGERROR for a transaction. On such servers the client itself deletes an empty
 * container: after it has deleted a node in the container, and when its session closes.
 */
import { createFlag } from "./jute/zookeeper_operations.ts";
import type {
  MultiRequest,
  MultiResult,
  NodeCreateOptions,
  NodeOperationOptions,
  Stat,
  ZooKeeper,
} from "./zookeeper.ts";

/** Operations that every server knows, with paths without the chroot. Each operation sends its request immediately. */
export interface PlainContainerOperations extends Pick<ZooKeeper, "delete" | "exists" | "multi"> {
  /** Creates a node. Returns its path, including the number of a sequential node. */
  create(path: string, data: Uint8Array, options: NodeCreateOptions): Promise<string>;
}

/**
 * The most containers that a session remembers. At this limit it forgets the oldest container, and never deletes it.
 */
const usedMax = 10_000;

export class PlainContainers {
  readonly #operations: PlainContainerOperations;
  readonly #used = new Set<string>();
  /** Ephemeral nodes of this session. */
  readonly #own = new Set<string>();

  constructor(operations: PlainContainerOperations) {
    this.#operations = operations;
  }

  async create(
    path: string,
    data: Uint8Array,
    options: NodeCreateOptions,
  ): Promise<{ path: string; stat: Stat | null }> {
    const { mode = "persistent", signal } = options;
    const plain = mode === "container" ? "persistent" : mode;
    const created = await this.#operations.create(path, data, { ...options, mode: plain });
    this.#created(created, createFlag[mode]);
    return { path: created, stat: await this.#operations.exists(created, signal === undefined ? {} : { signal }) };
  }

  async multi(requests: readonly MultiRequest[], options: NodeOperationOptions): Promise<MultiResult[]> {
    const sending = this.#operations.multi(requests.map(toPlainRequest), options);
    // Requests the nodes' status together with the transaction, because the caller of a createContainer may need the
    // zxid of its node.
    const stats = requests.map((request) =>
      request.type === "createContainer" ? this.#operations.exists(request.path, options).catch(() => null) : null
    );
    const results = await sending;
    this.#executed(requests, results);
    return await Promise.all(results.map(async (result, index): Promise<MultiResult> => {
      const stat = await stats[index] ?? null;
      return result.type === "create" && stat !== null ? { ...result, type: "createContainer", stat } : result;
    }));
  }

  /** Records that this session uses the node at `path` as a container. */
  use(path: string): void {
    this.#used.delete(path);
    this.#used.add(path);
    const [oldest] = this.#used;
    if (this.#used.size > usedMax && oldest !== undefined) this.#used.delete(oldest);
  }

  #created(path: string, flags: number): void {
    if (flags === createFlag.ephemeral || flags === createFlag.ephemeralSequential) this.#own.add(path);
    else if (flags === createFlag.container) this.use(path);
  }

  /** Called after a node was deleted. Deletes the containers above it that are now empty. */
  deleted(path: string): void {
    this.#own.delete(path);
    for (let above = parentOf(path); this.#used.has(above); above = parentOf(above)) this.#tryDelete(above);
  }

  #executed(requests: readonly MultiRequest[], results: readonly MultiResult[]): void {
    for (const [index, request] of requests.entries()) {
      const result = results[index];
      if (result !== undefined && "path" in result && "flags" in request) this.#created(result.path, request.flags);
    }
    for (const request of requests) if (request.type === "delete") this.deleted(request.path);
  }

  /** Sends requests that delete the session's ephemeral nodes, and then the empty containers, the deepest first. */
  clean(): void {
    if (this.#used.size === 0) return;
    for (const path of this.#own) this.#tryDelete(path);
    const depth = (path: string) => path.split("/").length;
    for (const path of [...this.#used].sort((left, right) => depth(right) - depth(left))) this.#tryDelete(path);
  }

  /** Deletes a container. Ignores errors, because the container may have children or be deleted already. */
  #tryDelete(path: string): void {
    this.#operations.delete(path, -1).catch(() => {});
  }
}

function toPlainRequest(request: MultiRequest): MultiRequest {
  if (request.type === "createContainer") return { ...request, type: "create", flags: createFlag.persistent };
  return request.type === "create2" ? { ...request, type: "create" } : request;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
