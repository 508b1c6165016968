/**
 * The line of a lock that Curator's or kazoo's programs take too (docs/protocol/lock.md) as an explicit-state model,
 * deciding with the recipe's own interopQueuePosition. A session sees a prefix of the history that only grows, so that
 * a stale read is the same read done earlier, except after a lost reply: then the next connection may be behind the
 * session's own write, until a write of its own. That is what `view` is for.
 *
 * Models: docs/protocol/lock.md, src/coordination/interop/interop_contender.ts,
 * src/coordination/nodes/interop_node_names.ts, src/coordination/interop/interop_queue_position.ts
 */
import { interopNodeNaming, parseInteropNode } from "../../../src/coordination/nodes/interop_node_names.ts";
import { interopQueuePosition } from "../../../src/coordination/interop/interop_queue_position.ts";
import type { Model, Transition, TransitionKind } from "../../support/explore.ts";

export type InteropQueueFault = "lost reply" | "crash" | "gives up" | "node deleted";

/** Ways to build it wrong: each must be found out. */
export type InteropQueueMistake =
  | "decides by a list from before it joined the queue"
  | "takes the end of its predecessor for its turn"
  | "does not settle its writes after a lost reply"
  | "joins the queue again after a lost reply"
  | "leaves without settling its writes"
  | "a writer does not wait for readers";

export interface InteropQueueOptions {
  /** Who wants it: true for a reader. */
  readonly readers: readonly boolean[];
  readonly faults: readonly InteropQueueFault[];
  readonly faultsMax: number;
  readonly mistakes?: readonly InteropQueueMistake[];
}

interface Node {
  readonly name: string;
  /** The session that it goes with. */
  readonly owner: string;
}

interface Member {
  readonly step: "peek" | "contend" | "read" | "watch" | "await" | "claim" | "holding" | "leave" | "ended";
  readonly life: number;
  readonly attempt: number;
  readonly watched: string;
  /** The list from before it joined the queue; a mistake's. */
  readonly peeked: readonly string[] | null;
  /** The line as this session's connection sees it; null: as it is. */
  readonly view: readonly Node[] | null;
}

export interface InteropQueueState {
  readonly nodes: readonly Node[];
  readonly sequence: number;
  readonly members: readonly Member[];
  readonly faultsLeft: number;
}

const recipe = "kazoo";
const path = "/lock";

export class InteropQueueModel implements Model<InteropQueueState> {
  readonly initial: readonly InteropQueueState[];
  readonly #options: InteropQueueOptions;

  constructor(options: InteropQueueOptions) {
    this.#options = options;
    const step = this.#has("decides by a list from before it joined the queue") ? "peek" : "contend";
    const member: Member = { step, life: 0, attempt: 0, watched: "", peeked: null, view: null };
    const { faultsMax: faultsLeft } = options;
    this.initial = [{ nodes: [], sequence: 0, members: options.readers.map(() => member), faultsLeft }];
  }

  key(state: InteropQueueState): string {
    return JSON.stringify(state);
  }

  isDone(state: InteropQueueState): boolean {
    return state.members.every(({ step }) => step === "ended");
  }

