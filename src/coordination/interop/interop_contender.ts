/**
 * One contender for a lock of Curator or kazoo programs. It creates a node in the queue of these programs and waits
 * until no node is ahead. Each step begins with a read, so that a step can be repeated after any failure.
 * interop_queue_position.ts decides.
 */
import type { MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { newGuid } from "../../base/support/guid.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { ContenderWaits } from "../nodes/session_waits.ts";
import { createContainerRequest } from "../nodes/create_nodes.ts";
import { ancestorNodePaths } from "../nodes/node_paths.ts";
import type { CommonLockContenderOptions, GrantedLockContender, LockContenderOutcome } from "../lock/lock_contender.ts";
import { formatNewHolderNodeInfo, type HolderRevocation, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import {
  deleteNodeIfThere,
  nullIfNoNode,
  nullIfRefused,
  readAfterOwnWrites,
  readChildNames,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import {
  interopLockPath,
  interopNodeNaming,
  type InteropRecipe,
  isCuratorRevocation,
  parseInteropNode,
} from "../nodes/interop_node_names.ts";
import { type InteropQueuePosition, interopQueuePosition, parseInteropQueue } from "./interop_queue_position.ts";
import { acquireLockByProtocol, type CommonAcquireLockOptions } from "../lock/acquire_lock.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";
import { readInteropLockStatus } from "./interop_status.ts";

interface InteropContenderOptions extends CommonLockContenderOptions {
  readonly recipe: InteropRecipe;
}

class InteropContender {
  readonly #zk: ZooKeeper;
  readonly #options: InteropContenderOptions;
  readonly #waits: ContenderWaits;
  #guid = "";
  /** The name of this contender's node in the queue; null until the node was seen there. */
  #node: string | null = null;
  /** True after a response was lost. The request may still be executed. */
  #mustSettle = false;
  #isBusy = false;

  /** Throws USAGE if the recipe does not have the requested mode. */
  constructor(zk: ZooKeeper, options: InteropContenderOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#waits = new ContenderWaits(zk.session, options.clock);
    this.#nodePrefix(""); // throws if the recipe does not have the mode
  }

  get guid(): string {
    return this.#guid;
  }

  /** True if the last response showed other contenders ahead of this one. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /**
   * Runs until the contender is granted, busy or stopped. Rejects with CONFIG, or when the server permanently refuses a
   * request, or when the session ends.
   */
  async run(): Promise<LockContenderOutcome> {
    const outcome = await this.#waits.repeat(async () => {
      if (this.#guid === "") await this.#contend();
      return await this.#advance();
    }, () => {
      this.#mustSettle = true;
    });
    return outcome ?? { do: "stopped" };
  }

  /** Deletes this contender's node. Resolves when the node is deleted or the session has ended. */
  async leave(): Promise<void> {
    this.#waits.stop();
    const guid = this.#guid; // `run` may clear it, and nodes of other programs may have no guid
    if (guid === "") return;
    await retryOnConnectionLoss(this.#zk, async () => {
      const children = await this.#listChildrenAfterOwnWrites();
      const own = children.find((name) => parseInteropNode(this.#options.recipe, name)?.guid === guid) ?? this.#node;
      if (own !== null) await deleteNodeIfThere(this.#zk, this.#childPath(own));
    }, { clock: this.#options.clock, limitMs: Infinity })
      .catch(() => {}); // the session has ended, or the ACL has changed: no retry can help
  }

  /** Reads the queue and acts on it. Returns null when the queue must be read again. */
  async #advance(): Promise<LockContenderOutcome | null> {
    const children = this.#mustSettle ? await this.#listChildrenAfterOwnWrites() : await this.#listChildren();
    this.#mustSettle = false;
    const position = this.#positionIn(children);
    this.#isBusy = position.kind !== "held" && position.kind !== "gone";
    switch (position.kind) {
      case "gone":
        // Another server of the ensemble may still have the node.
        if (this.#node !== null) await deleteNodeIfThere(this.#zk, this.#childPath(this.#node));
        this.#guid = "";
        return null;
      case "held":
        return await this.#claim(position.node);
    }
    this.#node = position.node;
    if (!this.#options.waits) return { do: "busy" };
    this.#options.onQueued();
    const armed = this.#waits.arm();
    // Does not use `exists`, which would leave a watch even if the node is gone.
    const ahead = await nullIfNoNode(this.#zk.getData(this.#childPath(position.watch), { watch: armed.event.set }));
    if (ahead !== null) await this.#waits.waitFor(armed);
    return null;
  }

  #positionIn(children: readonly string[]): InteropQueuePosition {
    const { recipe, path } = this.#options;
    return interopQueuePosition({ recipe, path: path.lock, children }, this.#guid);
  }

  /**
   * Returns the grant of the first node. The grant's token is the zxid that created the node; these zxids increase
   * along the queue.
   */
  async #claim(node: string): Promise<GrantedLockContender | null> {
    const stat = await this.#zk.exists(this.#childPath(node));
    if (stat === null) return null;
    if (stat.ephemeralOwner !== this.#zk.session.id) {
      throw new BatonError(
        "PROTOCOL",
        `"${this.#childPath(node)}" belongs to another session, although its name was chosen by this one`,
      );
    }
    return {
      do: "granted",
      guid: this.#guid,
      node,
      slot: null,
      limit: null,
      queueNode: null,
      aheadMs: 0,
      token: stat.czxid,
    };
  }

  /**
   * Creates a node in the queue. Reads the children first: in a queue of another recipe, the node could disturb other
   * programs. Throws CONFIG.
   */
  async #contend(): Promise<void> {
    const { recipe, path, acl, info } = this.#options;
    parseInteropQueue({ recipe, path: path.lock, children: await this.#listChildren() });
    this.#guid = newGuid();
    this.#node = null;
    const prefix = this.#childPath(this.#nodePrefix(this.#guid));
    const data = formatNewHolderNodeInfo(info, this.#zk.session);
    for (let tries = 0; !this.#waits.isStopped; tries++) {
      if (interopNodeNaming(this.#options.recipe).makesContainers) this.#zk.usesContainer?.(this.#options.path.lock);
      const creating = this.#zk.create(prefix, data, { mode: "ephemeralSequential", acl });
      if (await nullIfNoNode(creating) !== null) return;
      const requests: MultiRequest[] = [
        ...await this.#createMissingRequests(),
        { type: "create", path: prefix, data, acl, flags: createFlag.ephemeralSequential },
      ];
      // Reads again after a refusal: other clients may create the same nodes, and the server may remove empty
      // containers.
      if (await nullIfRefused(this.#zk.multi(requests), "NONODE", "NODEEXISTS") !== null) return;
      if (tries > 0) await this.#makeFirst();
      if (tries > 3) await this.#waits.pause(tries);
    }
  }

  /**
   * Creates the topmost node by itself. The client then also creates a missing chroot, which is not possible in a
   * transaction.
   */
  async #makeFirst(): Promise<void> {
    const { path, recipe, acl } = this.#options;
    const mode = interopNodeNaming(recipe).makesContainers ? "container" : "persistent";
    const first = ancestorNodePaths(path.lock)[0] ?? path.lock;
    await nullIfRefused(this.#zk.create(first, new Uint8Array(), { mode, acl }), "NODEEXISTS");
  }

  /** Returns the requests that create the lock's node and the nodes above it as the recipe's own library does. */
  async #createMissingRequests(): Promise<MultiRequest[]> {
    const { path, recipe, acl } = this.#options;
    const above = [...ancestorNodePaths(path.lock), path.lock];
    const stats = await Promise.all(above.map((node) => this.#zk.exists(node)));
    return above.filter((_, index) => stats[index] === null).map((node) =>
      interopNodeNaming(recipe).makesContainers
        ? createContainerRequest(node, acl)
        : { type: "create", path: node, data: new Uint8Array(), acl, flags: createFlag.persistent }
    );
  }

  #nodePrefix(guid: string): string {
    const { recipe, mode } = this.#options;
    const { prefix, title } = interopNodeNaming(recipe);
    if (mode === "exclusive") return prefix.exclusive(guid);
    if (mode === "shared" && prefix.shared !== null) return prefix.shared(guid);
    throw new BatonError("USAGE", `${title} has no mode ${mode}`);
  }

  #childPath(name: string): string {
    return `${this.#options.path.lock}/${name}`;
  }

  #listChildren(): Promise<readonly string[]> {
    return readChildNames(this.#zk, this.#options.path.lock);
  }

  #listChildrenAfterOwnWrites(): Promise<readonly string[]> {
    return readAfterOwnWrites(this.#zk, this.#options.path.lock, () => this.#listChildren());
  }
}

export interface AcquireInteropOptions extends CommonAcquireLockOptions {
  /** The recipe of the other programs. Mode "shared" needs a recipe with readers. Mode "permit" is not supported. */
  readonly recipe: InteropRecipe;
}

/** The most holders and waiters whose details are read for a message. */
const detailsMax = 100;

/**
 * Waits for the lock at `path` and returns the lease. Rejects as `acquireLock` does, or with USAGE if the recipe does
 * not have the mode.
 */
export async function acquireInteropLock(
  zk: ZooKeeper,
  path: string,
  { recipe, ...options }: AcquireInteropOptions,
): Promise<ZooKeeperLease> {
  return await acquireLockByProtocol(zk, path, {
    path: interopLockPath(path),
    newContender: (settings) => new InteropContender(zk, { ...settings, recipe }),
    readStatus: () => readInteropLockStatus(zk, path, { recipe, detailsMax }),
    parseRevocation,
  }, options);
}

function parseRevocation(data: Uint8Array): HolderRevocation | null {
  return isCuratorRevocation(data) ? { by: "Curator's Revoker", reason: "" } : parseHolderNodeInfo(data).revoke;
}
