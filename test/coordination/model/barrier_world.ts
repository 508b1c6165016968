/** What every part of the barrier's model knows: its options, its states, and how one state follows from another. */
import type { BarrierDecision } from "../../../src/coordination/barrier/barrier_decision.ts";
import {
  type BarrierMemberLossPolicy,
  type BarrierParticipantNode,
  type BarrierState,
  parseBarrierParticipantNode,
} from "../../../src/coordination/barrier/barrier_state.ts";
import { type BarrierServer, namesOf } from "./barrier_server_model.ts";
import type { Transition, TransitionKind } from "../../support/explore.ts";

export type Fault = "lost reply" | "crash" | "dies" | "path deleted" | "node deleted" | "reaped";

/** Ways to build the protocol wrong: each must be found out. */
export type Mistake =
  | "starts without asking"
  | "ties no answer to a round"
  | "lets a late party answer an open round"
  | "enters without a version"
  | "starts without taking the answers away"
  | "goes by any start"
  | "starts while others are still leaving"
  | "does not look at its own node when it writes"
  | "writes the state without a version"
  | "does not settle its writes after a lost reply"
  | "goes when it gives up, whatever it reads"
  | "forgets whom it has seen"
  | "the first does not watch the others"
  | "nobody watches its predecessor"
  | "does not watch its own node"
  | "is never impatient"
  | "waits for nobody when it leaves"
  | "has no epoch";

export interface BarrierModelOptions {
  /** How many processes come, and how many times each. */
  readonly turns: readonly number[];
  readonly parties: number;
  readonly onLost: BarrierMemberLossPolicy;
  readonly faults: readonly Fault[];
  /** How many faults there may be in one history. */
  readonly faultsMax: number;
  /** Whether a waiting one may have enough of it. */
  readonly givesUp?: boolean;
  /** State and names are read in one step: fewer states, for where more parties are the point. */
  readonly looksAtOnce?: boolean;
  readonly mistakes?: readonly Mistake[];
}

export type Step =
  | "read to enter"
  | "enter"
  | "read state"
  | "read names"
  | "write"
  | "quit"
  | "await"
  | "recover"
  | "drop"
  | "running"
  | "leave"
  | "look for others"
  | "await other"
  | "ended";

export interface Party {
  readonly step: Step;
  readonly life: number;
  readonly turn: number;
  /** Counts its guids of one life. */
  readonly entry: number;
  /** What was read last. */
  readonly version: number | null;
  readonly epoch: string;
  readonly state: BarrierState | null;
  readonly names: readonly string[];
  readonly seen: readonly string[];
  readonly decision: BarrierDecision | null;
  readonly isKnown: boolean;
  /** Executed, whether it knows or not. */
  readonly hasEntered: boolean;
  /** Its gathering was broken while its node was there. */
  readonly isBroken: boolean;
  readonly impatient: boolean;
  readonly givesUp: boolean;
  readonly watched: string;
  /** After the start: whom it runs and leaves with. */
  readonly members: readonly string[];
  /** The server as this session's connection sees it; null: as it is. */
  readonly view: BarrierServer | null;
}

export interface BarrierWorldState {
  readonly server: BarrierServer;
  readonly parties: readonly Party[];
  readonly faultsLeft: number;
  /** Sessions of processes that are no more, and the guids that had entered when they ended. */
  readonly dead: Readonly<Record<string, readonly string[]>>;
  readonly wrong: string | null;
}

export const fresh: Party = {
  step: "read to enter",
  life: 0,
  turn: 1,
  entry: 0,
  version: null,
  epoch: "",
  state: null,
  names: [],
  seen: [],
  decision: null,
  isKnown: false,
  hasEntered: false,
  isBroken: false,
  impatient: false,
  givesUp: false,
  watched: "",
  members: [],
  view: null,
};

/** What a step will never look at again must not tell states apart. */
function withoutTheForgotten(p: Party): Party {
  const { step, life, turn, entry, view, seen, isKnown, hasEntered, isBroken, impatient, givesUp } = p;
  const kept = { ...fresh, step, life, turn, entry, hasEntered };
  switch (step) {
    case "ended":
      return kept;
    case "read to enter":
      return { ...kept, view };
    case "read state":
    case "recover":
      return { ...kept, view, seen, isKnown, isBroken, impatient, givesUp };
    case "running":
    case "leave":
    case "drop":
    case "look for others":
    case "await other":
      return { ...kept, view, members: p.members, watched: p.watched };
    case "enter":
      return { ...kept, version: p.version, state: p.state, view };
    case "await": {
      // Of what was read only that counts which an event is told by.
      const isFirst = p.decision?.do === "wait" && p.decision.predecessor === null;
      return { ...p, state: null, names: isFirst ? p.names : [], decision: briefly(p.decision) };
    }
    case "write":
    case "quit":
      return {
        ...p,
        names: [],
        decision: briefly(p.decision),
        watched: "",
        seen: p.decision?.do === "move" ? [] : seen,
      };
    default:
      return p;
  }
}