  violation({ members, nodes }: InteropQueueState): string | null {
    const holders = [...members.keys()].filter((who) => members[who]?.step === "holding");
    const alone = holders.some((who) => !this.#options.readers[who]);
    if (alone && holders.length > 1) return `${holders.length} hold at once`;
    for (const [who, member] of members.entries()) {
      const session = sessionOf(who, member);
      const isThere = nodes.some(({ owner }) => owner === session);
      if (member.step === "holding" && !isThere) return `${session} believes to hold and does not`;
      if (member.step === "ended" && isThere) return `${session} has ended and left an orphan`;
    }
    return null;
  }

  /** Nothing moves by itself: then nobody may be waiting for what is there for the taking. */
  idleViolation({ members, nodes }: InteropQueueState): string | null {
    for (const [who, member] of members.entries()) {
      if (member.step === "ended" || member.step === "holding") continue;
      const position = this.#position(who, member, namesOf(nodes));
      // One whose node somebody deleted has lost its place: it learns that when who was before it leaves.
      if (position.kind === "held") return `${sessionOf(who, member)} waits for what nobody holds`;
    }
    return null;
  }

  transitions(state: InteropQueueState): Transition<InteropQueueState>[] {
    const out: Transition<InteropQueueState>[] = [];
    for (const [who, member] of state.members.entries()) {
      this.#moves(state, who, member, out);
      if (state.faultsLeft > 0) this.#faultsOf(state, who, member, out);
    }
    this.#expiries(state, out);
    if (state.faultsLeft > 0 && this.#may("node deleted")) {
      for (const { name } of state.nodes) {
        const nodes = state.nodes.filter((node) => node.name !== name);
        const next = { ...state, nodes, faultsLeft: state.faultsLeft - 1 };
        out.push({ kind: "fault", label: `${name} is deleted`, state: this.#disowned(next) });
      }
    }
    return out;
  }

  #moves(state: InteropQueueState, who: number, m: Member, out: Transition<InteropQueueState>[]): void {
    const to = (label: string, change: Partial<Member>, kind: TransitionKind = "step") =>
      out.push({ kind, label: `${sessionOf(who, m)} ${label}`, state: withMember(state, who, { ...m, ...change }) });
    const view = m.view ?? state.nodes;
    if (m.view !== null) to("catches up", { view: null });
    switch (m.step) {
      case "peek":
        return void to("looks at the line", { step: "contend", peeked: namesOf(state.nodes) });
      case "contend": {
        const prefix = this.#prefix(who)(guidOf(who, m));
        const node = { name: prefix + String(state.sequence).padStart(10, "0"), owner: sessionOf(who, m) };
        const done = { nodes: [...state.nodes, node], sequence: state.sequence + 1 };
        const lost = this.#has("joins the queue again after a lost reply") ? "contend" : "read";
        return this.#write(state, who, m, out, { label: "joins the queue", done, step: "read", lost });
      }
      case "read":
        return void to("reads the line", this.#decide(who, m, view));
      case "watch":
        return void to("watches", { step: namesOf(view).includes(m.watched) ? "await" : "read" });
      case "await": {
        if (namesOf(view).includes(m.watched)) return;
        const step = this.#has("takes the end of its predecessor for its turn") ? "claim" : "read";
        return void to("hears of its predecessor", { step });
      }
      case "claim": {
        const isThere = this.#own(who, m, view) !== undefined;
        return void to("looks at its node", { step: isThere ? "holding" : "read" });
      }
      case "holding":
      case "leave": {
        const seen = m.step === "leave" && this.#has("leaves without settling its writes") ? view : state.nodes;
        const own = this.#own(who, m, seen);
        const done = { nodes: state.nodes.filter(({ name }) => name !== own), sequence: state.sequence };
        const kind = m.step === "holding" ? "choice" : "step";
        return this.#write(state, who, m, out, { label: "leaves", done, step: "ended", lost: "leave", kind });
      }
      case "ended":
    }
  }

  #decide(who: number, m: Member, view: readonly Node[]): Partial<Member> {
    const own = this.#own(who, m, view);
    const list = m.peeked === null || own === undefined ? namesOf(view) : [...m.peeked, own];
    const position = this.#position(who, m, list);
    if (position.kind === "gone") return { step: "contend", attempt: m.attempt + 1, peeked: null };
    if (position.kind === "held") return { step: "claim" };
    return { step: "watch", watched: position.watch };
  }

  /** Answered, or its answer lost, done or not: then the next connection may not have seen it. */
  #write(state: InteropQueueState, who: number, m: Member, out: Transition<InteropQueueState>[], write: {
    readonly label: string;
    readonly done: Pick<InteropQueueState, "nodes" | "sequence">;
    readonly step: Member["step"];
    readonly lost: Member["step"];
    readonly kind?: TransitionKind;
  }): void {
    const label = `${sessionOf(who, m)} ${write.label}`;
    const done = { ...state, ...write.done };
    const answered = { ...m, step: write.step, view: null };
    out.push({ kind: write.kind ?? "step", label, state: withMember(done, who, answered) });
    if (!this.#may("lost reply") || state.faultsLeft === 0) return;
    const isSynced = !this.#has("does not settle its writes after a lost reply") &&
      !this.#has("leaves without settling its writes");
    const attempt = write.lost === "contend" ? m.attempt + 1 : m.attempt;
    const unanswered = { ...m, step: write.lost, attempt, view: isSynced ? null : (m.view ?? state.nodes) };
    for (const [what, from] of [["not done", state], ["done", done]] as const) {
      const next = { ...from, faultsLeft: state.faultsLeft - 1 };
      out.push({ kind: "fault", label: `${label}, ${what}, unanswered`, state: withMember(next, who, unanswered) });
    }
  }

  #faultsOf(state: InteropQueueState, who: number, m: Member, out: Transition<InteropQueueState>[]): void {
    if (m.step === "ended") return;
    const push = (label: string, member: Member) =>
      out.push({
        kind: "fault",
        label: `${sessionOf(who, m)} ${label}`,
        state: withMember({ ...state, faultsLeft: state.faultsLeft - 1 }, who, member),
      });
    const again = { step: "contend", watched: "", peeked: null, view: null } as const;
    if (this.#may("crash")) push("crashes and starts again", { ...again, life: m.life + 1, attempt: 0 });
    if (this.#may("gives up") && m.step !== "holding" && m.step !== "leave") push("gives up", { ...m, step: "leave" });
  }

  /** A session that nobody has any more expires sooner or later. */
  #expiries(state: InteropQueueState, out: Transition<InteropQueueState>[]): void {
    const living = new Set(state.members.map((member, who) => sessionOf(who, member)));
    for (const owner of new Set(state.nodes.map((node) => node.owner))) {
      if (living.has(owner)) continue;
      const nodes = state.nodes.filter((node) => node.owner !== owner);
      out.push({ kind: "step", label: `session ${owner} expires`, state: { ...state, nodes } });
    }
  }

  /** A holder whose node somebody deletes stops; that it takes a moment is what the documentation warns of. */
  #disowned(state: InteropQueueState): InteropQueueState {
    const members = state.members.map((member, who) =>
      member.step === "holding" && this.#own(who, member, state.nodes) === undefined
        ? { ...member, step: "leave" as const }
        : member
    );
    return { ...state, members };
  }

