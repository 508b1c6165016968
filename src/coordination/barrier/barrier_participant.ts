/**
 * One party of a barrier, step by step: enter, look, decide, write or wait. Every step may be begun again after any
 * failure, because each begins by looking. Decisions are barrier_decision.ts; test/model checks the whole.
 */
import type { Acl, MultiRequest, Stat, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { backoffMs } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import { newGuid } from "../../support/guid.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { Event } from "../../support/event.ts";
import {
  type BarrierDecision,
  barrierDecision,
  type BarrierWaiting,
  seenSoFar,
  stateAfterLeaving,
} from "./barrier_decision.ts";
import { type OnMemberLost, parseParticipant, type ParticipantNode, participantPrefix } from "./barrier_nodes.ts";
import type { BarrierPath } from "./barrier_path.ts";
import {
  type BarrierState,
  type BrokenGeneration,
  formatBarrierState,
  initialBarrierState,
  parseBarrierState,
} from "./barrier_state.ts";
import { type BarrierView, participantStatuses, readBarrier } from "./barrier_view.ts";
import { changesFor } from "./barrier_writes.ts";
import { containerRequest } from "../container_request.ts";
import { createParents } from "../lock/create_contender.ts";
import { formatNodeInfo, type HolderInfo, nameOfHolder } from "../holder_info.ts";
import { isRefusal, isTransient, nullIfNoNode } from "../request_errors.ts";
import { readAfterSync } from "../read_after_sync.ts";

export interface ParticipantOptions {
  readonly path: BarrierPath;
  readonly parties: number;
  readonly onLost: OnMemberLost;
  readonly info: HolderInfo;
  readonly acl: Acl[];
  readonly clock: Clock;
  /** Called when the wait begins, and when somebody comes or goes as far as this one hears of it. */
  readonly onWaiting: (view: BarrierView, gathered: readonly ParticipantNode[]) => void;
}

export interface BarrierStarted {
  readonly do: "started";
  readonly rank: number;
  readonly generation: number;
  readonly members: readonly string[];
  readonly token: bigint;
  /** The own node. */
  readonly node: string;
}

export type ParticipantOutcome =
  | BarrierStarted
  /** Started, and its own node was gone by the time it heard of that. */
  | { readonly do: "lost" }
  | { readonly do: "broken"; readonly broken: BrokenGeneration | null }
  /** Somebody deleted its node, and a gathering that has lost a member is broken. */
  | { readonly do: "deleted" }
  | { readonly do: "disagreed"; readonly first: ParticipantNode }
  /** It gave up, and nobody can start it any more. */
  | { readonly do: "left" };

type ParticipantStep =
  | { readonly do: "enter" | "look" | "recover" }
  | { readonly do: "impatient" }
  | { readonly do: "decide"; readonly view: BarrierView | null; readonly impatient: boolean }
  | {
    readonly do: "write";
    readonly view: BarrierView;
    readonly mine: ParticipantNode;
    readonly decision: BarrierChange;
  }
  | { readonly do: "wait"; readonly decision: BarrierWaiting }
  | {
    readonly do: "quit";
    readonly view: BarrierView;
    readonly mine: ParticipantNode;
    readonly then: ParticipantOutcome;
  }
  | { readonly do: "drop"; readonly nodes: readonly string[]; readonly then: ParticipantOutcome }
  | { readonly do: "end"; readonly outcome: ParticipantOutcome };

export type BarrierChange = Extract<BarrierDecision, { do: "break" | "open" | "answer" | "start" | "move" }>;

const look: ParticipantStep = { do: "look" };
const retryWait = { firstMs: 20, maxMs: 500 };
/** How long a round may take before somebody looks whether it needs help; later looks come ever more slowly. */
const impatience = { firstMs: 400, maxMs: 5000 };
/** So many of those who have entered are remembered by name, for the sentence that says who was lost. */
const namesMax = 100;
const sessionEnded = "its session ended, or its node was deleted";

export class BarrierParticipant {
  #guid = newGuid();
  readonly #zk: ZooKeeper;
  readonly #options: ParticipantOptions;
  readonly #names = new Map<string, string>();
  #seen: readonly string[] = [];
  /** The own node has been seen on the server. */
  #isKnown = false;
  /** The own node's name, as seen last. */
  #mine: string | null = null;
  #watchesAll = false;
  #isStopped = false;
  #leaving: string | null = null;
  #looks = 0;
  #refusals = 0;
  /** An event has come since the last look. */
  #isTold = false;
  #event: Event | null = null;

  constructor(zk: ZooKeeper, options: ParticipantOptions) {
    this.#zk = zk;
    this.#options = options;
  }

  /** 128 random bits, new for every entry. */
  get guid(): string {
    return this.#guid;
  }

  /** Until started, broken, or gone. Rejects with what the server refuses for good, and when the session has ended. */
  async run(): Promise<ParticipantOutcome> {
    let step: ParticipantStep = { do: "enter" };
    for (let failures = 0; !this.#isStopped;) {
      try {
        if (step.do === "end") return step.outcome;
        step = await this.#take(step);
        failures = 0;
      } catch (thrown) {
        if (!isTransient(thrown)) throw thrown;
        // What is to be deleted stays to be deleted; of anything else it must be found out what became of it.
        if (step.do !== "drop") step = { do: "recover" };
        if (failures > 0) await this.#pause(failures);
        failures++;
      }
    }
    return { do: "left" };
  }

  /** Asks to be taken off before the start; `run` says whether it was in time. `why` ends the others' sentence. */
  giveUp(why: string): void {
    this.#leaving ??= why;
    this.#ring();
  }

  /** Sends nothing more. */
  stop(): void {
    this.#isStopped = true;
    this.#ring();
  }

  #take(step: Exclude<ParticipantStep, { do: "end" }>): Promise<ParticipantStep> {
    switch (step.do) {
      case "enter":
        return this.#enter();
      case "look":
      case "impatient":
        return this.#look(step.do === "impatient");
      case "recover":
        return readAfterSync(this.#zk, this.#options.path.barrier, () => this.#look(false));
      case "decide":
        return this.#decide(step.view, step.impatient);
      case "write":
        return this.#write(step.view, step.mine, step.decision);
      case "wait":
        return this.#wait(step.decision);
      case "quit":
        return this.#quit(step.view, step.mine, step.then);
      case "drop":
        return this.#drop(step.nodes, step.then);
    }
  }

  async #enter(): Promise<ParticipantStep> {
    const { path, acl } = this.#options;
    if (this.#leaving !== null) return { do: "end", outcome: { do: "left" } };
    const found = await nullIfNoNode(this.#zk.getData(path.barrier));
    if (this.#leaving !== null || this.#isStopped) return { do: "enter" };
    try {
      // In one write, and answered in order: the list that is read has the own node in it.
      const entering = this.#zk.multi(this.#entry(found));
      const looking = this.#look(false);
      looking.catch(() => {}); // looked at below, unless the entry has failed
      await entering;
      this.#isKnown = true;
      this.#refusals = 0;
      return await looking;
    } catch (thrown) {
      // A container was made or reaped, or somebody was faster: what is there now?
      if (!isRefusal(thrown, "BADVERSION", "NONODE", "NODEEXISTS")) throw thrown;
      if (found === null && isRefusal(thrown, "NONODE")) await createParents(this.#zk, path, acl);
      if (++this.#refusals > 2) await this.#pause(this.#refusals - 2);
      return { do: "enter" };
    }
  }

  /** The container is made in the transaction of its first child: one that never had a child would never be reaped. */
  #entry(found: { readonly data: Uint8Array; readonly stat: Stat } | null): MultiRequest[] {
    const { path: { barrier }, acl } = this.#options;
    const state = found === null ? initialBarrierState(newGuid().slice(0, 12)) : parseBarrierState(found.data, barrier);
    const guard: MultiRequest = found === null
      ? containerRequest(barrier, acl, formatBarrierState(state))
      : { type: "check", path: barrier, version: found.stat.version };
    return [guard, this.#creation(state)];
  }

  #creation({ epoch, generation }: BarrierState): MultiRequest {
    const { path: { barrier }, parties, onLost, info, acl } = this.#options;
    const prefix = participantPrefix({ epoch, generation, parties, onLost, guid: this.guid });
    const { timeoutMs: sessionTimeoutMs } = this.#zk.session;
    const data = formatNodeInfo({ ...info, sinceMs: Date.now(), sessionTimeoutMs, revoke: null });
    return { type: "create", path: `${barrier}/${prefix}`, data, acl, flags: createFlag.ephemeralSequential };
  }

  readonly #onEvent = (): void => this.#ring();

  async #look(impatient: boolean): Promise<ParticipantStep> {
    this.#isTold = false;
    const watchState = this.#onEvent;
    const view = await readBarrier(
      this.#zk,
      this.#options.path,
      this.#watchesAll ? { watchState, watchChildren: this.#onEvent } : { watchState },
    );
    return { do: "decide", view, impatient };
  }

  async #decide(view: BarrierView | null, impatient: boolean): Promise<ParticipantStep> {
    if (view === null) return this.#vanished();
    const { guid } = this;
    const { state, children } = view;
    const mine = children.map(parseParticipant).find((node) => node?.guid === guid) ?? null;
    if (mine !== null) this.#isKnown = true;
    const decision = barrierDecision({ state, children, guid, seen: this.#seen, impatient });
    if (decision.do === "run") return this.#started(state, decision, mine);
    if (decision.do === "vanished" || mine === null) return this.#vanished();
    const nodes = this.#ownNodes(children);
    if (decision.do === "broken") {
      const broken = state.broken?.generation === mine.generation ? state.broken : null;
      return { do: "drop", nodes, then: { do: "broken", broken } };
    }
    if (decision.do === "disagree") return { do: "quit", view, mine, then: { do: "disagreed", first: decision.first } };
    if (decision.do !== "move") this.#seen = seenSoFar({ state, children, seen: this.#seen });
    if (this.#leaving !== null) return { do: "quit", view, mine, then: { do: "left" } };
    if (decision.do !== "wait") return { do: "write", view, mine, decision };
    await this.#remember(decision);
    if (decision.predecessor === null && !this.#watchesAll) {
      this.#watchesAll = true;
      return look;
    }
    this.#options.onWaiting(view, decision.gathered);
    return { do: "wait", decision };
  }

  #started(
    state: BarrierState,
    { rank, isThere }: { rank: number; isThere: boolean },
    mine: ParticipantNode | null,
  ): ParticipantStep {
    const { started } = state;
    if (started === null || mine === null || !isThere) return { do: "end", outcome: { do: "lost" } };
    const { generation, members, token } = started;
    return { do: "end", outcome: { do: "started", rank, generation, members, token, node: mine.name } };
  }

  /** Its node is not there: it may never have been. */
  #vanished(): ParticipantStep {
    if (!this.#isKnown) return { do: "enter" };
    if (this.#leaving !== null) return { do: "end", outcome: { do: "left" } };
    if (this.#options.onLost === "fail") return { do: "end", outcome: { do: "deleted" } };
    this.#guid = newGuid();
    this.#seen = [];
    this.#isKnown = false;
    return { do: "enter" };
  }

  async #write(view: BarrierView, mine: ParticipantNode, decision: BarrierChange): Promise<ParticipantStep> {
    const { path, acl } = this.#options;
    const told = decision.do === "break" ? { lost: this.#nameAll(decision.lost), why: sessionEnded } : null;
    const creation = decision.do === "move" ? this.#creation(view.state) : null;
    const own = this.#ownNodes(view.children);
    try {
      await this.#zk.multi(changesFor(decision, { path, view, mine, own, acl, told, creation }));
      this.#refusals = 0;
      if (decision.do === "move") this.#seen = [];
    } catch (thrown) {
      // Somebody was faster, or something has gone: the look will tell.
      if (!isRefusal(thrown, "BADVERSION", "NONODE", "NODEEXISTS")) throw thrown;
      if (++this.#refusals > 2) await this.#pause(this.#refusals - 2);
    }
    return look;
  }

  async #wait({ predecessor, round }: BarrierWaiting): Promise<ParticipantStep> {
    const { path: { barrier }, clock } = this.#options;
    const { session } = this.#zk;
    const { connections } = session;
    const mine = this.#mine;
    const [own, before] = await Promise.all([
      mine === null ? null : this.#zk.exists(`${barrier}/${mine}`, { watch: this.#onEvent }),
      predecessor === null ? null : this.#zk.exists(`${barrier}/${predecessor.name}`, { watch: this.#onEvent }),
    ]);
    if (own === null || (predecessor !== null && before === null)) return look;
    const event = new Event();
    let impatient = false;
    const check = () => {
      if (session.connections !== connections || session.state === "ended") event.set();
    };
    const offs = [session.subscribe((change) => change === "state" && check())];
    if (round !== null) {
      const delayMs = backoffMs(this.#looks++, { ...impatience, random: () => 0.5 + Math.random() / 2 });
      offs.push(clock.after(delayMs, () => {
        impatient = true;
        event.set();
      }));
    } else this.#looks = 0;
    this.#event = event;
    check();
    if (this.#isTold || this.#isStopped) event.set();
    await event.wait();
    this.#event = null;
    for (const off of offs) off();
    // Another server may be behind the one that was asked before.
    return { do: session.connections !== connections ? "recover" : impatient ? "impatient" : "look" };
  }

  /** Gives up before the start. A version that has moved means: look again, it may have been started after all. */
  async #quit(view: BarrierView, mine: ParticipantNode, then: ParticipantOutcome): Promise<ParticipantStep> {
    const { path: { barrier }, info } = this.#options;
    const why = this.#leaving ?? "it wants another number of parties";
    const after = stateAfterLeaving(view.state, mine, { lost: [nameOfHolder(info)], why });
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
      if (!isRefusal(thrown, "BADVERSION", "NONODE")) throw thrown;
      return look;
    }
  }

  async #drop(nodes: readonly string[], then: ParticipantOutcome): Promise<ParticipantStep> {
    const { barrier } = this.#options.path;
    await Promise.all(nodes.map((name) => nullIfNoNode(this.#zk.delete(`${barrier}/${name}`, -1))));
    return { do: "end", outcome: then };
  }

  #ownNodes(children: readonly string[]): string[] {
    return children.filter((name) => parseParticipant(name)?.guid === this.guid || name.endsWith(`-${this.guid}`));
  }

  /** Of those who are seen for the first time the names are asked for: when they are lost it is too late. */
  async #remember({ gathered, predecessor }: BarrierWaiting): Promise<void> {
    this.#mine = gathered.find((node) => node.guid === this.guid)?.name ?? null;
    if (this.#options.onLost === "wait") return;
    // The first looks after everybody, the others after whoever stands before them.
    const near = predecessor === null ? gathered.slice(1) : [predecessor];
    const asked = near.filter((node) => !this.#names.has(node.guid)).slice(0, Math.max(0, namesMax - this.#names.size));
    for (const party of await participantStatuses(this.#zk, this.#options.path, asked)) {
      this.#names.set(party.node.guid, nameOfHolder(party));
    }
  }

  #nameAll(guids: readonly string[]): string[] {
    const named = guids.slice(0, 10).map((guid) => this.#names.get(guid) ?? `a member with the id ${guid}`);
    return guids.length > named.length ? [...named, `${guids.length - named.length} more`] : named;
  }

  #ring(): void {
    this.#isTold = true;
    this.#event?.set();
  }

  async #pause(failures: number): Promise<void> {
    const event = new Event();
    if (!this.#isStopped) this.#event = event;
    const cancel = this.#options.clock.after(backoffMs(failures, retryWait), event.set);
    await event.wait();
    this.#event = null;
    cancel();
  }
}
