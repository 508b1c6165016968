/**
 * One topic on one server during one session. Reads the topic's node and executes what `decideTopic` says, step by
 * step, until nothing is left to do. The node is always read after the server has announced itself.
 */
import { TaskScope, throwIfAborted } from "../../base/support/abort.ts";
import { backoffMs, outageBackoff, retry, serverBackoff } from "../../base/support/backoff.ts";
import { sleep } from "../../base/support/deadline.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { newGuid } from "../../base/support/guid.ts";
import { isTransient } from "../../coordination/nodes/node_requests.ts";
import type { ContentName, IncomingContent, TopicCopies, TopicCopy } from "../store/operations/owned_store.ts";
import {
  decideTopic,
  decideTransfer,
  type DeleteResult,
  type TopicAction,
  type TopicFacts,
  whyNotDeleted,
} from "./topic_decision.ts";
import { changeStore, missingTopicError } from "./change_store.ts";
import type { OwnershipLease } from "./ownership_lease.ts";
import { forgottenNode, takenBackNode, takenOverNode, type TopicNode } from "./topic_node.ts";
import type { OwnershipContext } from "./ownership_context.ts";
import type { VersionedTopicNode, WriteOutcome } from "./topic_nodes.ts";
import { piecesUntilAbort, type TransferReply } from "./transfer_channel.ts";

/** Identifies the content for which requests are admitted; kept from the admission of a request to its response. */
export interface Permit {
  readonly epoch: number;
  readonly incarnation: string;
  /** The lease of the session, under which the request was admitted: OK may be sent while it is confirmed. */
  readonly lease: Pick<OwnershipLease, "isConfirmed">;
}

export type HandoffResult =
  | { readonly kind: "moved"; readonly epoch: number }
  /** The topic is still on this server. */
  | { readonly kind: "kept"; readonly why: string };

export class OwnedTopic {
  /** Not null while requests may be admitted. */
  permit: Permit | null = null;
  /** The node as last read or written; undefined: not read yet; null: no node exists. */
  knownNode: VersionedTopicNode | null | undefined = undefined;
  /** The last action, and the error of a shared database that has refused it: why the topic is not served. */
  lastAction: TopicAction["do"] | null = null;
  problem: string | undefined = undefined;
  /** The content is being sent or received, which may take long. */
  isInTransfer = false;
  /** Data is left in the store that waits for another server. */
  isWaiting = false;
  readonly topic: string;
  readonly #context: OwnershipContext;
  #lastQueued: Promise<unknown> = Promise.resolve();
  #queuedSettle: Promise<void> | null = null;
  #rechecks = 0;
  #cancelRecheck: () => void = () => {};
  #handoffDeadlineMs = 0;
  #keptReason = "";
  #isCounted = false;
  #queueLength = 0;
  #mustReadNode = false;
  /** `knownNode` was read after a sync. */
  #isReadAfterSync = false;
  /** The receiver has confirmed that it has the topic: the node must be read after a sync. */
  #hasReceiverConfirmed = false;

  constructor(topic: string, context: OwnershipContext) {
    this.topic = topic;
    this.#context = context;
  }

  /** Executes all pending actions. Calls made while one is queued share it. */
  settle(): Promise<void> {
    if (this.#queuedSettle !== null) return this.#queuedSettle;
    const queued = this.#enqueue(() => {
      this.#queuedSettle = null;
      if (this.#mustReadNode && this.permit === null) this.knownNode = undefined;
      this.#mustReadNode = false;
      return this.#settle();
    });
    this.#queuedSettle = queued;
    return queued;
  }

  /**
   * Reads the node again, then does the same as `settle`. A served topic is not read: no other server can have changed
   * it.
   */
  refresh(): Promise<void> {
    this.#mustReadNode = true;
    return this.settle();
  }

