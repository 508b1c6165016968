/**
 * One write to ZooKeeper's tree that is done only while a job's locks are held: a single transaction looks at the holders'
 * nodes and writes. A job that was frozen and woken when its session had ended changes nothing any more.
 *
 * The same transaction leaves a mark, an ephemeral node of this session with a name of its own. When the answer is lost,
 * the mark says whether it was done, and a second try of what was done after all is refused because of it.
 */
import type { Acl, MultiRequest, MultiResult, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isSessionEnd } from "../../zookeeper/zookeeper_error.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { backoffMs } from "../../support/backoff.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { formatDuration } from "../../support/duration.ts";
import { newGuid } from "../../support/guid.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { createParents } from "../lock/create_contender.ts";
import { ancestorsOf, type FencedOperation, refusedOperation } from "./fenced_operation.ts";
import { defaultRoot, lockPathAt } from "../lock/lock_path.ts";
import { hiddenIfNoAuth, isRefusal, isTransient, nullIfNoNode } from "../request_errors.ts";

export interface HeldNode {
  /** What messages call the lock. */
  readonly name: string;
  /** The holder's node. */
  readonly node: string;
}

export interface FencedWriteOptions {
  /** All of them have to be there. */
  readonly held: readonly HeldNode[];
  /** Where the mark is put: "/baton" when left out. */
  readonly root?: string;
  /** For what is made; the client's own when left out. */
  readonly acl?: Acl[];
  readonly clock?: Clock;
}

export interface FencedWriteResult {
  /** As it was given; of a sequential node with the number that the server appended. */
  readonly path: string;
  /** The node's version by this write; null for one that was deleted, and where another write has come since. */
  readonly nodeVersion: number | null;
}

const empty = new Uint8Array();
const retryWait = { firstMs: 20, maxMs: 500 };
/** What is above the node, or the mark, may come and go meanwhile; nobody does that for so long. */
const triesMax = 20;
/** How many nodes are asked at a time. */
const batchSize = 100;

/**
 * Rejects STALE_TOKEN when a holder's node is gone: nothing was written then. FALSE or NOT_FOUND when the node is not as the deed
 * wants it; REFUSED by an ACL; UNREACHABLE when it was definitely not done, OUTCOME_UNKNOWN when no server says within the
 * session timeout, or the session has ended with the answer.
 */
export async function fencedWrite(
  zk: ZooKeeper,
  deed: FencedOperation,
  options: FencedWriteOptions,
): Promise<FencedWriteResult> {
  return await new FencedWrite(zk, deed, options).run();
}

class FencedWrite {
  readonly #zk: ZooKeeper;
  readonly #deed: FencedOperation;
  readonly #held: readonly HeldNode[];
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #mark: string;
  /** What is missing above the node and is made with it, outermost first. */
  #parents: readonly string[] = [];

  constructor(zk: ZooKeeper, deed: FencedOperation, options: FencedWriteOptions) {
    const { held, root = defaultRoot, acl = zk.acl, clock = systemClock() } = options;
    this.#zk = zk;
    this.#deed = deed;
    this.#held = held;
    this.#acl = acl;
    this.#clock = clock;
    this.#mark = `${root === "/" ? "" : root}/fences/${newGuid()}`;
  }

