/**
 * What a party of the barrier's model does: one step of src/coordination/barrier/barrier_participant.ts at a time,
 * rightly or with a mistake.
 */
import {
  addSeenBarrierParticipants,
  type BarrierDecision,
  type BarrierObservation,
  barrierStateAfterBreak,
  barrierStateAfterLeaving,
  barrierStateAfterStart,
  barrierStateWithOpenRound,
  decideBarrierStep,
} from "../../../src/coordination/barrier/barrier_decision.ts";
import {
  barrierParticipantNodePrefix,
  barrierResponseNodeName,
  type BarrierState,
  initialBarrierState,
  parseBarrierParticipantNode,
} from "../../../src/coordination/barrier/barrier_state.ts";
import { judgeEnd, judgeStart } from "./barrier_judge.ts";
import * as servers from "./barrier_server_model.ts";
import type { BarrierServer } from "./barrier_server_model.ts";
import type { BarrierWorld, BarrierWorldState, Party } from "./barrier_world.ts";
import type { Transition } from "../../support/explore.ts";

type Out = Transition<BarrierWorldState>[];

const nobody = { lost: [], why: "" };
const lookAgain: Partial<Party> = { step: "read state" };
const recover: Partial<Party> = { step: "recover" };

export class PartyModel {
  readonly #world: BarrierWorld;

  constructor(world: BarrierWorld) {
    this.#world = world;
  }

  moves(state: BarrierWorldState, who: number, p: Party, out: Out): void {
    const to = (label: string, change: Partial<Party>, wrong: string | null = null): void =>
      void out.push({
        kind: "step",
        label: `${this.#world.session(who, p)} ${label}`,
        state: this.#world.with({ ...state, wrong }, who, { ...p, ...change }),
      });
    const view = p.view ?? state.server;
    if (p.view !== null && servers.textOf(p.view) !== servers.textOf(state.server)) to("catches up", { view: null });
    switch (p.step) {
      case "read to enter":
        return to("reads the state to enter", { step: "enter", version: view.version, state: view.state });
      case "enter":
        return this.#enter(state, who, p, out);
      case "recover":
        return to("asks again", {
          ...lookAgain,
          view: this.#world.has("does not settle its writes after a lost reply") ? p.view : null,
        });
      case "read state":
        if (view.version === null) return to("finds no barrier", this.#vanished(p));
        if (this.#world.options.looksAtOnce) {
          const { version, state: barrier } = view;
          return this.#decide(state, who, { ...p, version, epoch: barrier.epoch, state: barrier }, to);
        }
        return to("reads the state", {
          step: "read names",
          version: view.version,
          epoch: view.state.epoch,
          state: view.state,
        });
      case "read names":
        return this.#decide(state, who, p, to);
      case "await":
        return this.#await(state, who, p, to, out);
      case "write":
        return this.#write(state, who, p, out);
      case "quit":
        return this.#quit(state, who, p, out);
      case "drop":
      case "leave":
        return this.#delete(state, who, p, out);
      case "running":
        return void out.push({
          kind: "choice",
          label: `${this.#world.session(who, p)}'s command ends`,
          state: this.#world.with(state, who, { ...p, step: "leave" }),
        });
      case "look for others": {
        const alone = this.#world.has("waits for nobody when it leaves");
        const other = alone ? undefined : p.members.find((guid) => this.#world.hasEntered(guid, view));
        if (other !== undefined) return to(`waits for ${other}`, { step: "await other", watched: other });
        const again = p.turn < (this.#world.options.turns[who] ?? 1);
        const next: Partial<Party> = again ? { ...this.#enterAnew(p), turn: p.turn + 1 } : { step: "ended" };
        return to("has seen all leave", next, judgeEnd(state, p.members));
      }
      case "await other":
        if (!this.#world.hasEntered(p.watched, view)) to(`hears of ${p.watched}`, { step: "look for others" });
        return;
      case "ended":
        return;
    }
  }

  #enterAnew(p: Party): Partial<Party> {
    return {
      step: "read to enter",
      entry: p.entry + 1,
      seen: [],
      members: [],
      isKnown: false,
      isBroken: false,
      view: null,
    };
  }

  #enter(state: BarrierWorldState, who: number, p: Party, out: Out): void {
    if (!this.#world.mayEnter(state, who)) return;
    const { server } = state;
    const { parties, onLost } = this.#world.options;
    const guid = this.#world.guid(who, p);
    const isNew = p.version === null;
    const blind = this.#world.has("enters without a version") && !isNew && server.version !== null;
    if (!blind && server.version !== p.version) {
      return this.#world.write(state, who, p, out, {
        label: "enters too late",
        server,
        change: { step: "read to enter" },
        lost: recover,
      });
    }
    const barrier = isNew ? initialBarrierState(this.#world.has("has no epoch") ? "0" : guid) : p.state ?? server.state;
    const { epoch, generation } = barrier;
    const base: BarrierServer = isNew ? { version: 0, state: barrier, nodes: [], sequence: 0 } : server;
    this.#world.write(state, who, p, out, {
      label: "enters",
      server: servers.withParty(
        base,
        barrierParticipantNodePrefix({ epoch, generation, parties, onLost, guid }),
        this.#world.session(who, p),
      ),
      change: { ...lookAgain, isKnown: true, hasEntered: true },
      lost: recover,
    });
  }

  #look(who: number, p: Party, barrier: BarrierState, names: readonly string[]): BarrierObservation {
    const guid = this.#world.guid(who, p);
    let children = names;
    let state = barrier;
    if (this.#world.has("starts while others are still leaving")) {
      children = names.filter((name) =>
        (parseBarrierParticipantNode(name)?.generation ?? state.generation) === state.generation
      );
    }
    if (this.#world.has("lets a late party answer an open round") && state.round !== null) {
      const all = names.map(parseBarrierParticipantNode).filter((node) => node !== null).map((node) => node.guid);
      state = { ...state, round: { ...state.round, members: all } };
    }
    const seen = this.#world.has("forgets whom it has seen") ? [] : p.seen;
    return { state, children, guid, seen, impatient: p.impatient };
  }

