/**
 * One topic on one server during one session. Reads the topic's node and carries out the decisions of `decideTopic`,
 * step by step, until nothing is left to do. `topic_state.ts` has the states and a diagram of their transitions. The
 * server announces itself before it first reads the node.
 */
import { CleanupScope, throwIfAborted } from "../../base/support/abort.ts";
import { backoffMs, outageBackoff, retryWithBackoff, serverBackoff } from "../../base/support/backoff.ts";
import { sleep } from "../../base/support/deadline.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { newGuid } from "../../base/support/guid.ts";
import { isTransientFailure } from "../../coordination/nodes/node_requests.ts";
import type { IncomingContent, TopicContentId, TopicCopy } from "../store/operations/owned_store.ts";
import {
  decideTopic,
  decideTopicHandoff,
  decideTopicTransfer,
  type TopicAction,
  type TopicDecisionFacts,
  type TopicDeleteResult,
  whyTopicNotDeleted,
} from "./topic_decision.ts";
import { type TopicNode, topicNodeAfterForget, topicNodeAfterTakeBack, topicNodeAfterTakeover } from "./topic_node.ts";
import type { OwnershipContext } from "./ownership_context.ts";
import type { NodeWriteOutcome, VersionedTopicNode } from "./topic_nodes.ts";
import {
  firstTopicState,
  type TopicHandoffResult,
  topicHandoffResult,
  type TopicPermit,
  type TopicState,
  topicStateAfterCall,
  topicStateAfterClose,
  topicStateAfterDecision,
  topicStateAfterFailure,
  whyTopicNotServed,
} from "./topic_state.ts";
import { type TopicTransferReply, transferPiecesUntilAbort } from "./transfer_channel.ts";

/**
 * - settled: nothing is left to do now
 * - goes on: the node or the store has changed, so a new decision is needed
 * - caught up: a new decision is needed; the next read of the node shows all earlier changes
 */
type Progress = "settled" | "goes on" | "caught up";

export class OwnedTopic {
  state: TopicState = firstTopicState;
  /** The topic's node as last read or written. Null if no node exists; undefined if the node must be read. */
  knownNode: VersionedTopicNode | null | undefined = undefined;
  readonly topic: string;
  readonly #context: OwnershipContext;
  #lastQueued: Promise<unknown> = Promise.resolve();
  #queueLength = 0;
  /**
   * The call of `settle` that is queued and has not begun. If `readsNode` is true, the call first reads the node,
   * unless the topic is served.
   */
  #queuedSettle: { readonly done: Promise<void>; readsNode: boolean } | null = null;
  /** The number of attempts in a row that have changed nothing. The pauses increase with this number. */
  #attempts = 0;
  #cancelRecheck: () => void = () => {};
  #whyKept = "";
  /** The last epoch in which this session has counted the topic for its server; 0 if it has not. */
  #countedEpoch = 0;

  constructor(topic: string, context: OwnershipContext) {
    this.topic = topic;
    this.#context = context;
  }

  /** The permit under which requests are admitted. Null while no request is admitted. */
  get permit(): TopicPermit | null {
    return this.state.kind === "served" ? this.state.permit : null;
  }

  /** Carries out all pending actions. Calls that arrive while a call is queued share the queued call. */
  settle(): Promise<void> {
    return this.#queueSettle().done;
  }

  /**
   * Reads the node again, then settles. Does not read the node of a served topic, because no other server can have
   * changed it.
   */
  refresh(): Promise<void> {
    const queued = this.#queueSettle();
    queued.readsNode = true;
    return queued.done;
  }

