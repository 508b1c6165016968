/**
 * One participant of a barrier, step by step: enter, read, decide, write or wait. Each step begins by reading the
 * state, so that a step can be repeated after any failure. barrier_decision.ts decides; test/coordination/model checks
 * the protocol.
 */
import type { Acl, MultiRequest, Stat, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { CleanupScope } from "../../base/support/abort.ts";
import { type Backoff, backoffMs } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { newGuid } from "../../base/support/guid.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import {
  addSeenBarrierParticipants,
  type BarrierChangeDecision,
  barrierDecisionRequests,
  barrierStateAfterLeaving,
  type BarrierWaitDecision,
  decideBarrierStep,
} from "./barrier_decision.ts";
import {
  type BarrierMemberLossPolicy,
  type BarrierParticipantNode,
  barrierParticipantNodePrefix,
  type BarrierState,
  type BrokenBarrierGeneration,
  formatBarrierState,
  initialBarrierState,
  parseBarrierParticipantNode,
  parseBarrierState,
} from "./barrier_state.ts";
import { type BarrierView, readBarrierParticipants, readBarrierView } from "./barrier_view.ts";
import { createContainerRequest, createParentNodes } from "../nodes/create_nodes.ts";
import { formatNewHolderNodeInfo, type HolderInfo, nameOfHolder } from "../nodes/holder_info.ts";
import { type ArmedNodeWatch, ContenderWaits } from "../nodes/session_waits.ts";
import { deleteNodeIfThere, isServerRefusal, nullIfNoNode, readAfterOwnWrites } from "../nodes/node_requests.ts";

export interface BarrierParticipantOptions {
  /**
   * The path of the barrier's node. The node's data is the state, its version protects changes, and its children are
   * participants.
   */
  readonly path: string;
  readonly parties: number;
  readonly onLost: BarrierMemberLossPolicy;
  readonly info: HolderInfo;
  readonly acl: Acl[];
  readonly clock: Clock;
  /** Called when the wait begins, and when this participant learns that others came or left. */
  readonly onWaiting: (view: BarrierView, gathered: readonly BarrierParticipantNode[]) => void;
}

export interface StartedParticipant {
  readonly do: "started";
  readonly rank: number;
  readonly generation: number;
  readonly members: readonly string[];
  readonly token: bigint;
  readonly node: string;
}

export type BarrierParticipantOutcome =
  | StartedParticipant
  /** The barrier was started, but this participant's node was gone before the participant learned of the start. */
  | { readonly do: "lost" }
  | { readonly do: "broken"; readonly broken: BrokenBarrierGeneration | null }
  /** This participant's node was deleted, so the generation is broken. */
  | { readonly do: "deleted" }
  | { readonly do: "disagreed"; readonly first: BarrierParticipantNode }
  /** The participant gave up; the barrier can no longer start with it. */
  | { readonly do: "left" };

type ParticipantStep =
  | { readonly do: "enter" | "read" | "recover" }
  | { readonly do: "impatient" }
  | { readonly do: "decide"; readonly view: BarrierView | null; readonly impatient: boolean }
  | {
    readonly do: "write";
    readonly view: BarrierView;
    readonly mine: BarrierParticipantNode;
    readonly decision: BarrierChangeDecision;
  }
  | { readonly do: "wait"; readonly decision: BarrierWaitDecision }
  | {
    readonly do: "quit";
    readonly view: BarrierView;
    readonly mine: BarrierParticipantNode;
    readonly then: BarrierParticipantOutcome;
  }
  | { readonly do: "drop"; readonly nodes: readonly string[]; readonly then: BarrierParticipantOutcome }
  | { readonly do: "end"; readonly outcome: BarrierParticipantOutcome };

const read: ParticipantStep = { do: "read" };
/** How long a round may take before a participant checks the round. The time grows with each check. */
const roundCheck: Backoff = { firstMs: 400, maxMs: 5000, jitter: 0.5 };
/** The most names of other participants that are kept for the message about a lost member. */
const namesMax = 100;
const sessionEnded = "its session ended, or its node was deleted";