  #position(who: number, m: Member, children: readonly string[]) {
    const writer = !this.#options.readers[who] && this.#has("a writer does not wait for readers");
    const isSeen = (name: string) => !writer || parseInteropNode(recipe, name)?.isShared === false;
    return interopQueuePosition({ recipe, path, children: children.filter(isSeen) }, guidOf(who, m));
  }

  #own(who: number, m: Member, nodes: readonly Node[]): string | undefined {
    return namesOf(nodes).find((name) => parseInteropNode(recipe, name)?.guid === guidOf(who, m));
  }

  #prefix(who: number): (guid: string) => string {
    const { exclusive, shared } = interopNodeNaming(recipe).prefix;
    return this.#options.readers[who] ? shared ?? exclusive : exclusive;
  }

  #may(fault: InteropQueueFault): boolean {
    return this.#options.faults.includes(fault);
  }

  #has(mistake: InteropQueueMistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }
}

const namesOf = (nodes: readonly Node[]): string[] => nodes.map(({ name }) => name);
const sessionOf = (who: number, { life }: Member): string => `${"abc"[who]}${life}`;

function guidOf(who: number, { life, attempt }: Member): string {
  return `${who}${life.toString(16)}${attempt.toString(16)}`.padEnd(32, "f");
}

function withMember(state: InteropQueueState, who: number, member: Member): InteropQueueState {
  return { ...state, members: state.members.map((other, index) => (index === who ? member : other)) };
}
