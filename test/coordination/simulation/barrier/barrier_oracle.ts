/**
 * Knows the truth about the barriers and gates of a simulated world: what is on the keeper's disk, and which processes
 * were alive when. Judges each start, and what the members believe.
 */
import type { BarrierMembership } from "../../../../src/coordination/barrier/barrier_membership.ts";
import {
  type BarrierParticipantNode,
  type BarrierState,
  parseBarrierParticipantNode,
  parseBarrierState,
} from "../../../../src/coordination/barrier/barrier_state.ts";
import type { ZNode } from "../../../../src/coordination/keeper/state/tree.ts";
import { nameOf, type StoredTree, type TreeObserver } from "../../../world/stored_tree.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";

/** One life of a process. */
interface Life {
  readonly process: SimProcess;
  endedMs: number | null;
}

/** A participant whose node was on the disk. */
interface Entry {
  readonly sessionId: bigint;
  readonly life: Life | undefined;
  readonly atMs: number;
  isStarted: boolean;
  /** The member knows that it was started. */
  isTold: boolean;
  /**
   * Its nodes on the disk: another one when it moves to another generation; and the commit that has removed the last
   * one.
   */
  readonly nodes: Set<string>;
  goneIn: number;
}

/** A membership that a process works under. */
export interface MembershipInUse {
  readonly process: SimProcess;
  readonly life: number;
  readonly membership: BarrierMembership;
}

interface GateHistory {
  isClosed: boolean;
  /** The last time at which it was open, or may have been; and the same for closed. */
  openMs: number;
  closedMs: number;
}

export class BarrierOracle implements TreeObserver {
  readonly #world: SimWorld;
  readonly #tree: StoredTree;
  readonly #isEager: boolean;
  readonly #lives = new Map<bigint, Life>();
  readonly #entries = new Map<string, Entry>();
  readonly #inUse = new Set<MembershipInUse>();
  readonly #lastStart = new Map<
    string,
    { readonly epoch: string; readonly generation: number; readonly token: bigint }
  >();
  /** The generation that could be entered after the last commit. */
  readonly #open = new Map<string, { readonly epoch: string; readonly generation: number }>();
  readonly #gates = new Map<string, GateHistory>();
  /**
   * What a participant has seen of the others of its generation, which ends with the first one of them that is lost.
   */
  readonly #seen = new Map<string, Set<string>>();
  /** The commits that removed the nodes of participants, and those that opened the last round of each barrier. */
  readonly #goneIn = new Map<string, number>();
  readonly #rounds = new Map<string, { readonly id: string; readonly openedIn: number }>();
  #atResponse: ((responder: SimProcess) => void)[] = [];
  #changed = new Set<string>();
  #commits = 0;
  /** A node came and went within one commit. */
  #hiddenMs = -1;

  constructor(world: SimWorld, tree: StoredTree, { isEager }: { readonly isEager: boolean }) {
    this.#world = world;
    this.#tree = tree;
    this.#isEager = isEager;
    tree.observers.push(this);
  }

