/**
 * One topic at one server, for one session: reads its node, does what `decideTopic` says, one step after the other, until
 * there is nothing left to do. Whatever is known of the node was read after the server had announced itself.
 */
import type { Clock } from "../../support/clock.ts";
import { throwIfAborted } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import { sleep } from "../../support/deadline.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { newGuid } from "../../support/guid.ts";
import { isTransient } from "../../coordination/request_errors.ts";
import type { ContentName, IncomingContent, OwnedStore, StoredTopic } from "../store/owned_store.ts";
import type { TenureLease } from "./ownership_lease.ts";
import { decideTopic, type TopicAction, type TopicCopy } from "./topic_decision.ts";
import { forgotten, takenBack, type TopicNode } from "./topic_node.ts";
import type { ReadTopic, TopicNodes, WriteOutcome } from "./topic_nodes.ts";
import type { Peer, TransferChannel, TransferReply } from "./transfer_channel.ts";
import { receivedUntil, sendTopic } from "./send_topic.ts";
import { changeStore, missingTopic } from "./change_store.ts";
import { decideTransfer } from "./transfer_decision.ts";

/** What all topics of a session share. */
export interface Tenure {
  /** The server's own id. */
  readonly id: string;
  readonly nodes: TopicNodes;
  readonly store: OwnedStore;
  readonly channel: TransferChannel;
  readonly lease: TenureLease;
  readonly clock: Clock;
  /** Aborts with the session. */
  readonly signal: AbortSignal;
  /** How long a hand-over is tried before its owner takes the topic back, in milliseconds. */
  readonly handOverMs: number;
  /** Null when the server is not there. */
  peer(id: string): Promise<Peer | null>;
  /** Of what an operator should know. */
  onProblem(problem: unknown): void;
}

/** What requests are let in by. */
export interface Permit {
  readonly epoch: number;
  readonly incarnation: string;
}

export type HandOverResult =
  | { readonly kind: "moved"; readonly epoch: number }
  /** It is still here, and served. */
  | { readonly kind: "kept"; readonly why: string };

export type DeleteResult = { readonly kind: "deleted" } | { readonly kind: "kept"; readonly why: string };

const retryWait = { firstMs: 50, maxMs: 2000 };
const recheckWait = { firstMs: 500, maxMs: 30_000 };

export class OwnedTopic {
  /** While requests may be let in. */
  permit: Permit | null = null;
  /** As read or written last. */
  known: ReadTopic | null | undefined = undefined;
  /** What was done last: why it is not served. */
  last: TopicAction["do"] | null = null;
  /** Its content is on its way, from here or to here, which may take long. */
  isInTransfer = false;
  readonly topic: string;
  readonly #tenure: Tenure;
  #tail: Promise<unknown> = Promise.resolve();
  #queued: Promise<void> | null = null;
  #rechecks = 0;
  #cancelRecheck: () => void = () => {};
  #giveUpAtMs = 0;
  #whyKept = "";
  #isCounted = false;
  #waiting = 0;
  #isOld = false;
  /** What is known was read behind a sync. */
  #isFresh = false;
  /** The receiver has said that it has the topic: the node is to be read behind a sync. */
  #isTold = false;

  constructor(topic: string, tenure: Tenure) {
    this.topic = topic;
    this.#tenure = tenure;
  }

  /** Does what there is to do. Calls that wait for their turn are one. */
  settle(): Promise<void> {
    if (this.#queued !== null) return this.#queued;
    const queued = this.#next(() => {
      this.#queued = null;
      if (this.#isOld && this.permit === null) this.known = undefined;
      this.#isOld = false;
      return this.#settle();
    });
    this.#queued = queued;
    return queued;
  }

  /** Reads the node again first, unless it is served: then nobody else can have changed it. */
  refresh(): Promise<void> {
    this.#isOld = true;
    return this.settle();
  }

