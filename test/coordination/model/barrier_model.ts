/**
 * The barrier protocol of docs/protocol/barrier.md as an explicit-state model, deciding with the recipe's own
 * decideBarrierStep. Stale reads are what they are in lock_model.ts: after a lost reply the new connection may be
 * behind the session's own write until a write is answered.
 *
 * Models: docs/protocol/barrier.md, src/coordination/barrier/barrier_participant.ts,
 * src/coordination/barrier/barrier_membership.ts, src/coordination/barrier/barrier_gate.ts,
 * src/coordination/barrier/barrier_decision.ts, src/coordination/barrier/barrier_state.ts
 */
import { initialBarrierState, parseBarrierParticipantNode } from "../../../src/coordination/barrier/barrier_state.ts";
import { PartyModel } from "./barrier_party_model.ts";
import * as servers from "./barrier_server_model.ts";
import type { BarrierServer } from "./barrier_server_model.ts";
import { type BarrierModelOptions, BarrierWorld, type BarrierWorldState, fresh, type Party } from "./barrier_world.ts";
import type { Model, Transition } from "../../support/explore.ts";
import { Interned } from "../../support/interned.ts";

export class BarrierModel implements Model<BarrierWorldState> {
  readonly initial: readonly BarrierWorldState[];
  readonly #world: BarrierWorld;
  readonly #party: PartyModel;
  readonly #serverNumbers = new Interned<BarrierServer>(servers.textOf);
  readonly #partyNumbers = new Interned<Party>((p) => {
    const view = p.view === null ? -1 : this.#serverNumbers.numberOf(p.view);
    const flags = `${p.isKnown ? 1 : 0}${p.hasEntered ? 1 : 0}${p.isBroken ? 1 : 0}${p.impatient ? 1 : 0}${
      p.givesUp ? 1 : 0
    }`;
    const state = p.state === null ? "" : servers.textOfState(p.state);
    const decision = p.decision === null ? "" : JSON.stringify(p.decision);
    const lists = [p.names, p.seen, p.members].map((list) => list.join("+"));
    return [p.step, p.life, p.turn, p.entry, p.version, p.epoch, state, ...lists, decision, flags, p.watched, view]
      .join("|");
  });

  constructor(options: BarrierModelOptions) {
    this.#world = new BarrierWorld(options);
    this.#party = new PartyModel(this.#world);
    this.initial = [
      {
        // Emptied but not yet reaped: a version and a generation that have already moved are the harder start.
        server: { version: 2, state: { ...initialBarrierState("0"), generation: 5 }, nodes: [], sequence: 0 },
        parties: options.turns.map(() => fresh),
        faultsLeft: options.faultsMax,
        dead: {},
        wrong: null,
      },
    ];
  }

  key(state: BarrierWorldState): string {
    const parties = state.parties.map((party) => this.#partyNumbers.numberOf(party)).join();
    const dead = Object.entries(state.dead).map(([session, known]) => `${session}:${known.join("+")}`).join();
    return `${this.#serverNumbers.numberOf(state.server)};${parties};${dead};${state.faultsLeft}${state.wrong ?? ""}`;
  }

  /** Those who are too few may wait for ever. */
  isDone(state: BarrierWorldState): boolean {
    const left = state.parties.filter((party) => party.step !== "ended");
    return left.length < this.#world.options.parties && left.every((party) => party.step === "await");
  }

  violation(state: BarrierWorldState): string | null {
    if (state.wrong !== null) return state.wrong;
    const started = state.server.state.started?.members ?? [];
    const ranks = new Set<number>();
    for (const [who, party] of state.parties.entries()) {
      const guid = this.#world.guid(who, party);
      if (party.step === "running") {
        const rank = started.indexOf(guid);
        if (rank === -1 || ranks.has(rank)) return `${guid} runs and was not started with the others that run`;
        if (party.members.join() !== started.join()) return `${guid} and the others do not agree who was started`;
        ranks.add(rank);
      }
      const session = this.#world.session(who, party);
      // An answer counts for nothing without its party, and goes with the session.
      const owns = state.server.nodes.some(({ name, owner }) =>
        owner === session && parseBarrierParticipantNode(name) !== null
      );
      if (party.step === "ended" && owns && state.dead[session] === undefined) {
        return `${guid} has ended and left an orphan`;
      }
    }
    return null;
  }

  /** Nothing moves by itself: then there are not enough who wait, and nobody waits for what has happened already. */
  idleViolation(state: BarrierWorldState): string | null {
    const { parties, onLost } = this.#world.options;
    const waiting = state.parties.filter((party) => party.step === "await");
    const isRunning = state.parties.some((party) => party.step === "running");
    if (waiting.length >= parties && !isRunning) return `${waiting.length} parties wait for nothing`;
    for (const [who, party] of state.parties.entries()) {
      const guid = this.#world.guid(who, party);
      if (party.step === "await other" && !isRunning) return `${guid} waits for the others to leave, and none runs`;
      if (party.step !== "await" || onLost === "wait") continue;
      const lost = party.seen.find((other) => !this.#world.hasEntered(other, state.server));
      if (lost !== undefined) return `${guid} waits though ${lost} was lost`;
    }
    return null;
  }

  transitions(state: BarrierWorldState): Transition<BarrierWorldState>[] {
    const out: Transition<BarrierWorldState>[] = [];
    for (const [who, party] of state.parties.entries()) {
      this.#party.moves(state, who, party, out);
      if (state.faultsLeft > 0) this.#faultsOf(state, who, party, out);
    }
    this.#expiries(state, out);
    if (state.faultsLeft > 0) this.#faultsOfServer(state, out);
    return out;
  }

  #faultsOf(state: BarrierWorldState, who: number, p: Party, out: Transition<BarrierWorldState>[]): void {
    if (p.step === "ended") return;
    const session = this.#world.session(who, p);
    const known = servers.namesOf(state.server).map((name) => parseBarrierParticipantNode(name)?.guid ?? "").filter(
      Boolean,
    )
      .sort();
    const after = (next: Party): BarrierWorldState => ({
      ...this.#world.with(state, who, next),
      faultsLeft: state.faultsLeft - 1,
      dead: servers.withoutSession(state.server, session).nodes.length === state.server.nodes.length
        ? state.dead
        : { ...state.dead, [session]: known },
    });
    if (this.#world.may("crash")) {
      const reborn: Party = { ...fresh, life: p.life + 1, turn: p.turn };
      out.push({ kind: "fault", label: `${session} crashes and starts again`, state: after(reborn) });
    }
    if (this.#world.may("dies")) {
      out.push({ kind: "fault", label: `${session} dies`, state: after({ ...p, step: "ended" }) });
    }
  }

  /** A session that nobody has any more expires sooner or later. */
  #expiries(state: BarrierWorldState, out: Transition<BarrierWorldState>[]): void {
    for (const owner of Object.keys(state.dead)) {
      const { [owner]: _, ...dead } = state.dead;
      const server = servers.withoutSession(state.server, owner);
      out.push({ kind: "step", label: `session ${owner} expires`, state: { ...state, server, dead } });
    }
  }

  #faultsOfServer(state: BarrierWorldState, out: Transition<BarrierWorldState>[]): void {
    const { server } = state;
    const push = (label: string, next: BarrierServer) =>
      out.push({
        kind: "fault",
        label,
        state: this.#disowned({ ...state, server: next, faultsLeft: state.faultsLeft - 1 }),
      });
    if (this.#world.may("reaped") && server.version !== null && server.nodes.length === 0) {
      push("the empty container is reaped", servers.gone(server));
    }
    if (this.#world.may("path deleted") && server.version !== null) push("the path is deleted", servers.gone(server));
    if (this.#world.may("node deleted")) {
      for (const { name } of server.nodes) push(`${name} is deleted`, servers.without(server, [name]));
    }
  }

  /**
   * A member whose node somebody deletes stops its command; that it takes a moment is what the documentation warns of.
   */
  #disowned(state: BarrierWorldState): BarrierWorldState {
    const parties = state.parties.map((party, who) => {
      const isLost = party.step === "running" && this.#world.own(who, party, servers.namesOf(state.server)) === "";
      return isLost ? { ...party, step: "drop" as const } : party;
    });
    const dead = Object.fromEntries(
      Object.entries(state.dead).filter(([owner]) => state.server.nodes.some((node) => node.owner === owner)),
    );
    return { ...state, parties, dead };
  }
}