  /** A process that runs as a member now, or else one that waits. */
  get holder(): SimProcess | undefined {
    for (const { process, life } of this.#inUse) if (process.life === life) return process;
    for (const { isStarted, life } of [...this.#entries.values()].reverse()) {
      if (!isStarted && life?.endedMs === null) return life.process;
    }
    return undefined;
  }

  /** A process has a session. Call it before the session enters a barrier. */
  connected(process: SimProcess, sessionId: bigint): void {
    const life: Life = { process, endedMs: null };
    this.#lives.set(sessionId, life);
    process.whenDead(() => life.endedMs = this.#world.nowMs);
  }

  /** Calls back once, when the next response to a round is on the disk. */
  atNextResponse(call: (responder: SimProcess) => void): void {
    this.#atResponse.push(call);
  }

  /** A process has received the names of the nodes of a barrier. */
  listed(sessionId: bigint, children: readonly string[]): void {
    const nodes = children.map(parseBarrierParticipantNode).filter((node) => node?.onLost === "fail");
    for (const mine of nodes) {
      if (mine === null || this.#entries.get(mine.guid)?.sessionId !== sessionId) continue;
      const seen = this.#seen.get(keyOf(mine)) ?? new Set();
      this.#seen.set(keyOf(mine), seen);
      for (const node of nodes) {
        if (node === null || node.epoch !== mine.epoch || node.generation !== mine.generation) continue;
        if (node.parties === mine.parties) seen.add(node.guid);
      }
    }
  }

  began(process: SimProcess, membership: BarrierMembership): MembershipInUse {
    const used = { process, life: process.life, membership };
    const entry = this.#entries.get(membership.holderId);
    if (entry !== undefined) entry.isTold = true;
    if (!this.check(used)) return used;
    this.#inUse.add(used);
    return used;
  }

  ended(used: MembershipInUse): void {
    this.#inUse.delete(used);
  }

  /**
   * Whether the process is a member, by its own account; fails the run if that is not so. Call it in a turn of the
   * process.
   */
  check({ process, membership }: MembershipInUse): boolean {
    if (!membership.isHeld()) return false;
    const { path, holderId, rank, size, generation, fencingToken } = membership;
    const what =
      `${process.name} believes that it has rank ${rank} of generation ${generation} with token ${fencingToken}`;
    const own = this.#tree.childrenOf(path).find((node) =>
      parseBarrierParticipantNode(nameOf(node.path))?.guid === holderId
    );
    const started = this.#stateAt(path)?.started;
    if (own === undefined) this.#world.fail("member without a node", what);
    else if (
      started?.generation !== generation || started.members[rank] !== holderId || started.token !== fencingToken ||
      started.members.length !== size
    ) this.#world.fail("two generations", `${what}; started: ${JSON.stringify(started?.members)}`);
    return true;
  }

  /** The leave of a member was confirmed: no other member of its generation may run. */
  left({ process, membership }: MembershipInUse): void {
    for (const other of this.#inUse) {
      if (other.membership.path !== membership.path || other.membership.fencingToken !== membership.fencingToken) {
        continue;
      }
      if (other.process.life !== other.life || other.process.state !== "running") continue;
      this.#world.visit(other.process, () => {
        if (!this.#inUse.has(other) || !other.membership.isHeld()) return;
        this.#world.fail(
          "left too early",
          `${process.name} left generation ${membership.generation}; ${other.process.name} runs`,
        );
      });
    }
  }

  /**
   * A process was told that its entry since `sinceMs` has failed, while its session continues: no entry of it may be
   * started.
   */
  refused(sessionId: bigint, { sinceMs, why }: { readonly sinceMs: number; readonly why: string }): void {
    for (const [guid, entry] of this.#entries) {
      if (entry.sessionId !== sessionId || entry.atMs < sinceMs || !entry.isStarted || entry.isTold) continue;
      this.#world.fail(
        "left behind",
        `participant ${guid} of ${entry.life?.process.name} was started, and told: ${why}`,
      );
    }
  }