  #queueSettle(): { readonly done: Promise<void>; readsNode: boolean } {
    if (this.#queuedSettle !== null) return this.#queuedSettle;
    const done = this.#enqueue(() => {
      this.#queuedSettle = null;
      if (queued.readsNode && this.permit === null) this.knownNode = undefined;
      return this.#settle();
    });
    const queued = { done, readsNode: false };
    return this.#queuedSettle = queued;
  }

  /**
   * Hands off the topic to server `to`. Sends messages while the topic is still served, then seals the topic and sends
   * the rest. Moves nothing if `epoch` is given and is not the current epoch, or if `to` is this server. A failure
   * before the seal changes nothing.
   */
  handOff(to: string, epoch: number | null): Promise<TopicHandoffResult> {
    return this.#enqueue(async () => {
      await this.#settleAt(epoch);
      if (this.state.kind !== "served") return { kind: "kept", why: whyTopicNotServed(this.state) };
      const { permit } = this.state;
      const { sharedStore, addressOf, id } = this.#context;
      if (to === id) return { kind: "moved", epoch: permit.epoch };
      if (epoch !== null && epoch !== permit.epoch) {
        return { kind: "kept", why: `the request is for epoch ${epoch}, and the topic is at epoch ${permit.epoch}` };
      }
      if (sharedStore !== null && (await addressOf(to))?.store === sharedStore) return await this.#moveWithinStore(to);
      const reply = await this.#handOffServed(to, permit);
      if (this.permit !== null) return { kind: "kept", why: this.#whyKept || "the receiver did not take it" };
      await this.#settle({ mustCatchUp: reply?.kind === "taken" || reply?.kind === "passed" });
      return topicHandoffResult(to, this.knownNode?.node, this.#whyKept);
    });
  }

  /**
   * Deletes the topic for an operator. Stops admitting requests, completes the admitted requests, and writes a new
   * incarnation into the node. No server has data of the new incarnation, so the next put starts with an empty topic.
   * No message ID is used again. When no request is admitted any longer, calls `whyNot`; if that returns a reason,
   * keeps the topic. If `whyNot` is null, also gives up damaged and missing data.
   */
  delete(epoch: number | null, whyNot: ((epoch: number) => Promise<string | null>) | null): Promise<TopicDeleteResult> {
    return this.#enqueue(async () => {
      await this.#settleAt(epoch);
      const { knownNode, permit } = this;
      const isMissing = this.state.kind === "missing" && knownNode?.node.owner === this.#context.id;
      const facts = {
        node: knownNode?.node,
        epoch,
        isServed: permit !== null,
        isMissing,
        acceptsLoss: whyNot === null,
      };
      const whyKept = whyTopicNotDeleted(facts);
      if (whyKept !== null) return whyKept;
      if (knownNode === null || knownNode === undefined) return { kind: "gone" };
      const next = topicNodeAfterForget(knownNode.node, newGuid());
      if (next === null) return { kind: "kept", why: "no message ids are left for another incarnation" };
      this.state = topicStateAfterClose(this.state);
      await this.#context.store.copiesOf(this.topic); // resolves after all admitted requests
      const why = await whyNot?.(knownNode.node.epoch) ?? null;
      if (why !== null) {
        await this.#settle();
        return { kind: "refused", why };
      }
      await this.#writeNode(next);
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

  receive(content: TopicContentId, incoming: IncomingContent): Promise<TopicTransferReply> {
    return this.#enqueue(async () => {
      for (let tries = 0;; tries++) {
        const stored = await this.#context.store.copiesOf(this.topic);
        this.knownNode = await this.#context.nodes.read(this.topic);
        const decision = decideTopicTransfer(content, { ...stored, node: this.knownNode?.node ?? null });
        if (decision === "passed") return { kind: "passed" };
        if (decision === "stage") {
          const refused = await this.#stageContent(content, incoming);
          if (refused !== null) return refused;
        }
        if (decision !== "unknown") break;
        if (tries > 0) {
          const why = `"${this.topic}" is no longer owned by ${content.owner} with epoch ${content.epoch}`;
          return { kind: "refused", why };
        }
        await this.#context.nodes.settle(this.topic);
      }
      await this.#settle();
      return { kind: this.permit === null ? "passed" : "taken" };
    });
  }

  /** Called when the store has lost the topic. Reads the node to decide whether to open the topic again. */
  lose(): Promise<void> {
    this.state = topicStateAfterClose(this.state);
    return this.refresh();
  }

  get isBusy(): boolean {
    return this.#queueLength > 0;
  }

  /**
   * Stops admitting requests, and resolves when the running call has ended. The call ends because the session has
   * ended.
   */
  async close(): Promise<void> {
    this.state = topicStateAfterClose(this.state);
    this.#cancelRecheck();
    await this.#lastQueued;
  }

  /**
   * Hands off a served topic. Returns the receiver's reply; null if no reply came. If the copy was sealed, `permit` is
   * null afterwards.
   */
  async #handOffServed(to: string, { incarnation, epoch }: TopicPermit): Promise<TopicTransferReply | null> {
    const { store } = this.#context;
    this.#whyKept = "";
    const { copy } = await store.copiesOf(this.topic);
    if (copy?.incarnation !== incarnation || copy.epoch !== epoch) return null;
    try {
      const reply = await this.#transfer(to, copy, null);
      if (reply?.kind === "refused") this.#whyKept = reply.why;
      return reply;
    } catch (thrown) {
      if (this.permit === null || !isTransientFailure(thrown)) throw thrown;
      this.#whyKept = errorMessage(thrown);
      return null;
    }
  }

  async #stageContent(content: TopicContentId, { pieces, hash }: IncomingContent): Promise<TopicTransferReply | null> {
    const before = this.state;
    if (before.kind !== "served") this.state = { kind: "receiving" };
    try {
      const incoming = { pieces: transferPiecesUntilAbort(this.#context.signal, pieces), hash };
      await this.#context.store.importStaged(this.topic, content, incoming);
      return null;
    } catch (thrown) {
      throwIfAborted(this.#context.signal);
      if (!(thrown instanceof BatonError)) throw thrown;
      return { kind: "refused", why: thrown.message };
    } finally {
      if (this.state.kind === "receiving") this.state = before;
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

  /**
   * Settles. If the caller has read a later epoch, also reads the node again, because another server may have given the
   * topic to this server.
   */
  async #settleAt(epoch: number | null): Promise<void> {
    await this.#settle();
    if (epoch === null || (this.knownNode?.node.epoch ?? 0) >= epoch) return;
    await this.#forgetNode("sync");
    await this.#settle();
  }

  /**
   * Carries out actions until nothing is left to do. If `mustCatchUp` is true, reads the node after a sync, because the
   * receiver has confirmed that it has the topic.
   */
  async #settle({ mustCatchUp = false } = {}): Promise<void> {
    const { clock, signal } = this.#context;
    let hasCaughtUp = false;
    const mayRetry = (thrown: unknown) => {
      this.knownNode = undefined;
      return isTransientFailure(thrown);
    };
    try {
      await retryWithBackoff(async (succeeded) => {
        if (mustCatchUp) await this.#forgetNode("sync");
        hasCaughtUp ||= mustCatchUp;
        mustCatchUp = false;
        for (;;) {
          const progress = await this.#executeNextAction(hasCaughtUp);
          if (progress === "settled") return;
          hasCaughtUp ||= progress === "caught up";
          succeeded();
          throwIfAborted(signal);
        }
      }, { clock, signal, backoff: serverBackoff, mayRetry });
    } finally {
      this.state = topicStateAfterCall(this.state);
    }
  }

  /** Decides on one action and carries it out. `hasCaughtUp` is true if the node was or will be read after a sync. */
  async #executeNextAction(hasCaughtUp: boolean): Promise<Progress> {
    const { nodes, store, id, lease, clock, handoffMs } = this.#context;
    if (this.knownNode === undefined) this.knownNode = await nodes.read(this.topic);
    const node = this.knownNode?.node ?? null;
    const stored = await this.#ifDatabaseResponds(() => store.copiesOf(this.topic));
    if (stored === null) return "settled";
    const facts = { me: id, node, shared: await this.#sharedFacts(node), ...stored };
    const action = decideTopic(facts);
    this.state = topicStateAfterDecision(this.state, action.do, { facts, lease, deadlineMs: clock.now() + handoffMs });
    switch (action.do) {
      case "serve":
        this.#attempts = 0;
        this.#countOnce(node?.epoch ?? 0);
        return "settled";
      case "register":
        return await this.#noteWrite(await nodes.create(this.topic, action.next), action.next, 0);
      case "write": {
        const progress = await this.#writeNode(action.next);
        // The previous owner does not remove its count, because it is gone or does not use this database.
        const isOfDatabase = action.why === "take over" || (action.why === "take" && node?.store !== undefined);
        if (isOfDatabase && progress === "goes on") {
          void nodes.uncountForOwner(this.topic, node?.owner ?? "").catch(() => {}); // only assignments use the count
        }
        return progress;
      }
      case "hand off":
        return await this.#handOffSealed(action, facts);
      case "read again":
        if (!hasCaughtUp) return await this.#forgetNode("sync");
        // The node is still older than the stored data, so another process has to correct the tree.
        this.#scheduleRecheck();
        return "settled";
      case "missing":
        this.#context.onProblem(missingTopicError(this.topic, node, id));
        return "settled";
      case "none":
        if (this.state.kind === "waiting") this.#scheduleRecheck();
        return "settled";
      default:
        return await this.#ifDatabaseResponds<"goes on">(async () => {
          await changeStore(this.#context, this.topic, action, facts);
          return "goes on";
        }) ?? "settled";
    }
  }

  /**
   * Runs `work` on the store. If a shared database does not respond, or another server has opened the topic, returns
   * null and reads the node again soon.
   */
  async #ifDatabaseResponds<Result>(work: () => Promise<Result>): Promise<Result | null> {
    try {
      return await work();
    } catch (thrown) {
      const { sharedStore, onProblem, signal } = this.#context;
      const isExpected = thrown instanceof BatonError && thrown.code !== "INTERNAL" && !isTransientFailure(thrown);
      if (sharedStore === null || !isExpected || signal.aborted) throw thrown;
      this.state = topicStateAfterFailure(this.state, errorMessage(thrown));
      onProblem(thrown);
      this.#scheduleRecheck();
      return null;
    }
  }

  /**
   * Returns the facts about a shared store that `decideTopic` needs. Whether the owner runs matters only for topics of
   * this store, because other servers take over the topics of other stores.
   */
  async #sharedFacts(node: TopicNode | null): Promise<TopicDecisionFacts["shared"]> {
    const { sharedStore, id, addressOf } = this.#context;
    if (sharedStore === null) return null;
    const isOwn = node === null || node.owner === id || node.store !== sharedStore;
    return { store: sharedStore, isOwnerThere: isOwn || await addressOf(node.owner) !== null };
  }

  /**
   * Moves the topic to another server of the shared store. The rows stay in place, and the other server opens them at
   * the next epoch.
   */
  async #moveWithinStore(to: string): Promise<TopicHandoffResult> {
    const { store, nodes, id } = this.#context;
    this.state = topicStateAfterClose(this.state);
    await store.release(this.topic);
    const { knownNode } = this;
    if (knownNode !== null && knownNode !== undefined) {
      await this.#writeNode(topicNodeAfterTakeover(knownNode.node, to));
      if (this.knownNode?.node.owner === to) await nodes.countForOwner(this.topic, to);
      await nodes.uncountForOwner(this.topic, id);
    }
    await this.#settle();
    return topicHandoffResult(to, this.knownNode?.node, this.#whyKept);
  }

  /**
   * Counts the topic for this server once in each epoch: another server may have owned the topic in between and removed
   * the count.
   */
  #countOnce(epoch: number): void {
    if (this.#countedEpoch === epoch) return;
    this.#countedEpoch = epoch;
    const { nodes, id } = this.#context;
    void nodes.ensureCountedForOwner(this.topic, id).catch(() => {}); // only assignments use the count
  }

  /** Writes the node if the node's version is known. */
  async #writeNode(next: TopicNode): Promise<Progress> {
    const version = this.knownNode?.version;
    if (version === undefined) return await this.#forgetNode("settle");
    return await this.#noteWrite(await this.#context.nodes.write(this.topic, next, version), next, version + 1);
  }

  async #noteWrite(outcome: NodeWriteOutcome, node: TopicNode, version: number): Promise<Progress> {
    // The outcome is unknown, or another process was faster. The node is therefore read after all own writes.
    if (outcome !== "written") return await this.#forgetNode("settle");
    this.knownNode = { node, version };
    return "goes on";
  }

  async #forgetNode(catchUp: "sync" | "settle"): Promise<"caught up"> {
    await this.#context.nodes[catchUp](this.topic);
    this.knownNode = undefined;
    return "caught up";
  }

  /** Tries once to hand off a sealed copy to its receiver. After the deadline, takes back the topic. */
  async #handOffSealed(
    { to, mayTakeBack }: TopicAction & { do: "hand off" },
    { copy, node }: TopicDecisionFacts,
  ): Promise<Progress> {
    const { clock } = this.#context;
    if (copy === null || node === null || this.state.kind !== "handing off") {
      throw new BatonError("INTERNAL", `"${this.topic}" is to be handed off, but is not stored`);
    }
    const { deadlineMs } = this.state;
    const reply = clock.now() < deadlineMs ? await this.#transfer(to, copy, deadlineMs) : null;
    if (reply?.kind === "refused") this.#whyKept = reply.why;
    switch (decideTopicHandoff(reply, { isOver: clock.now() >= deadlineMs, mayTakeBack })) {
      case "look":
        this.#attempts = 0;
        await this.#forgetNode("sync");
        // The reply may be old if the receiver says that the topic has moved on but the node is unchanged.
        if (reply?.kind === "passed") await this.#pause(0);
        return "caught up";
      case "repeat":
        await this.#pause(this.#attempts++);
        return "goes on";
      case "take back":
        return await this.#writeNode(topicNodeAfterTakeBack(node));
      case "give up":
        this.state = firstTopicState; // the next attempt has its own deadline
        this.#scheduleRecheck();
        return "settled";
    }
  }

  /**
   * Tries once to send the topic. Returns the receiver's reply; null if no reply came. Seals an open copy when almost
   * all messages are sent. The deadline starts at the seal; before the seal, a transfer may take as long as data flows.
   * Rejects if the receiver cannot be looked up, or with the reason for the session's end.
   */
  async #transfer(to: string, copy: TopicCopy, deadlineMs: number | null): Promise<TopicTransferReply | null> {
    const { incarnation, baseOffset, epoch } = copy;
    const { id, store, channel, clock, handoffMs, signal } = this.#context;
    const receiver = await this.#context.addressOf(to);
    if (receiver === null) return { kind: "refused", why: `the server "${to}" is not running` };
    const late = new AbortController();
    const reason = () => new BatonError("UNREACHABLE", `The server "${to}" did not take "${this.topic}" in time`);
    using limits = new CleanupScope();
    const limit = (endMs: number) =>
      limits.add(clock.startTimer(Math.max(0, endMs - clock.now()), () => late.abort(reason())));
    if (deadlineMs !== null) limit(deadlineMs);
    try {
      const outgoing = store.export(this.topic, epoch, async () => {
        const endMs = clock.now() + handoffMs;
        this.state = { kind: "handing off", deadlineMs: endMs };
        await store.seal(this.topic, epoch, to);
        limit(endMs);
      });
      const content = { incarnation, baseOffset, owner: id, epoch };
      const ends = AbortSignal.any([signal, late.signal]);
      return await channel.transfer(receiver, this.topic, content, { outgoing, signal: ends });
    } catch (thrown) {
      throwIfAborted(signal);
      this.#whyKept = errorMessage(thrown);
      return null;
    }
  }

  async #pause(failures: number): Promise<void> {
    const { clock, signal } = this.#context;
    await sleep(clock, backoffMs(failures, serverBackoff), signal);
  }

  /** Reads the node again later, because stored data waits for another server. */
  #scheduleRecheck(): void {
    const { clock, signal } = this.#context;
    this.#cancelRecheck();
    this.#cancelRecheck = clock.startTimer(backoffMs(this.#attempts++, outageBackoff), () => {
      if (signal.aborted) return;
      this.refresh().catch((thrown) => signal.aborted || this.#context.onProblem(thrown));
    });
  }
}