  /**
   * Gives the topic to `to`: sends its messages while it is served, seals it, sends the rest. `epoch` names what is to be
   * moved: an old request moves nothing. What fails before the seal leaves everything as it was.
   */
  handOver(to: string, epoch: number | null): Promise<HandOverResult> {
    return this.#next(async () => {
      await this.#settle();
      const { permit } = this;
      if (permit === null) {
        const why = this.last === "miss" ? "this server does not have its data" : "this server does not serve it";
        return { kind: "kept", why };
      }
      if (epoch !== null && epoch !== permit.epoch) {
        return { kind: "kept", why: `epoch ${epoch} was to be moved, and this is ${permit.epoch}` };
      }
      if (to === this.#tenure.id) return { kind: "kept", why: "it is there already" };
      const reply = await this.#sendOpen(to, permit);
      if (this.permit !== null) return { kind: "kept", why: this.#whyKept === "" ? "it was not taken" : this.#whyKept };
      this.#isTold = reply?.kind === "taken" || reply?.kind === "passed";
      await this.#settle();
      const node = this.known?.node;
      if (node?.owner === to) return { kind: "moved", epoch: node.epoch };
      return { kind: "kept", why: this.#whyKept === "" ? `its node names "${node?.owner}"` : this.#whyKept };
    });
  }

  /**
   * An operator gives the topic up: nothing more is let in, what was let in is done, and then the node is another content's, which
   * nobody has; whoever puts into it next begins with nothing, and no number is used again. `whyNot` looks at the topic when nothing
   * more is let in; with null what belongs here and is damaged or missing is given up as well.
   */
  delete(epoch: number | null, whyNot: ((epoch: number) => Promise<string | null>) | null): Promise<DeleteResult> {
    return this.#next(async () => {
      await this.#settle();
      const { known, permit } = this;
      const isMissing = this.last === "miss" && known?.node.owner === this.#tenure.id;
      if (known === null || known === undefined || (permit === null && !(isMissing && whyNot === null))) {
        return { kind: "kept", why: isMissing ? "its data is not here" : "this server does not serve it" };
      }
      if (epoch !== null && epoch !== known.node.epoch) {
        return { kind: "kept", why: `it is at epoch ${known.node.epoch}` };
      }
      const next = forgotten(known.node, newGuid());
      if (next === null) return { kind: "kept", why: "no message numbers are left for it" };
      this.permit = null;
      await this.#tenure.store.look(this.topic); // behind all that was let in
      const why = await whyNot?.(known.node.epoch) ?? null;
      if (why !== null) {
        await this.#settle();
        return { kind: "kept", why };
      }
      await this.#wrote(await this.#write(next), next, known.version + 1);
      this.known ??= await this.#tenure.nodes.read(this.topic);
      const isGone = this.known?.node.incarnation === next.incarnation;
      if (isGone) {
        await this.#tenure.store.drop(this.topic, next.epoch);
        await this.#tenure.nodes.uncount(this.topic, this.#tenure.id);
      }
      await this.#settle();
      return isGone ? { kind: "deleted" } : { kind: "kept", why: "it was changed meanwhile" };
    });
  }

  /** What another server sends. */
  receive(content: ContentName, incoming: IncomingContent): Promise<TransferReply> {
    return this.#next(async () => {
      for (let tries = 0;; tries++) {
        const stored = await this.#tenure.store.look(this.topic);
        this.known = await this.#tenure.nodes.read(this.topic);
        const decision = decideTransfer(content, { ...stored, node: this.known?.node ?? null });
        if (decision === "passed") return { kind: "passed" };
        if (decision === "stage") {
          const refused = await this.#stage(content, incoming);
          if (refused !== null) return refused;
        }
        if (decision !== "unknown") break;
        if (tries > 0) return { kind: "refused", why: `"${this.topic}" is not ${content.owner}'s at ${content.epoch}` };
        await this.#tenure.nodes.catchUp(this.topic);
      }
      await this.#settle();
      return { kind: this.permit === null ? "passed" : "taken" };
    });
  }

  /** Somebody's call has not come to its end. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  /** Resolves when what is under way has come to its end, which the tenure's end brings about. */
  async close(): Promise<void> {
    this.permit = null;
    this.#cancelRecheck();
    await this.#tail;
  }

  /** The reply; null when none came, or when the receiver could not be asked. Sealed or not is seen by the permit. */
  async #sendOpen(to: string, { incarnation, epoch }: Permit): Promise<TransferReply | null> {
    const { store } = this.#tenure;
    this.#whyKept = "";
    const { copy } = await store.look(this.topic);
    if (copy?.incarnation !== incarnation || copy.epoch !== epoch) return null;
    try {
      const reply = await this.#transfer(to, copy);
      if (reply?.kind === "refused") this.#whyKept = reply.why;
      return reply;
    } catch (thrown) {
      if (this.permit === null || !isTransient(thrown)) throw thrown;
      this.#whyKept = messageOf(thrown);
      return null;
    }
  }

  async #seal(epoch: number, to: string): Promise<void> {
    const { store, clock, handOverMs } = this.#tenure;
    this.permit = null;
    this.isInTransfer = true;
    this.#giveUpAtMs = clock.now() + handOverMs;
    await store.seal(this.topic, epoch, to);
  }

  async #stage(content: ContentName, { pieces, hash }: IncomingContent): Promise<TransferReply | null> {
    this.isInTransfer = true;
    try {
      const incoming = { pieces: receivedUntil(this.#tenure.signal, pieces), hash };
      await this.#tenure.store.importStaged(this.topic, content, incoming);
      return null;
    } catch (thrown) {
      throwIfAborted(this.#tenure.signal);
      if (!(thrown instanceof BatonError)) throw thrown;
      return { kind: "refused", why: thrown.message };
    } finally {
      this.isInTransfer = false;
    }
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++;
    const turn = this.#tail.then(() => {
      throwIfAborted(this.#tenure.signal);
      return work();
    }).finally(() => this.#waiting--);
    this.#tail = turn.catch(() => {});
    return turn;
  }

  async #settle(): Promise<void> {
    this.#isFresh = false;
    try {
      for (let failures = 0;;) {
        throwIfAborted(this.#tenure.signal);
        try {
          if (await this.#step() === "settled") return;
          failures = 0;
        } catch (thrown) {
          if (!isTransient(thrown)) throw thrown;
          this.known = undefined;
          await this.#pause(failures++);
        }
      }
    } finally {
      this.isInTransfer = false;
    }
  }

  async #step(): Promise<"settled" | "goes on"> {
    const { nodes, store, id } = this.#tenure;
    if (this.#isTold) await this.#readAgain();
    this.#isTold = false;
    if (this.known === undefined) this.known = await nodes.read(this.topic);
    const { known } = this;
    const stored = await store.look(this.topic);
    const action = decideTopic({ me: id, node: known?.node ?? null, ...stored });
    this.last = action.do;
    if (action.do !== "serve") this.permit = null;
    switch (action.do) {
      case "serve":
        this.#open(stored);
        return "settled";
      case "register":
        return await this.#wrote(await nodes.create(this.topic, action.next), action.next, 0);
      case "write":
        return await this.#wrote(await this.#write(action.next), action.next, (known?.version ?? 0) + 1);
      case "hand over":
        return await this.#send(action, stored);
      case "read again":
        // Read as it is, and still older than what is here: the tree is, and others have to mend it.
        if (this.#isFresh) {
          this.#recheck();
          return "settled";
        }
        await this.#readAgain();
        return "goes on";
      case "miss":
        this.#tenure.onProblem(missingTopic(this.topic, known?.node, id));
        return "settled";
      case "rest":
        if (stored.copy !== null || stored.staged !== null) this.#recheck();
        return "settled";
      default:
        await changeStore(this.#tenure, this.topic, { action, node: known?.node, stored });
        return "goes on";
    }
  }

  #open({ copy }: StoredTopic): void {
    const { nodes, id } = this.#tenure;
    this.#giveUpAtMs = 0;
    this.#rechecks = 0;
    if (copy === null || (this.permit?.epoch === copy.epoch && this.permit.incarnation === copy.incarnation)) return;
    this.permit = { epoch: copy.epoch, incarnation: copy.incarnation };
    if (this.#isCounted) return;
    this.#isCounted = true;
    void nodes.keepCounted(this.topic, id).catch(() => {}); // only assignments go by it
  }

  async #write(next: TopicNode): Promise<WriteOutcome> {
    const version = this.known?.version;
    return version === undefined ? "refused" : await this.#tenure.nodes.write(this.topic, next, version);
  }

  async #wrote(outcome: WriteOutcome, node: TopicNode, version: number): Promise<"goes on"> {
    if (outcome === "written") this.known = { node, version };
    // Unknown, or others were faster: what the node says decides, once this connection sees it.
    else await this.#readAgain();
    return "goes on";
  }

  async #readAgain(): Promise<void> {
    await this.#tenure.nodes.catchUp(this.topic);
    this.known = undefined;
    this.#isFresh = true;
  }

  /** One attempt to have the receiver take it; or the topic taken back. */
  async #send(action: TopicAction & { do: "hand over" }, { copy }: StoredTopic): Promise<"settled" | "goes on"> {
    const { clock, handOverMs } = this.#tenure;
    if (copy === null) throw new BatonError("INTERNAL", `"${this.topic}" is to be handed over and is not there`);
    this.isInTransfer = true; // until it has settled, whatever is tried
    if (this.#giveUpAtMs === 0) this.#giveUpAtMs = clock.now() + handOverMs;
    const reply = clock.now() < this.#giveUpAtMs ? await this.#transfer(action.to, copy) : null;
    if (reply?.kind === "taken" || reply?.kind === "passed") {
      this.#rechecks = 0;
      await this.#readAgain();
      // Passed it, and the node still says the same: then its answer was an old one.
      if (reply.kind === "passed") await this.#pause(0);
      return "goes on";
    }
    if (reply?.kind === "refused") this.#whyKept = reply.why;
    const isHopeless = reply?.kind === "refused" || clock.now() >= this.#giveUpAtMs;
    if (!isHopeless) await this.#pause(this.#rechecks++);
    else if (action.mayTakeBack) return await this.#takeBack();
    else {
      this.#giveUpAtMs = 0;
      this.#recheck();
      return "settled";
    }
    return "goes on";
  }

  async #takeBack(): Promise<"goes on"> {
    const { known } = this;
    if (known === null || known === undefined) return "goes on";
    const next = takenBack(known.node);
    return await this.#wrote(await this.#write(next), next, known.version + 1);
  }

  /** Null when no answer came. An open copy is sealed on the way. */
  async #transfer(to: string, copy: TopicCopy): Promise<TransferReply | null> {
    const sent = await sendTopic(this.#tenure, this.topic, copy, {
      to,
      seal: () => this.#seal(copy.epoch, to),
      giveUpAtMs: () => this.#giveUpAtMs,
    });
    if (sent.kind !== "unanswered") return sent;
    this.#whyKept = sent.why;
    return null;
  }

  async #pause(failures: number): Promise<void> {
    const { clock, signal } = this.#tenure;
    await sleep(clock, backoffMs(failures, retryWait), signal);
  }

  /** Something is left here that others have to move on first. */
  #recheck(): void {
    const { clock, signal } = this.#tenure;
    this.#cancelRecheck();
    this.#cancelRecheck = clock.after(recheckWait.firstMs + backoffMs(this.#rechecks++, recheckWait), () => {
      if (signal.aborted) return;
      this.refresh().catch((thrown) => signal.aborted || this.#tenure.onProblem(thrown));
    });
  }
}
