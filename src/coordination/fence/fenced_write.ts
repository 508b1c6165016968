/**
 * A write to a ZooKeeper node that succeeds only while the job's locks are held: one transaction checks the nodes of
 * the holders and writes. A job that was suspended and resumed after the end of its session cannot write.
 *
 * The same transaction creates a mark, an ephemeral node of this session with a unique name. If the response is lost,
 * the mark shows whether the write was done, and it makes a repeated write fail.
 */
import type { Acl, MultiRequest, MultiResult, Stat, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { isSessionEndError } from "../../protocols/zookeeper/zookeeper_error.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { backoffMs, requestBackoff } from "../../base/support/backoff.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { sleep } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { newGuid } from "../../base/support/guid.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { createParentNodes } from "../nodes/create_nodes.ts";
import type { AcquireOptions } from "../lock/acquire_lock.ts";
import { ancestorNodePaths, coordinationFolderPath } from "../nodes/node_paths.ts";
import {
  hiddenIfNoAuth,
  isServerRefusal,
  isTransientFailure,
  readChildNames,
  readWriteOutcome,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import type { ZooKeeperErrorName } from "../../protocols/zookeeper/jute/zookeeper_error_codes.ts";

export interface HeldLockNode {
  /** The name of the lock in messages. */
  readonly name: string;
  /** The node of the holder. */
  readonly node: string;
}

interface FencedWriteOptions extends Pick<AcquireOptions, "root" | "acl" | "clock"> {
  /** The nodes that must exist. */
  readonly held: readonly HeldLockNode[];
}

export interface FencedWriteResult {
  /** The path of the node; for a sequential node including the number. */
  readonly path: string;
  /** The version of the node after this write; null if it was deleted or changed since. */
  readonly nodeVersion: number | null;
}

const empty = new Uint8Array();
/** The maximum number of tries: parents of the node or of the mark may be created and deleted meanwhile. */
const triesMax = 20;
/** The number of nodes that are read at the same time. */
const batchSize = 100;

/**
 * Rejects STALE_TOKEN if the node of a holder is gone; FALSE or NOT_FOUND if the node does not meet the conditions;
 * REFUSED by an ACL; UNREACHABLE if nothing was written; OUTCOME_UNKNOWN if the outcome could not be determined within
 * the session timeout, or the session ended.
 */
export async function fencedWrite(
  zk: ZooKeeper,
  operation: FencedNodeOperation,
  options: FencedWriteOptions,
): Promise<FencedWriteResult> {
  return await new FencedWrite(zk, operation, options).run();
}

class FencedWrite {
  readonly #zk: ZooKeeper;
  readonly #operation: FencedNodeOperation;
  readonly #held: readonly HeldLockNode[];
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #mark: string;
  /** Missing parents that are created with the node, outermost first. */
  #parents: readonly string[] = [];

  constructor(zk: ZooKeeper, operation: FencedNodeOperation, options: FencedWriteOptions) {
    const { held, root, acl = zk.acl, clock = systemClock() } = options;
    this.#zk = zk;
    this.#operation = operation;
    this.#held = held;
    this.#acl = acl;
    this.#clock = clock;
    this.#mark = `${coordinationFolderPath("fences", root)}/${newGuid()}`;
  }

  async run(): Promise<FencedWriteResult> {
    for (let tries = 1;; tries++) {
      try {
        return this.#toResult(await this.#zk.multi(this.#requests()));
      } catch (thrown) {
        if (isSessionEndError(thrown)) throw this.#unknownOutcomeError(thrown);
        // The request was not sent or not processed, so nothing was written.
        if (isServerRefusal(thrown, "OPERATIONTIMEOUT", "THROTTLEDOP")) throw thrown;
        if (isTransientFailure(thrown)) {
          const written = await this.#resolveOutcome(thrown);
          if (written !== null) return written;
        } else {
          await this.#repair(thrown).catch((error) => {
            if (!isTransientFailure(error)) throw error; // a transient error: the next try fails for the same reason
          });
        }
        if (tries >= triesMax) throw thrown;
        if (tries > 3) await sleep(this.#clock, backoffMs(tries, requestBackoff));
      }
    }
  }

  #requests(): MultiRequest[] {
    const acl = this.#acl;
    return [
      ...this.#held.map(({ node }): MultiRequest => ({ type: "check", path: node, version: -1 })),
      ...this.#parents.map((path): MultiRequest => ({
        type: "create",
        path,
        data: empty,
        acl,
        flags: createFlag.persistent,
      })),
      this.#request(),
      { type: "create", path: this.#mark, data: empty, acl, flags: createFlag.ephemeral },
    ];
  }

  #request(): MultiRequest {
    const operation = this.#operation;
    const { path } = operation;
    switch (operation.do) {
      case "set":
        return { type: "setData", path, data: operation.data, version: operation.version };
      case "delete":
        return { type: "delete", path, version: operation.version };
      case "create": {
        const flags = operation.sequential ? createFlag.persistentSequential : createFlag.persistent;
        return { type: "create", path, data: operation.data, acl: this.#acl, flags };
      }
    }
  }

  #toResult(results: readonly MultiResult[]): FencedWriteResult {
    const own = results.at(-2);
    if (own?.type === "setData") return { path: this.#operation.path, nodeVersion: own.stat.version };
    if (own?.type === "create") return { path: own.path, nodeVersion: 0 };
    return { path: this.#operation.path, nodeVersion: null };
  }

  /** Removes the reason for a refusal, so that the write can be repeated, or throws its error. */
  async #repair(thrown: unknown): Promise<void> {
    if (!isServerRefusal(thrown, "NONODE", "NODEEXISTS", "BADVERSION", "NOTEMPTY") || thrown.index === undefined) {
      throw thrown;
    }
    const { index, reason } = thrown;
    const holder = this.#held[index];
    if (holder !== undefined) throw staleLockHolderError(holder, this.#operation);
    const own = this.#held.length + this.#parents.length;
    if (index > own) {
      if (reason === "NONODE") return await createParentNodes(this.#zk, this.#mark, this.#acl);
      throw thrown;
    }
    if (index < own || (this.#operation.do === "create" && reason === "NONODE")) {
      const missing = await this.#missingAncestors();
      if (this.#operation.do !== "create" || !this.#operation.parents) {
        throw refusedOperationError(this.#operation, { reason, missing });
      }
      this.#parents = missing;
      return;
    }
    throw refusedOperationError(this.#operation, {
      reason,
      stat: await hiddenIfNoAuth(this.#zk.exists(this.#operation.path)),
    });
  }

  async #missingAncestors(): Promise<string[]> {
    const above = ancestorNodePaths(this.#operation.path);
    const stats = await Promise.all(above.map((path) => hiddenIfNoAuth(this.#zk.exists(path))));
    return above.filter((_, index) => stats[index] === null);
  }

  /** Determines the outcome after a lost response; null if nothing was written. */
  async #resolveOutcome(cause: unknown): Promise<FencedWriteResult | null> {
    const findOutcome = async () => {
      const reading = () => this.#zk.exists(this.#mark);
      const mark = await readWriteOutcome(this.#zk, this.#mark, reading, (found) => found !== null);
      return mark === null ? null : await this.#findResult(mark.czxid);
    };
    return await retryOnConnectionLoss(this.#zk, findOutcome, { clock: this.#clock }).catch(() => {
      throw this.#unknownOutcomeError(cause);
    });
  }

  async #findResult(zxid: bigint): Promise<FencedWriteResult> {
    const operation = this.#operation;
    if (operation.do === "create" && operation.sequential) return await this.#findSequentialNode(zxid, operation.path);
    const { path } = operation;
    if (operation.do === "create") return { path, nodeVersion: 0 };
    const stat = operation.do === "delete" ? null : await hiddenIfNoAuth(this.#zk.exists(path));
    return { path, nodeVersion: stat !== "hidden" && stat?.mzxid === zxid ? stat.version : null };
  }

  async #findSequentialNode(zxid: bigint, prefix: string): Promise<FencedWriteResult> {
    const slash = prefix.lastIndexOf("/");
    const parent = slash === 0 ? "/" : prefix.slice(0, slash);
    const name = prefix.slice(slash + 1);
    const children = (await readChildNames(this.#zk, parent)).filter((child) => child.startsWith(name)).sort()
      .reverse();
    for (let start = 0; start < children.length; start += batchSize) {
      const paths = children.slice(start, start + batchSize).map((child) => `${prefix.slice(0, slash)}/${child}`);
      const stats = await Promise.all(paths.map((path) => hiddenIfNoAuth(this.#zk.exists(path))));
      const path = paths[stats.findIndex((stat) => stat !== "hidden" && stat?.czxid === zxid)];
      if (path !== undefined) return { path, nodeVersion: 0 };
    }
    throw new BatonError(
      "OUTCOME_UNKNOWN",
      `"${prefix}…" was created, but the response with its number was lost and the node was deleted since`,
    );
  }

  #unknownOutcomeError(cause: unknown): BatonError {
    const { ended, timeoutMs } = this.#zk.session;
    const why = ended.aborted || isSessionEndError(cause)
      ? "the session ended before the outcome was known"
      : `${errorMessage(cause)}, and no server responded within ${formatDuration(timeoutMs)}`;
    const written = past[this.#operation.do];
    const message = `The outcome is unknown: "${this.#operation.path}" may have been ${written}; ${why}. ` +
      "Read the node before you repeat the write";
    return new BatonError("OUTCOME_UNKNOWN", message, { cause });
  }
}

const past = { set: "set", create: "created", delete: "deleted" } as const satisfies Record<
  FencedNodeOperation["do"],
  string
>;

/** The error for a lock that this job no longer holds. `node` is null if the job has no holder node. */
export function staleLockHolderError(
  { name, node }: { name: string; node: string | null },
  { path, do: verb }: FencedNodeOperation,
): BatonError {
  const gone = node === null ? "this job is not among its holders" : `the node of its holder, "${node}", is gone`;
  return new BatonError(
    "STALE_TOKEN",
    `"${path}" was not ${past[verb]}: this job no longer holds lock "${name}": ${gone}`,
  );
}

export type FencedNodeOperation =
  /** Version -1 means any version. */
  | { readonly do: "set"; readonly path: string; readonly data: Uint8Array; readonly version: number }
  | {
    readonly do: "create";
    readonly path: string;
    readonly data: Uint8Array;
    /** Create missing parents in the same transaction. */
    readonly parents: boolean;
    /** The server appends a number that is higher than all earlier ones. */
    readonly sequential: boolean;
  }
  | { readonly do: "delete"; readonly path: string; readonly version: number };

/** Folders below the root that only baton may write: other data there would look like a holder, a waiter or a state. */
const reservedFolders = ["locks", "elections", "barriers", "gates", "pools", "fences"] as const;

/** The reserved folder that contains `path`; null if there is none. */
export function findReservedNodeFolder(path: string, root?: string): string | null {
  const folders = reservedFolders.map((name) => coordinationFolderPath(name, root));
  return folders.find((folder) => path === folder || path.startsWith(`${folder}/`)) ?? null;
}

interface OperationRefusal {
  readonly reason: ZooKeeperErrorName | number;
  /** The node after the refusal; "hidden" if its ACL denies read access. */
  readonly stat?: Stat | null | "hidden";
  /** Missing parents of the node. */
  readonly missing?: readonly string[];
}

/** The error for a node that does not meet the conditions of the operation. Nothing was changed. */
function refusedOperationError(
  operation: FencedNodeOperation,
  { reason, stat = null, missing = [] }: OperationRefusal,
): BatonError {
  const cannot = `Cannot ${operation.do} "${operation.path}"`;
  const [nearest] = missing;
  const no = (why: string) => new BatonError(reason === "NONODE" ? "NOT_FOUND" : "FALSE", `${cannot}: ${why}`);
  switch (reason) {
    case "NONODE":
      if (operation.do === "create") {
        return no(
          nearest === undefined
            ? "its parent has just been deleted"
            : `the parent "${nearest}" does not exist; -p creates it`,
        );
      }
      return no(
        operation.do === "set"
          ? "the node does not exist; create it with baton fence zk create"
          : "the node does not exist",
      );
    case "NODEEXISTS":
      return no("it already exists");
    case "BADVERSION": {
      const expected = operation.do === "create" ? "" : `, not version ${operation.version}`;
      if (stat === "hidden") return no(`it has another version${expected}, and this client has no read access to it`);
      return no(
        stat === null
          ? `it had another version${expected}, and has been deleted since`
          : `it has version ${stat.version}${expected}`,
      );
    }
    case "NOTEMPTY": {
      if (stat === "hidden") return no("it has children; delete them first");
      const count = stat?.numChildren ?? 0;
      return no(
        count === 0
          ? "it had children"
          : `it has ${count === 1 ? "a child; delete it" : `${count} children; delete them`} first`,
      );
    }
    default:
      return no(`the server returned ${reason}`);
  }
}