/**
 * Carries out an action that changes only the store: `create`, `activate`, `release`, `drop`, `discard` or `set aside`.
 * Does nothing for other actions.
 */
async function changeStore(
  { store, nodes, id, onProblem }: OwnershipContext,
  topic: string,
  action: TopicAction,
  { node, copy, staged }: TopicDecisionFacts,
): Promise<void> {
  if (action.do === "create" && node !== null) {
    await store.create(topic, { incarnation: node.incarnation, baseOffset: node.baseOffset, epoch: node.epoch });
  } else if (action.do === "activate" && node !== null) {
    await store.activate(topic, node.epoch, action.what, node.incarnation);
  } else if (action.do === "release") {
    await store.release(topic);
  } else if (action.do === "drop") {
    await store.drop(topic, action.epoch, node?.incarnation);
    await nodes.uncountForOwner(topic, id);
  } else if (action.do === "discard" && staged !== null) {
    await store.discard(topic, staged);
  } else if (action.do === "set aside") {
    await store.setAside(topic);
    const why = "the topic was given up, or started again after the coordination service had lost its data";
    const message =
      `The stored data of topic "${topic}" (epoch ${copy?.epoch}) was set aside, because its node names ` +
      `other data: ${why}`;
    onProblem(new BatonError("CONFIG", message));
  }
}

function missingTopicError(topic: string, node: TopicNode | null, id: string): BatonError {
  return new BatonError(
    "CONFIG",
    `Topic "${topic}" is unavailable: it belongs to this server, "${id}", at epoch ${node?.epoch}, but is not in its ` +
      "store. Put the data back, or give the topic up: baton pubsub topic delete --accept-loss",
  );
}