  /** Fails the run unless the gate was in this state at some time since `sinceMs`. */
  checkGate(path: string, { isClosed, sinceMs, what }: { isClosed: boolean; sinceMs: number; what: string }): void {
    const gate = this.#gates.get(path) ?? { isClosed: false, openMs: 0, closedMs: -1 };
    const lastMs = isClosed ? gate.closedMs : gate.openMs;
    if (gate.isClosed === isClosed || lastMs >= sinceMs || this.#hiddenMs >= sinceMs) return;
    this.#world.fail("gate", `${what}, but ${path} was ${isClosed ? "open" : "closed"} all the time`);
  }

  nodeChanges(before: ZNode | undefined, after: ZNode | undefined): void {
    const { path } = before ?? after ?? {};
    if (path === undefined) {
      this.#hiddenMs = this.#world.nowMs;
      return;
    }
    if (path.startsWith("/baton/gates/")) return this.#gateChanges(path, after);
    if (!path.startsWith("/baton/barriers/")) return;
    const participant = parseBarrierParticipantNode(nameOf(path));
    this.#changed.add(participant === null ? path : path.slice(0, path.lastIndexOf("/")));
    if (participant === null) return this.#responseChanges(before, after);
    if (after === undefined) this.#goneIn.set(keyOf(participant), this.#commits);
    const entry = this.#entries.get(participant.guid);
    if (entry === undefined && after !== undefined) {
      const open = this.#open.get(path.slice(0, path.lastIndexOf("/")));
      if (open !== undefined && open.epoch === participant.epoch && open.generation > participant.generation) {
        this.#world.fail("entered too late", `${path}; generation ${open.generation} was open before`);
      }
      const sessionId = after.ephemeralOwner;
      const life = this.#lives.get(sessionId);
      this.#entries.set(participant.guid, {
        sessionId,
        life,
        atMs: this.#world.nowMs,
        isStarted: false,
        isTold: false,
        nodes: new Set([path]),
        goneIn: Infinity,
      });
    } else if (after !== undefined) entry?.nodes.add(path);
    else if (entry?.nodes.delete(path) === true) entry.goneIn = this.#commits;
    if (after === undefined && entry?.isStarted === false) this.#world.count("mark participant gone before the start");
  }

  committed(): void {
    this.#commits++;
    const changed = this.#changed;
    if (changed.size === 0) return;
    this.#changed = new Set();
    for (const path of changed) {
      const state = this.#stateAt(path);
      if (state === undefined) continue;
      this.#open.set(path, state);
      this.#checkStart(path, state);
      const { round } = state;
      if (round !== null && this.#rounds.get(path)?.id !== round.id) {
        this.#rounds.set(path, { id: round.id, openedIn: this.#commits });
      }
    }
    if (!this.#isEager) return;
    for (const used of [...this.#inUse]) {
      if (used.process.life !== used.life) this.#inUse.delete(used);
      else if (used.process.state === "running") {
        this.#world.visit(used.process, () => void (this.#inUse.has(used) && this.check(used)));
      }
    }
  }

  #responseChanges(before: ZNode | undefined, after: ZNode | undefined): void {
    if (before !== undefined || after === undefined) return;
    const life = this.#lives.get(after.ephemeralOwner);
    if (life === undefined || life.endedMs !== null) return;
    for (const call of this.#atResponse.splice(0)) call(life.process);
  }

  /** A participant that has seen another one, which was lost before the round was opened, breaks the generation. */
  #checkLosses(path: string, { epoch, started }: Pick<BarrierState, "epoch" | "started">): void {
    const openedIn = this.#rounds.get(path)?.openedIn ?? 0;
    for (const guid of started?.members ?? []) {
      const generation = started?.generation ?? 0;
      for (const other of this.#seen.get(keyOf({ guid, epoch, generation })) ?? []) {
        const goneIn = this.#goneIn.get(keyOf({ guid: other, epoch, generation })) ?? Infinity;
        if (goneIn >= openedIn) continue;
        this.#world.fail("started after a loss", `generation ${generation} of ${path}: ${guid} has seen ${other}`);
      }
    }
  }

  #gateChanges(path: string, after: ZNode | undefined): void {
    const { nowMs } = this.#world;
    const gate = this.#gates.get(path) ?? { isClosed: false, openMs: nowMs, closedMs: -1 };
    const isClosed = after !== undefined;
    // It was in the former state until now.
    if (gate.isClosed) gate.closedMs = nowMs;
    else gate.openMs = nowMs;
    this.#gates.set(path, { ...gate, isClosed });
    if (isClosed) this.#world.count("mark gate closed");
  }

  #stateAt(path: string): BarrierState | undefined {
    const node = this.#tree.at(path);
    return node === undefined ? undefined : parseBarrierState(node.data ?? new Uint8Array(), path);
  }

  /** Judges a start when it is on the disk. */
  #checkStart(path: string, { epoch, started }: Pick<BarrierState, "epoch" | "started">): void {
    if (started === null) return;
    const { generation, members, token } = started;
    const last = this.#lastStart.get(path);
    if (last?.token === token) return;
    const what = `generation ${generation} of ${path}`;
    if (last !== undefined && (token < last.token || (epoch === last.epoch && generation <= last.generation))) {
      this.#world.fail(
        "order of generations",
        `${what} with token ${token} after ${last.generation} with ${last.token}`,
      );
    }
    this.#lastStart.set(path, { epoch, generation, token });
    this.#world.count("starts");
    this.#checkLosses(path, { epoch, started });
    const entries = members.map((guid) => this.#entries.get(guid));
    const enteredMs = Math.max(...entries.map((entry) => entry?.atMs ?? Infinity));
    members.forEach((guid, rank) => {
      const entry = entries[rank];
      if (entry === undefined) return this.#world.fail("early start", `${what}: member ${guid} has never entered`);
      entry.isStarted = true;
      // Changes of one commit have no order here.
      if (entry.nodes.size === 0 && entry.goneIn < this.#commits - 1) {
        return this.#world.fail("early start", `${what}: member ${guid} had left before`);
      }
      const endedMs = entry.life?.endedMs ?? null;
      if (endedMs === null || endedMs >= enteredMs) return;
      const name = entry.life?.process.name;
      this.#world.fail(
        "early start",
        `${what}: ${name} ended at ${endedMs}, and the last member entered at ${enteredMs}`,
      );
    });
    if (new Set(members).size !== members.length) this.#world.fail("early start", `${what}: a member counts twice`);
    for (const { path: at } of this.#tree.childrenOf(path)) {
      const node = parseBarrierParticipantNode(nameOf(at));
      if (node === null || node.epoch !== epoch) continue;
      if (node.generation < generation) this.#world.fail("two generations", `${what} was started; ${at} is there`);
      if (members.includes(node.guid) && node.parties !== members.length) {
        this.#world.fail("early start", `${what} has ${members.length} members, and ${at} expects ${node.parties}`);
      }
    }
  }
}

/** A participant in one generation. */
const keyOf = ({ guid, epoch, generation }: Pick<BarrierParticipantNode, "guid" | "epoch" | "generation">): string =>
  `${guid} ${epoch}.${generation}`;