  /**
   * Hands the topic to `to`: sends its messages while it is served, seals it, and sends the rest. Nothing is moved if
   * `epoch` is given and is not the current one, or if `to` is this server. A failure before the seal leaves everything
   * unchanged.
   */
  handOff(to: string, epoch: number | null): Promise<HandoffResult> {
    return this.#enqueue(async () => {
      await this.#settleAt(epoch);
      const { permit } = this;
      if (permit === null) {
        const what = this.lastAction === "missing" ? "have its data" : "serve it";
        return { kind: "kept", why: this.problem ?? `this server does not ${what}` };
      }
      const { sharedStore, addressOf, id } = this.#context;
      if (to === id) return { kind: "moved", epoch: permit.epoch };
      if (epoch !== null && epoch !== permit.epoch) {
        return { kind: "kept", why: `the request is for epoch ${epoch}, and the topic is at epoch ${permit.epoch}` };
      }
      if (sharedStore !== null && (await addressOf(to))?.store === sharedStore) return await this.#moveWithinStore(to);
      const reply = await this.#handOffServed(to, permit);
      if (this.permit !== null) {
        return { kind: "kept", why: this.#keptReason === "" ? "the receiver did not take it" : this.#keptReason };
      }
      this.#hasReceiverConfirmed = reply?.kind === "taken" || reply?.kind === "passed";
      await this.#settle();
      return this.#handoffResult(to);
    });
  }

  #handoffResult(to: string): HandoffResult {
    const node = this.knownNode?.node;
    if (node?.owner === to) return { kind: "moved", epoch: node.epoch };
    const why = this.#keptReason === "" ? `its node names the owner "${node?.owner}"` : this.#keptReason;
    return { kind: "kept", why };
  }

  /**
   * Deletes the topic for an operator: admits no further request, completes the admitted ones, and writes a new
   * incarnation into the node, which no server has data of. The next put starts with an empty topic, and no message id
   * is used again.
   * `whyNot` is called when no request is admitted any longer; a result other than null keeps the topic. If `whyNot` is
   * null, damaged and missing data is given up, too.
   */
  delete(epoch: number | null, whyNot: ((epoch: number) => Promise<string | null>) | null): Promise<DeleteResult> {
    return this.#enqueue(async () => {
      await this.#settleAt(epoch);
      const { knownNode, permit } = this;
      const isMissing = this.lastAction === "missing" && knownNode?.node.owner === this.#context.id;
      const facts = {
        node: knownNode?.node,
        epoch,
        isServed: permit !== null,
        isMissing,
        acceptsLoss: whyNot === null,
      };
      const whyKept = whyNotDeleted(facts);
      if (whyKept !== null) return whyKept;
      if (knownNode === null || knownNode === undefined) return { kind: "gone" };
      const next = forgottenNode(knownNode.node, newGuid());
      if (next === null) return { kind: "kept", why: "no message ids are left for another incarnation" };
      this.permit = null;
      await this.#context.store.copiesOf(this.topic); // completes after all admitted requests
      const why = await whyNot?.(knownNode.node.epoch) ?? null;
      if (why !== null) {
        await this.#settle();
        return { kind: "refused", why };
      }
      await this.#handleWriteOutcome(await this.#writeNode(next), next, knownNode.version + 1);
      this.knownNode ??= await this.#context.nodes.read(this.topic);
      const isGone = this.knownNode?.node.incarnation === next.incarnation;
      if (isGone) {
        await this.#context.store.drop(this.topic, next.epoch);
        await this.#context.nodes.uncountForOwner(this.topic, this.#context.id);
      }
      await this.#settle();
      return isGone ? { kind: "deleted" } : { kind: "kept", why: "its node has changed meanwhile" };
    });
  }

  /** Receives the content that another server sends. */
  receive(content: ContentName, incoming: IncomingContent): Promise<TransferReply> {
    return this.#enqueue(async () => {
      for (let tries = 0;; tries++) {
        const stored = await this.#context.store.copiesOf(this.topic);
        this.knownNode = await this.#context.nodes.read(this.topic);
        const decision = decideTransfer(content, { ...stored, node: this.knownNode?.node ?? null });
        if (decision === "passed") return { kind: "passed" };
        if (decision === "stage") {
          const refused = await this.#stageContent(content, incoming);
          if (refused !== null) return refused;
        }
        if (decision !== "unknown") break;
        if (tries > 0) {
          return {
            kind: "refused",
            why: `"${this.topic}" is no longer owned by ${content.owner} with epoch ${content.epoch}`,
          };
        }
        await this.#context.nodes.settle(this.topic);
      }
      await this.#settle();
      return { kind: this.permit === null ? "passed" : "taken" };
    });
  }

  /** A call has not completed yet. */
  get isBusy(): boolean {
    return this.#queueLength > 0;
  }

  /** Resolves when the running call has ended. The end of the session ends it. */
  async close(): Promise<void> {
    this.permit = null;
    this.#cancelRecheck();
    await this.#lastQueued;
  }

  /**
   * Returns the receiver's reply, or null if none came or the receiver could not be reached. `permit` tells whether the
   * copy was sealed.
   */
  async #handOffServed(to: string, { incarnation, epoch }: Permit): Promise<TransferReply | null> {
    const { store } = this.#context;
    this.#keptReason = "";
    const { copy } = await store.copiesOf(this.topic);
    if (copy?.incarnation !== incarnation || copy.epoch !== epoch) return null;
    try {
      const reply = await this.#transfer(to, copy);
      if (reply?.kind === "refused") this.#keptReason = reply.why;
      return reply;
    } catch (thrown) {
      if (this.permit === null || !isTransient(thrown)) throw thrown;
      this.#keptReason = errorMessage(thrown);
      return null;
    }
  }

  async #seal(epoch: number, to: string): Promise<void> {
    const { store, clock, handoffMs } = this.#context;
    this.permit = null;
    this.isInTransfer = true;
    this.#handoffDeadlineMs = clock.now() + handoffMs;
    await store.seal(this.topic, epoch, to);
  }

  async #stageContent(content: ContentName, { pieces, hash }: IncomingContent): Promise<TransferReply | null> {
    this.isInTransfer = true;
    try {
      const incoming = { pieces: piecesUntilAbort(this.#context.signal, pieces), hash };
      await this.#context.store.importStaged(this.topic, content, incoming);
      return null;
    } catch (thrown) {
      throwIfAborted(this.#context.signal);
      if (!(thrown instanceof BatonError)) throw thrown;
      return { kind: "refused", why: thrown.message };
    } finally {
      this.isInTransfer = false;
    }
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    this.#queueLength++;
    const turn = this.#lastQueued.then(() => {
      throwIfAborted(this.#context.signal);
      return work();
    }).finally(() => this.#queueLength--);
    this.#lastQueued = turn.catch(() => {});
    return turn;
  }

  /** The caller has read `epoch`: another server may have given the topic to this one without a word. */
  async #settleAt(epoch: number | null): Promise<void> {
    await this.#settle();
    if (epoch === null || (this.knownNode?.node.epoch ?? 0) >= epoch) return;
    await this.#forgetNode("sync");
    await this.#settle();
  }

  async #settle(): Promise<void> {
    this.#isReadAfterSync = false;
    const { clock, signal } = this.#context;
    const mayRetry = (thrown: unknown) => {
      this.knownNode = undefined;
      return isTransient(thrown);
    };
    try {
      await retry(async (succeeded) => {
        while (await this.#executeNextAction() !== "settled") {
          succeeded();
          throwIfAborted(signal);
        }
      }, { clock, signal, backoff: serverBackoff, mayRetry });
    } finally {
      this.isInTransfer = false;
    }
  }

  async #executeNextAction(): Promise<"settled" | "goes on"> {
    const { nodes, store, id } = this.#context;
    if (this.#hasReceiverConfirmed) await this.#forgetNode("sync");
    this.#hasReceiverConfirmed = false;
    if (this.knownNode === undefined) this.knownNode = await nodes.read(this.topic);
    const { knownNode } = this;
    const stored = await this.#ifDatabaseResponds(() => store.copiesOf(this.topic));
    if (stored === null) return "settled";
    const node = knownNode?.node ?? null;
    const shared = await this.#sharedFacts(node);
    const action = decideTopic({ me: id, node, shared, ...stored });
    this.isWaiting = false;
    [this.lastAction, this.problem] = [action.do, undefined];
    if (action.do !== "serve") this.permit = null;
    switch (action.do) {
      case "serve":
        this.#serve(stored);
        return "settled";
      case "register":
        return await this.#handleWriteOutcome(await nodes.create(this.topic, action.next), action.next, 0);
      case "write": {
        const outcome = await this.#writeNode(action.next);
        // The owner before is gone, or may not be the server of its database that drops the rows.
        const isOfDatabase = action.why === "take over" || (action.why === "take" && node?.store !== undefined);
        if (isOfDatabase && outcome === "written") {
          void nodes.uncountForOwner(this.topic, node?.owner ?? "").catch(() => {}); // only used for assignments
        }
        return await this.#handleWriteOutcome(outcome, action.next, (knownNode?.version ?? 0) + 1);
      }
      case "hand off":
        return await this.#handOffSealed(action, stored);
      case "read again":
        // The node was read after a sync and is still older than the stored data. Another process has to correct the
        // tree.
        if (this.#isReadAfterSync) {
          this.#scheduleRecheck();
          return "settled";
        }
        await this.#forgetNode("sync");
        return "goes on";
      case "missing":
        this.#context.onProblem(missingTopicError(this.topic, knownNode?.node, id));
        return "settled";
      case "none": {
        const isLeftover = shared !== null && node?.store !== shared.store && (stored.unopened ?? null) !== null;
        this.isWaiting = stored.copy !== null || stored.staged !== null || isLeftover;
        if (this.isWaiting) this.#scheduleRecheck();
        return "settled";
      }
      default:
        return await this.#ifDatabaseResponds<"goes on">(async () => {
          await changeStore(this.#context, this.topic, { action, node: knownNode?.node, stored });
          return "goes on";
        }) ?? "settled";
    }
  }

  /** Null: a shared database does not respond, or another server has opened the topic. The node is read again, soon. */
  async #ifDatabaseResponds<Result>(work: () => Promise<Result>): Promise<Result | null> {
    try {
      return await work();
    } catch (thrown) {
      const { sharedStore, onProblem, signal } = this.#context;
      const isExpected = thrown instanceof BatonError && thrown.code !== "INTERNAL" && !isTransient(thrown);
      if (sharedStore === null || !isExpected || signal.aborted) throw thrown;
      [this.lastAction, this.problem] = [null, errorMessage(thrown)];
      onProblem(thrown);
      this.#scheduleRecheck();
      return null;
    }
  }

  /** Whether the owner of a topic of another store is there does not matter: its store's servers take it over. */
  async #sharedFacts(node: TopicNode | null): Promise<TopicFacts["shared"]> {
    const { sharedStore, id, addressOf } = this.#context;
    if (sharedStore === null) return null;
    const isOwn = node === null || node.owner === id || node.store !== sharedStore;
    return { store: sharedStore, isOwnerThere: isOwn || await addressOf(node.owner) !== null };
  }

  /** The rows of a shared store stay where they are: the receiver opens them at the next epoch. */
  async #moveWithinStore(to: string): Promise<HandoffResult> {
    const { store, nodes, id } = this.#context;
    this.permit = null;
    await store.release(this.topic);
    const { knownNode } = this;
    if (knownNode !== null && knownNode !== undefined) {
      const next = takenOverNode(knownNode.node, to);
      await this.#handleWriteOutcome(await this.#writeNode(next), next, knownNode.version + 1);
      if (this.knownNode?.node.owner === to) await nodes.countForOwner(this.topic, to);
      await nodes.uncountForOwner(this.topic, id);
      this.#isCounted = false;
    }
    await this.#settle();
    return this.#handoffResult(to);
  }

  /** Called when the store has lost the topic: the node decides whether it is opened again. */
  lose(): Promise<void> {
    this.permit = null;
    return this.refresh();
  }

  #serve({ copy }: TopicCopies): void {
    const { nodes, id, lease } = this.#context;
    this.#handoffDeadlineMs = 0;
    this.#rechecks = 0;
    if (copy === null || (this.permit?.epoch === copy.epoch && this.permit.incarnation === copy.incarnation)) return;
    this.permit = { epoch: copy.epoch, incarnation: copy.incarnation, lease };
    if (this.#isCounted) return;
    this.#isCounted = true;
    void nodes.ensureCountedForOwner(this.topic, id).catch(() => {}); // only used for assignments
  }

  async #writeNode(next: TopicNode): Promise<WriteOutcome> {
    const version = this.knownNode?.version;
    return version === undefined ? "refused" : await this.#context.nodes.write(this.topic, next, version);
  }

  async #handleWriteOutcome(outcome: WriteOutcome, node: TopicNode, version: number): Promise<"goes on"> {
    if (outcome === "written") this.knownNode = { node, version };
    // The outcome is unknown, or another process was faster. The node, read after all own writes, decides.
    else await this.#forgetNode("settle");
    return "goes on";
  }

  async #forgetNode(catchUp: "sync" | "settle"): Promise<void> {
    await this.#context.nodes[catchUp](this.topic);
    this.knownNode = undefined;
    this.#isReadAfterSync = true;
  }

  /** One attempt to hand a sealed copy to its receiver. If the time is over, takes the topic back. */
  async #handOffSealed(
    action: TopicAction & { do: "hand off" },
    { copy }: TopicCopies,
  ): Promise<"settled" | "goes on"> {
    const { clock, handoffMs } = this.#context;
    if (copy === null) throw new BatonError("INTERNAL", `"${this.topic}" is to be handed off, but is not stored`);
    this.isInTransfer = true; // until `settle` is done, whatever is tried
    if (this.#handoffDeadlineMs === 0) this.#handoffDeadlineMs = clock.now() + handoffMs;
    const reply = clock.now() < this.#handoffDeadlineMs ? await this.#transfer(action.to, copy) : null;
    if (reply?.kind === "taken" || reply?.kind === "passed") {
      this.#rechecks = 0;
      await this.#forgetNode("sync");
      // The receiver says that the topic has moved on, but the node is unchanged: the reply was an old one.
      if (reply.kind === "passed") await this.#pause(0);
      return "goes on";
    }
    if (reply?.kind === "refused") this.#keptReason = reply.why;
    const isHopeless = reply?.kind === "refused" || clock.now() >= this.#handoffDeadlineMs;
    if (!isHopeless) await this.#pause(this.#rechecks++);
    else if (action.mayTakeBack) return await this.#takeBackTopic();
    else {
      this.#handoffDeadlineMs = 0;
      this.#scheduleRecheck();
      return "settled";
    }
    return "goes on";
  }

  async #takeBackTopic(): Promise<"goes on"> {
    const { knownNode } = this;
    if (knownNode === null || knownNode === undefined) return "goes on";
    const next = takenBackNode(knownNode.node);
    return await this.#handleWriteOutcome(await this.#writeNode(next), next, knownNode.version + 1);
  }

  /**
   * One attempt to send the topic. Returns null if no reply came. An open copy is sealed when almost all of it is sent;
   * the deadline applies after the seal, before it there is none as long as data flows. Rejects with the error of
   * finding the receiver, and with the reason of the session's end.
   */
  async #transfer(to: string, { incarnation, baseOffset, epoch, sealedFor }: TopicCopy): Promise<TransferReply | null> {
    const { id, store, channel, clock, signal } = this.#context;
    const receiver = await this.#context.addressOf(to);
    if (receiver === null) return { kind: "refused", why: `the server "${to}" is not running` };
    const late = new AbortController();
    const reason = () => new BatonError("UNREACHABLE", `The server "${to}" did not take "${this.topic}" in time`);
    using limits = new TaskScope();
    const limit = () =>
      limits.add(clock.startTimer(Math.max(0, this.#handoffDeadlineMs - clock.now()), () => late.abort(reason())));
    if (sealedFor !== null) limit();
    try {
      const outgoing = store.export(this.topic, epoch, async () => {
        await this.#seal(epoch, to);
        limit();
      });
      const content = { incarnation, baseOffset, owner: id, epoch };
      const ends = AbortSignal.any([signal, late.signal]);
      return await channel.transfer(receiver, this.topic, content, { outgoing, signal: ends });
    } catch (thrown) {
      throwIfAborted(signal);
      this.#keptReason = errorMessage(thrown);
      return null;
    }
  }

  async #pause(failures: number): Promise<void> {
    const { clock, signal } = this.#context;
    await sleep(clock, backoffMs(failures, serverBackoff), signal);
  }

  /** Checks again later: data is left here that waits for another server. */
  #scheduleRecheck(): void {
    const { clock, signal } = this.#context;
    this.#cancelRecheck();
    this.#cancelRecheck = clock.startTimer(backoffMs(this.#rechecks++, outageBackoff), () => {
      if (signal.aborted) return;
      this.refresh().catch((thrown) => signal.aborted || this.#context.onProblem(thrown));
    });
  }
}