  #decision(who: number, p: Party, state: BarrierState, names: readonly string[]): BarrierDecision {
    const look = this.#look(who, p, state, names);
    const decision = decideBarrierStep(look);
    if (this.#world.has("goes by any start") && state.started !== null && decision.do === "wait") {
      return { do: "run", rank: 0, isThere: true };
    }
    if (decision.do !== "open") return decision;
    if (!this.#world.has("starts without asking")) return decision;
    return { do: "start", members: decision.members.slice(0, this.#world.options.parties), nodes: [], responses: [] };
  }

  #decide(
    state: BarrierWorldState,
    who: number,
    p: Party,
    told: (label: string, change: Partial<Party>, wrong?: string | null) => void,
  ): void {
    const view = p.view ?? state.server;
    const { version, epoch } = p;
    const to = (label: string, change: Partial<Party>, wrong?: string | null) =>
      told(label, { version, epoch, state: p.state, ...change }, wrong);
    if (view.version === null || p.state === null) return to("finds no barrier", this.#vanished(p));
    const names = servers.namesOf(view);
    const decision = this.#decision(who, p, p.state, names);
    // Only of the own gathering, and only where it matters.
    const isIn = ["wait", "respond", "open", "start", "break"].includes(decision.do);
    const remembers = isIn && this.#world.options.onLost === "fail";
    const seen = remembers
      ? addSeenBarrierParticipants({ state: p.state, children: names, seen: p.seen }).sort()
      : p.seen;
    const isKnown = p.isKnown || this.#world.own(who, p, names) !== "";
    const label = `reads the names: ${decision.do}`;
    const known = { names, decision, seen, isKnown, impatient: false };
    switch (decision.do) {
      case "run":
        if (!decision.isThere) return to(label, { step: "drop" });
        return to(label, { step: "running", members: p.state.started?.members ?? [] });
      case "vanished":
        return to(label, this.#vanished(p));
      case "broken":
        if (!p.isBroken) return to(label, { step: "drop" }, `${this.#world.guid(who, p)} goes as broken and is not`);
        return to(label, { step: "drop" }, this.#mustNotGo(state, who, p));
      case "disagree":
        return to(label, { ...known, step: "quit" });
      case "wait":
        if (p.givesUp) return to(label, { ...known, step: "quit" });
        return to(label, {
          ...known,
          step: "await",
          watched: decision.predecessor?.name ?? "",
        });
      default:
        return to(label, { ...known, step: p.givesUp ? "quit" : "write" });
    }
  }

  /** Its node is not there: it may never have been. */
  #vanished(p: Party): Partial<Party> {
    if (p.givesUp || (p.isKnown && this.#world.options.onLost === "fail")) return { step: "drop" };
    return p.isKnown ? this.#enterAnew(p) : { step: "read to enter", seen: [] };
  }

  #mustNotGo(state: BarrierWorldState, who: number, p: Party): string | null {
    const guid = this.#world.guid(who, p);
    return state.server.state.started?.members.includes(guid) ? `${guid} goes though it was started` : null;
  }

  #await(
    state: BarrierWorldState,
    who: number,
    p: Party,
    to: (label: string, change: Partial<Party>) => void,
    out: Out,
  ): void {
    const view = p.view ?? state.server;
    const names = servers.namesOf(view);
    const decision = p.decision?.do === "wait" ? p.decision : null;
    const isSame = view.version === p.version && view.state.epoch === p.epoch;
    const isFirst = decision?.predecessor === null && !this.#world.has("the first does not watch the others");
    const deaf = p.watched === "" || this.#world.has("nobody watches its predecessor");
    if (!isSame) to("hears of the state", lookAgain);
    else if (isFirst && names.join() !== p.names.join()) to("hears of the names", lookAgain);
    else if (!deaf && !names.includes(p.watched)) to("hears of its predecessor", lookAgain);
    else if (this.#world.own(who, p, names) === "" && !this.#world.has("does not watch its own node")) {
      to("hears of its own node", lookAgain);
    }
    // Another look at the same would be a step for ever: only where it makes a difference.
    const round = view.state.round;
    const guid = this.#world.guid(who, p);
    const missing = round !== null &&
      (!round.members.includes(guid) || !names.includes(barrierResponseNodeName(round.id, guid)));
    if (decision !== null && decision.round !== null && missing && !this.#world.has("is never impatient")) {
      to("is impatient", { ...lookAgain, impatient: true });
    }
    if (this.#world.options.givesUp) {
      out.push({
        kind: "choice",
        label: `${this.#world.session(who, p)} gives up`,
        state: this.#world.with(state, who, { ...p, ...lookAgain, givesUp: true }),
      });
    }
  }

  #write(state: BarrierWorldState, who: number, p: Party, out: Out): void {
    const { server } = state;
    const { decision } = p;
    const barrier = p.state;
    if (decision === null || barrier === null) return;
    const label = decision.do;
    const refused = (why: string) =>
      this.#world.write(state, who, p, out, { label: `${label}: ${why}`, server, change: lookAgain, lost: recover });
    const own = this.#world.own(who, p, servers.namesOf(server));
    if (server.version === null) return refused("no barrier");
    const blind = this.#world.has("does not look at its own node when it writes");
    if (own === "" && (!blind || decision.do === "move" || decision.do === "respond")) return refused("no own node");
    const loose = decision.do === "respond" || this.#world.has("writes the state without a version");
    if (!loose && server.version !== p.version) return refused("bad version");
    const done = (next: BarrierServer, wrong: string | null = null) =>
      this.#world.write(state, who, p, out, { label, server: next, change: lookAgain, lost: recover, wrong });
    const set = (next: BarrierState, at: BarrierServer = server): BarrierServer => ({
      ...at,
      version: (server.version ?? 0) + 1,
      state: next,
    });
    const guid = this.#world.guid(who, p);
    switch (decision.do) {
      case "respond": {
        const name = barrierResponseNodeName(decision.round, guid);
        if (servers.namesOf(server).includes(name)) return refused("answered already");
        return done(servers.withNode(server, { name, owner: this.#world.session(who, p) }));
      }
      case "open": {
        const version = this.#world.has("ties no answer to a round") ? 0 : p.version ?? 0;
        const asking = this.#world.has("ties no answer to a round") ? "any" : guid;
        return done(set(barrierStateWithOpenRound(barrier, { guid: asking, version, members: decision.members })));
      }
      case "start": {
        const loosely = this.#world.has("starts without taking the answers away");
        const names = servers.namesOf(server);
        const needed = [...decision.nodes, ...decision.responses];
        if (!loosely && !needed.every((name) => names.includes(name))) return refused("no node");
        const keeps = loosely || this.#world.has("ties no answer to a round");
        const next = set(
          barrierStateAfterStart(barrier, { members: decision.members, token: 0n }),
          keeps ? server : servers.without(server, decision.responses),
        );
        return done(next, judgeStart(state, this.#world, decision.members));
      }
      case "break":
        return this.#world.write(
          this.#world.broken(state, parseBarrierParticipantNode(own)),
          who,
          { ...p, isBroken: true },
          out,
          {
            label,
            server: set(barrierStateAfterBreak(barrier, nobody)),
            change: lookAgain,
            lost: recover,
          },
        );
      case "move": {
        const { parties, onLost } = this.#world.options;
        const { epoch, generation } = barrier;
        const moved = servers.withParty(
          servers.without(server, this.#ownNodes(who, p, server)),
          barrierParticipantNodePrefix({ epoch, generation, parties, onLost, guid }),
          this.#world.session(who, p),
        );
        return this.#world.write(state, who, p, out, {
          label,
          server: moved,
          change: { ...lookAgain, seen: [] },
          lost: { ...recover, seen: [] },
        });
      }
    }
  }

  #ownNodes(who: number, p: Party, server: BarrierServer): string[] {
    const guid = this.#world.guid(who, p);
    return servers.namesOf(server).filter((name) =>
      parseBarrierParticipantNode(name)?.guid === guid || name.endsWith(`-${guid}`)
    );
  }

  /**
   * Gives up before the start: one transaction takes it off and makes its answer worthless, or breaks the gathering.
   */
  #quit(state: BarrierWorldState, who: number, p: Party, out: Out): void {
    const { server } = state;
    const own = this.#world.own(who, p, servers.namesOf(server));
    const mine = parseBarrierParticipantNode(own);
    const blind = this.#world.has("goes when it gives up, whatever it reads");
    if (server.version === null || mine === null || p.state === null || (!blind && server.version !== p.version)) {
      return this.#world.write(state, who, p, out, {
        label: "gives up too late",
        server,
        change: lookAgain,
        lost: recover,
      });
    }
    const after = blind ? null : barrierStateAfterLeaving(p.state, mine, nobody);
    const left = servers.without(server, this.#ownNodes(who, p, server));
    const then = after === null ? state : this.#world.broken(state, mine);
    this.#world.write(then, who, p, out, {
      label: "leaves before the start",
      server: after === null ? left : { ...left, version: server.version + 1, state: after },
      change: { step: "ended" },
      lost: recover,
      wrong: this.#mustNotGo(state, who, p),
    });
  }

  #delete(state: BarrierWorldState, who: number, p: Party, out: Out): void {
    this.#world.write(state, who, p, out, {
      label: p.step === "leave" ? "leaves" : "goes",
      server: servers.without(state.server, this.#ownNodes(who, p, state.server)),
      change: { step: p.step === "leave" ? "look for others" : "ended" },
      lost: { step: p.step },
    });
  }
}