/** Of a wait, what is done about it. */
function briefly(decision: BarrierDecision | null): BarrierDecision | null {
  if (decision?.do !== "wait") return decision;
  const predecessor = decision.predecessor === null ? null : somebody;
  return { do: "wait", gathered: [], predecessor, round: decision.round };
}

const somebody = { name: "", epoch: "", generation: 0, parties: 0, onLost: "wait", guid: "", sequence: 0 } as const;

export class BarrierWorld {
  readonly options: BarrierModelOptions;

  constructor(options: BarrierModelOptions) {
    this.options = options;
  }

  /** The outcomes of a write: answered, or its answer lost, done or not. */
  write(
    state: BarrierWorldState,
    who: number,
    p: Party,
    out: Transition<BarrierWorldState>[],
    write: {
      readonly label: string;
      readonly server: BarrierServer;
      readonly change: Partial<Party>;
      /** Where it goes on when it cannot tell what was done. */
      readonly lost: Partial<Party>;
      readonly wrong?: string | null;
      readonly kind?: TransitionKind;
    },
  ): void {
    const label = `${this.session(who, p)} ${write.label}`;
    const done: BarrierWorldState = { ...state, server: write.server, wrong: write.wrong ?? null };
    const { kind = "step" } = write;
    out.push({ kind, label, state: this.with(done, who, { ...p, view: null, ...write.change }) });
    if (!this.may("lost reply") || state.faultsLeft === 0) return;
    const unanswered: Party = { ...p, view: p.view ?? state.server, ...write.lost };
    const { hasEntered = p.hasEntered } = write.change;
    for (const [how, next] of [["not done", state], ["done", done]] as const) {
      const fewer = { ...next, faultsLeft: state.faultsLeft - 1 };
      const party = how === "done" ? { ...unanswered, hasEntered } : unanswered;
      out.push({ kind: "fault", label: `${label}, ${how}, unanswered`, state: this.with(fewer, who, party) });
    }
  }

  /** The gathering of `mine` is about to be broken: whoever is in it goes with it. */
  broken(state: BarrierWorldState, mine: BarrierParticipantNode | null): BarrierWorldState {
    const names = namesOf(state.server);
    const parties = state.parties.map((party, who) => {
      const node = parseBarrierParticipantNode(this.own(who, party, names));
      const isIn = node?.generation === mine?.generation && node?.epoch === mine?.epoch;
      return node !== null && isIn ? { ...party, isBroken: true } : party;
    });
    return { ...state, parties };
  }

  with(state: BarrierWorldState, who: number, party: Party): BarrierWorldState {
    const parties = state.parties.map((other, index) => (index === who ? withoutTheForgotten(party) : other));
    return { ...state, parties };
  }

  session(who: number, p: Party): string {
    return `${"abcd"[who]}${p.life}`;
  }

  /** 128 random bits. */
  guid(who: number, p: Party): string {
    return `${"abcd"[who]}${p.life}${p.entry === 0 ? "" : `t${p.entry}`}`;
  }

  /** The own node, or "". */
  own(who: number, p: Party, names: readonly string[]): string {
    const guid = this.guid(who, p);
    return names.find((name) => parseBarrierParticipantNode(name)?.guid === guid) ?? "";
  }

  hasEntered(guid: string, server: BarrierServer): boolean {
    return namesOf(server).some((name) => parseBarrierParticipantNode(name)?.guid === guid);
  }

  /**
   * Those who come equally often differ by their names only: let the one that enters first be called a, and so on. Who
   * crashed before it could enter is called as if it had.
   */
  mayEnter(state: BarrierWorldState, who: number): boolean {
    const { turns } = this.options;
    const before = state.parties[who - 1];
    const isNew = (p: Party) => p.life === 0 && p.turn === 1 && p.entry === 0 && !p.hasEntered && p.step !== "ended";
    if (before === undefined || turns[who - 1] !== turns[who]) return true;
    return !isNew(before);
  }

  may(fault: Fault): boolean {
    return this.options.faults.includes(fault);
  }

  has(mistake: Mistake): boolean {
    return this.options.mistakes?.includes(mistake) ?? false;
  }
}