export class BarrierParticipant {
  #guid = newGuid();
  readonly #zk: ZooKeeper;
  readonly #options: BarrierParticipantOptions;
  readonly #names = new Map<string, string>();
  #seen: readonly string[] = [];
  /** True if a response has shown that this participant's node exists. */
  #isKnown = false;
  /** The name of this participant's node in the last list; null if the list did not contain the node. */
  #mine: string | null = null;
  #watchesAll = false;
  #leaving: string | null = null;
  #checks = 0;
  #refusals = 0;
  readonly #waits: ContenderWaits;
  /** The watch on the nodes that were read last. Each event sets it. */
  #armed: ArmedNodeWatch;

  constructor(zk: ZooKeeper, options: BarrierParticipantOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#waits = new ContenderWaits(zk.session, options.clock);
    this.#armed = this.#waits.arm();
  }

  /** The GUID of this entry: random, and new for each entry. */
  get guid(): string {
    return this.#guid;
  }

  /**
   * Runs until the barrier is started or broken, or this participant has left. Rejects when the server permanently
   * refuses a request or the session ends.
   */
  async run(): Promise<BarrierParticipantOutcome> {
    let step: ParticipantStep = { do: "enter" };
    const outcome = await this.#waits.repeat(async () => {
      if (step.do !== "end") step = await this.#runStep(step);
      return step.do === "end" ? step.outcome : null;
    }, () => {
      // A deletion can simply be repeated. After any other request, the outcome must first be read.
      if (step.do !== "drop") step = { do: "recover" };
    });
    return outcome ?? { do: "left" };
  }

  /**
   * Asks `run` to leave before the start. The outcome of `run` shows whether that was in time. The other participants
   * print the reason `why`.
   */
  giveUp(why: string): void {
    this.#leaving ??= why;
    this.#onEvent();
    this.#waits.wake();
  }

  #runStep(step: Exclude<ParticipantStep, { do: "end" }>): Promise<ParticipantStep> {
    switch (step.do) {
      case "enter":
        return this.#enter();
      case "read":
      case "impatient":
        return this.#read(step.do === "impatient");
      case "recover":
        return readAfterOwnWrites(this.#zk, this.#options.path, () => this.#read(false));
      case "decide":
        return this.#decide(step.view, step.impatient);
      case "write":
        return this.#write(step.view, step.mine, step.decision);
      case "wait":
        return this.#wait(step.decision);
      case "quit":
        return this.#leaveBeforeStart(step.view, step.mine, step.then);
      case "drop":
        return this.#deleteNodes(step.nodes, step.then);
    }
  }

  async #enter(): Promise<ParticipantStep> {
    const { path, acl } = this.#options;
    if (this.#leaving !== null) return { do: "end", outcome: { do: "left" } };
    const found = await nullIfNoNode(this.#zk.getData(path));
    if (this.#leaving !== null) return { do: "enter" };
    try {
      // Requests are processed in this order, so the list contains this participant's node.
      const entering = this.#zk.multi(this.#entryRequests(found));
      const reading = this.#read(false);
      reading.catch(() => {}); // handled below
      await entering;
      this.#isKnown = true;
      this.#refusals = 0;
      return await reading;
    } catch (thrown) {
      // The container was created or removed, or another participant was faster: read again.
      if (!isServerRefusal(thrown, "BADVERSION", "NONODE", "NODEEXISTS")) throw thrown;
      if (found === null && isServerRefusal(thrown, "NONODE")) await createParentNodes(this.#zk, path, acl);
      if (++this.#refusals > 2) await this.#waits.pause(this.#refusals - 2);
      return { do: "enter" };
    }
  }

  /**
   * Creates the container together with its first child, because the server never removes a container that had no
   * child.
   */
  #entryRequests(found: { readonly data: Uint8Array; readonly stat: Stat } | null): MultiRequest[] {
    const { path: barrier, acl } = this.#options;
    this.#zk.usesContainer?.(barrier);
    const state = found === null ? initialBarrierState(newGuid().slice(0, 12)) : parseBarrierState(found.data, barrier);
    const guard: MultiRequest = found === null
      ? createContainerRequest(barrier, acl, formatBarrierState(state))
      : { type: "check", path: barrier, version: found.stat.version };
    return [guard, this.#createRequest(state)];
  }

  #createRequest({ epoch, generation }: BarrierState): MultiRequest {
    const { path: barrier, parties, onLost, info, acl } = this.#options;
    const prefix = barrierParticipantNodePrefix({ epoch, generation, parties, onLost, guid: this.guid });
    const data = formatNewHolderNodeInfo(info, this.#zk.session);
    return { type: "create", path: `${barrier}/${prefix}`, data, acl, flags: createFlag.ephemeralSequential };
  }

  readonly #onEvent = (): void => this.#armed.event.set();

  async #read(impatient: boolean): Promise<ParticipantStep> {
    this.#armed = this.#waits.arm();
    const watchState = this.#onEvent;
    const view = await readBarrierView(
      this.#zk,
      this.#options.path,
      this.#watchesAll ? { watchState, watchChildren: this.#onEvent } : { watchState },
    );
    return { do: "decide", view, impatient };
  }

  async #decide(view: BarrierView | null, impatient: boolean): Promise<ParticipantStep> {
    if (view === null) return this.#stepWithoutNode();
    const { guid } = this;
    const { state, children } = view;
    const mine = children.map(parseBarrierParticipantNode).find((node) => node?.guid === guid) ?? null;
    if (mine !== null) this.#isKnown = true;
    const decision = decideBarrierStep({ state, children, guid, seen: this.#seen, impatient });
    if (decision.do === "run") return this.#stepAfterStart(state, decision, mine);
    if (decision.do === "vanished" || mine === null) return this.#stepWithoutNode();
    const nodes = this.#ownNodes(children);
    if (decision.do === "broken") {
      const broken = state.broken?.generation === mine.generation ? state.broken : null;
      return { do: "drop", nodes, then: { do: "broken", broken } };
    }
    if (decision.do === "disagree") return { do: "quit", view, mine, then: { do: "disagreed", first: decision.first } };
    if (decision.do !== "move") this.#seen = addSeenBarrierParticipants({ state, children, seen: this.#seen });
    if (this.#leaving !== null) return { do: "quit", view, mine, then: { do: "left" } };
    if (decision.do !== "wait") return { do: "write", view, mine, decision };
    await this.#readNames(decision);
    if (decision.predecessor === null && !this.#watchesAll) {
      this.#watchesAll = true;
      return read;
    }
    this.#options.onWaiting(view, decision.gathered);
    return { do: "wait", decision };
  }

  #stepAfterStart(
    state: BarrierState,
    { rank, isThere }: { rank: number; isThere: boolean },
    mine: BarrierParticipantNode | null,
  ): ParticipantStep {
    const { started } = state;
    if (started === null || mine === null || !isThere) return { do: "end", outcome: { do: "lost" } };
    const { generation, members, token } = started;
    return { do: "end", outcome: { do: "started", rank, generation, members, token, node: mine.name } };
  }

  /** Does a step without this participant's node, which may never have existed. */
  async #stepWithoutNode(): Promise<ParticipantStep> {
    if (!this.#isKnown) return { do: "enter" };
    if (this.#leaving !== null) return { do: "end", outcome: { do: "left" } };
    // Another server of the ensemble may still have the node.
    if (this.#mine !== null) await deleteNodeIfThere(this.#zk, `${this.#options.path}/${this.#mine}`);
    this.#mine = null;
    if (this.#options.onLost === "fail") return { do: "end", outcome: { do: "deleted" } };
    this.#guid = newGuid();
    this.#seen = [];
    this.#isKnown = false;
    return { do: "enter" };
  }

  async #write(
    view: BarrierView,
    mine: BarrierParticipantNode,
    decision: BarrierChangeDecision,
  ): Promise<ParticipantStep> {
    const { path, acl } = this.#options;
    const loss = decision.do === "break" ? { lost: this.#namesOf(decision.lost), why: sessionEnded } : null;
    const creation = decision.do === "move" ? this.#createRequest(view.state) : null;
    const own = this.#ownNodes(view.children);
    try {
      await this.#zk.multi(barrierDecisionRequests(decision, { path, view, mine, own, acl, loss, creation }));
      this.#refusals = 0;
      if (decision.do === "move") this.#seen = [];
    } catch (thrown) {
      // Another participant was faster, or a node is gone: read again.
      if (!isServerRefusal(thrown, "BADVERSION", "NONODE", "NODEEXISTS")) throw thrown;
      if (++this.#refusals > 2) await this.#waits.pause(this.#refusals - 2);
    }
    return read;
  }

  async #wait({ predecessor, round }: BarrierWaitDecision): Promise<ParticipantStep> {
    const { path: barrier, clock } = this.#options;
    const mine = this.#mine;
    const [own, before] = await Promise.all([
      mine === null ? null : this.#zk.exists(`${barrier}/${mine}`, { watch: this.#onEvent }),
      predecessor === null ? null : this.#zk.exists(`${barrier}/${predecessor.name}`, { watch: this.#onEvent }),
    ]);
    if (own === null || (predecessor !== null && before === null)) return read;
    let impatient = false;
    using timers = new CleanupScope();
    if (round === null) this.#checks = 0;
    else {
      timers.add(clock.startTimer(backoffMs(this.#checks++, roundCheck), () => {
        impatient = true;
        this.#onEvent();
      }));
    }
    // The new server may lag behind the previous one.
    return await this.#waits.waitFor(this.#armed) ? { do: impatient ? "impatient" : "read" } : { do: "recover" };
  }

  /**
   * Leaves before the start. If the version has changed, reads the state again, because the barrier may have been
   * started.
   */
  async #leaveBeforeStart(
    view: BarrierView,
    mine: BarrierParticipantNode,
    then: BarrierParticipantOutcome,
  ): Promise<ParticipantStep> {
    const { path: barrier, info } = this.#options;
    const why = this.#leaving ?? "it requires another number of parties";
    const after = barrierStateAfterLeaving(view.state, mine, { lost: [nameOfHolder(info)], why });
    const guard: MultiRequest = after === null || then.do === "disagreed"
      ? { type: "check", path: barrier, version: view.version }
      : { type: "setData", path: barrier, data: formatBarrierState(after), version: view.version };
    const nodes = this.#ownNodes(view.children);
    try {
      await this.#zk.multi([
        guard,
        ...nodes.map((name): MultiRequest => ({ type: "delete", path: `${barrier}/${name}`, version: -1 })),
      ]);
      return { do: "end", outcome: then };
    } catch (thrown) {
      if (!isServerRefusal(thrown, "BADVERSION", "NONODE")) throw thrown;
      return read;
    }
  }

  async #deleteNodes(nodes: readonly string[], then: BarrierParticipantOutcome): Promise<ParticipantStep> {
    const { path: barrier } = this.#options;
    await Promise.all(nodes.map((name) => deleteNodeIfThere(this.#zk, `${barrier}/${name}`)));
    return { do: "end", outcome: then };
  }

  #ownNodes(children: readonly string[]): string[] {
    return children.filter((name) =>
      parseBarrierParticipantNode(name)?.guid === this.guid || name.endsWith(`-${this.guid}`)
    );
  }

  /** Reads the names of new participants now, because they can no longer be read after a loss. */
  async #readNames({ gathered, predecessor }: BarrierWaitDecision): Promise<void> {
    this.#mine = gathered.find((node) => node.guid === this.guid)?.name ?? null;
    if (this.#options.onLost === "wait") return;
    // The first participant watches all others; every other participant watches its predecessor.
    const near = predecessor === null ? gathered.slice(1) : [predecessor];
    const asked = near.filter((node) => !this.#names.has(node.guid)).slice(0, Math.max(0, namesMax - this.#names.size));
    for (const party of await readBarrierParticipants(this.#zk, this.#options.path, asked)) {
      this.#names.set(party.node.guid, nameOfHolder(party));
    }
  }

  #namesOf(guids: readonly string[]): string[] {
    const named = guids.slice(0, 10).map((guid) => this.#names.get(guid) ?? `a member with the id ${guid}`);
    return guids.length > named.length ? [...named, `${guids.length - named.length} more`] : named;
  }
}