  async run(): Promise<FencedWriteResult> {
    for (let tries = 1;; tries++) {
      try {
        return this.#written(await this.#zk.multi(this.#requests()));
      } catch (thrown) {
        if (isSessionEnd(thrown)) throw this.#unknown(thrown);
        // Never sent, or refused before it was looked at: definitely not done.
        if (isRefusal(thrown, "OPERATIONTIMEOUT", "THROTTLEDOP")) throw thrown;
        if (isTransient(thrown)) {
          const written = await this.#findOut(thrown);
          if (written !== null) return written;
        } else {
          await this.#mend(thrown).catch((error) => {
            if (!isTransient(error)) throw error; // else the next try is refused for the same reason
          });
        }
        if (tries >= triesMax) throw thrown;
        if (tries > 3) await sleep(this.#clock, backoffMs(tries, retryWait));
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
    const deed = this.#deed;
    const { path } = deed;
    switch (deed.do) {
      case "set":
        return { type: "setData", path, data: deed.data, version: deed.version };
      case "delete":
        return { type: "delete", path, version: deed.version };
      case "create": {
        const flags = deed.sequential ? createFlag.persistentSequential : createFlag.persistent;
        return { type: "create", path, data: deed.data, acl: this.#acl, flags };
      }
    }
  }

  #written(results: readonly MultiResult[]): FencedWriteResult {
    const own = results.at(-2);
    if (own?.type === "setData") return { path: this.#deed.path, nodeVersion: own.stat.version };
    if (own?.type === "create") return { path: own.path, nodeVersion: 0 };
    return { path: this.#deed.path, nodeVersion: null };
  }

  /** Takes away the reason for a refusal, so that it can be tried again, or throws what it means. */
  async #mend(thrown: unknown): Promise<void> {
    if (!isRefusal(thrown, "NONODE", "NODEEXISTS", "BADVERSION", "NOTEMPTY") || thrown.index === undefined) {
      throw thrown;
    }
    const { index, reason } = thrown;
    const holder = this.#held[index];
    if (holder !== undefined) throw staleHolder(holder, this.#deed);
    const own = this.#held.length + this.#parents.length;
    if (index > own) {
      if (reason === "NONODE") return await createParents(this.#zk, lockPathAt(this.#mark), this.#acl);
      throw thrown;
    }
    if (index < own || (this.#deed.do === "create" && reason === "NONODE")) {
      const missing = await this.#missingAbove();
      if (this.#deed.do !== "create" || !this.#deed.parents) throw refusedOperation(this.#deed, { reason, missing });
      this.#parents = missing;
      return;
    }
    throw refusedOperation(this.#deed, { reason, stat: await hiddenIfNoAuth(this.#zk.exists(this.#deed.path)) });
  }

  async #missingAbove(): Promise<string[]> {
    const above = ancestorsOf(this.#deed.path);
    const stats = await Promise.all(above.map((path) => hiddenIfNoAuth(this.#zk.exists(path))));
    return above.filter((_, index) => stats[index] === null);
  }

  /** After an answer that never came: what was written, or null when nothing was. */
  async #findOut(cause: unknown): Promise<FencedWriteResult | null> {
    const deadlineMs = this.#clock.now() + this.#zk.session.timeoutMs;
    for (let failures = 0;; failures++) {
      try {
        const [, mark] = await Promise.all([this.#zk.sync(this.#mark), this.#zk.exists(this.#mark)]);
        return mark === null ? null : await this.#writtenBy(mark.czxid);
      } catch (thrown) {
        if (!isTransient(thrown) || this.#zk.session.ended.aborted || this.#clock.now() >= deadlineMs) {
          throw this.#unknown(cause);
        }
        await sleep(this.#clock, backoffMs(failures, retryWait));
      }
    }
  }

  async #writtenBy(zxid: bigint): Promise<FencedWriteResult> {
    const deed = this.#deed;
    if (deed.do === "create" && deed.sequential) return await this.#sequentialBy(zxid, deed.path);
    const { path } = deed;
    if (deed.do === "create") return { path, nodeVersion: 0 };
    const stat = deed.do === "delete" ? null : await hiddenIfNoAuth(this.#zk.exists(path));
    return { path, nodeVersion: stat !== "hidden" && stat?.mzxid === zxid ? stat.version : null };
  }

  async #sequentialBy(zxid: bigint, prefix: string): Promise<FencedWriteResult> {
    const slash = prefix.lastIndexOf("/");
    const parent = slash === 0 ? "/" : prefix.slice(0, slash);
    const list = await nullIfNoNode(this.#zk.getChildren(parent));
    const name = prefix.slice(slash + 1);
    const children = (list?.children ?? []).filter((child) => child.startsWith(name)).sort().reverse();
    for (let start = 0; start < children.length; start += batchSize) {
      const paths = children.slice(start, start + batchSize).map((child) => `${prefix.slice(0, slash)}/${child}`);
      const stats = await Promise.all(paths.map((path) => hiddenIfNoAuth(this.#zk.exists(path))));
      const path = paths[stats.findIndex((stat) => stat !== "hidden" && stat?.czxid === zxid)];
      if (path !== undefined) return { path, nodeVersion: 0 };
    }
    throw new BatonError(
      "OUTCOME_UNKNOWN",
      `"${prefix}…" was created, the answer with its number was lost, and somebody has deleted it since`,
    );
  }

  #unknown(cause: unknown): BatonError {
    const { ended, timeoutMs } = this.#zk.session;
    const why = ended.aborted || isSessionEnd(cause)
      ? "the session ended before that was known, and the mark of it is gone with it"
      : `${messageOf(cause)}, and no server has said within ${formatDuration(timeoutMs)}`;
    const message =
      `Cannot tell whether "${this.#deed.path}" was ${past[this.#deed.do]}: ${why}; look at the node before ` +
      "you try again";
    return new BatonError("OUTCOME_UNKNOWN", message, { cause });
  }
}

const past = { set: "set", create: "created", delete: "deleted" } as const satisfies Record<
  FencedOperation["do"],
  string
>;

/** For whoever finds before the write that there is nothing to hold on to. */
export function staleHolder(
  { name, node }: { name: string; node: string | null },
  { path, do: verb }: FencedOperation,
): BatonError {
  const gone = node === null ? "this job's node is not among its holders" : `its holder's node "${node}" is gone`;
  return new BatonError(
    "STALE_TOKEN",
    `"${path}" was not ${past[verb]}: "${name}" is not held by this job any more, ${gone}`,
  );
}
