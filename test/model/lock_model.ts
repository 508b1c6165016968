/**
 * The lock protocol of docs/protocol/lock.md as an explicit-state model, deciding with the recipe's own queuePosition.
 *
 * Stale reads: a session sees a prefix of the history that only grows, so a stale read is the same read done earlier, and
 * interleaving covers it, except after a lost reply: then the new connection may be behind the session's own write until
 * a sync. That is what `view` is for. With `staleReads` every read has an explicit view, which shows the same at more cost.
 */
import type { LockMode } from "../../src/recipes/lease.ts";
import {
  comesBefore,
  isCompatible,
  isCompatibleAfterAny,
  type QueuePosition,
  queuePosition,
} from "../../src/recipes/queue_position.ts";
import { contenderPrefix, holderName, parseContender, parseHolder } from "../../src/recipes/lock_nodes.ts";
import type { Model, Transition, TransitionKind } from "./explore.ts";
import * as servers from "./lock_server_model.ts";
import type { Server } from "./lock_server_model.ts";

export type Fault =
  | "lost reply"
  | "crash"
  | "path deleted"
  | "contender deleted"
  | "holder deleted"
  | "reaped"
  | "gives up";

/** Ways to build the protocol wrong: each must be found out. */
export type Mistake =
  | "keeps its queue node until the release"
  | "watches only its predecessor"
  | "reads the holders before the version"
  | "leaves its queue node out of the grant"
  | "writes the state without a version"
  | "does not sync after a lost reply"
  | "does not look after a lost reply"
  | "uses its guid again after a restart"
  | "takes the token from its queue node"
  | "does not look at the holders when it watches them"
  | "leaves only the queue when it gives up"
  | "passes others without telling them";

export interface LockModelOptions {
  readonly contenders: readonly { readonly mode: LockMode; readonly priority?: number }[];
  readonly limit?: number;
  readonly faults: readonly Fault[];
  /** How many faults there may be in one history. */
  readonly faultsMax: number;
  readonly mistakes?: readonly Mistake[];
  /** Every read may be stale, as a state of its own. */
  readonly staleReads?: boolean;
  /** The server's counter has reached 2^31-1. */
  readonly sequenceSticks?: boolean;
  /** Tokens are counted, which tells apart states that are otherwise the same. */
  readonly tokens?: boolean;
}

type Step =
  | "contend"
  | "read version"
  | "read holders"
  | "read queue"
  | "watch predecessor"
  | "await predecessor"
  | "await holders"
  | "announce"
  | "grant"
  | "recover"
  | "recover queue"
  | "holding"
  | "leave"
  | "leave queue"
  | "leave holders"
  | "ended";

interface Contender {
  readonly step: Step;
  readonly life: number;
  readonly attempt: number;
  /** The own node in the queue, as far as known. */
  readonly node: string;
  readonly version: number;
  readonly holders: readonly string[];
  readonly watched: string;
  /** Reads of the holders leave a watch: after the predecessor has gone it is likely the first. */
  readonly watching: boolean;
  readonly announced: boolean;
  readonly born: number;
  /** The server as this session's connection sees it; null: as it is. */
  readonly view: Server | null;
}

export interface LockState {
  readonly server: Server;
  readonly contenders: readonly Contender[];
  readonly faultsLeft: number;
  readonly wrong: string | null;
}

const started: Contender = {
  step: "contend",
  life: 0,
  attempt: 0,
  node: "",
  version: 0,
  holders: [],
  watched: "",
  watching: false,
  announced: false,
  born: 0,
  view: null,
};

/** What a step will never look at again must not tell states apart. */
function withoutTheForgotten(c: Contender): Contender {
  switch (c.step) {
    case "ended":
      return { ...started, step: c.step, life: c.life };
    case "grant":
      return c.holders.length === 0 ? c : { ...c, holders: [] };
    case "holding":
      return { ...started, step: c.step, life: c.life, attempt: c.attempt, node: c.node };
    case "contend":
    case "recover":
    case "recover queue":
    case "await predecessor":
    case "watch predecessor":
      return c.version === 0 && c.holders.length === 0 ? c : { ...c, version: 0, holders: [] };
    default:
      return c;
  }
}

export class LockModel implements Model<LockState> {
  readonly initial: readonly LockState[];
  readonly #options: LockModelOptions;

  constructor(options: LockModelOptions) {
    this.#options = options;
    this.initial = [
      {
        server: servers.usedServer,
        contenders: options.contenders.map(() => started),
        faultsLeft: options.faultsMax,
        wrong: null,
      },
    ];
  }

  key(state: LockState): string {
    let key = `${servers.textOf(state.server)}|${state.faultsLeft}|${state.wrong ?? ""}`;
    for (const c of state.contenders) {
      const view = c.view === null ? "" : servers.textOf(c.view);
      key += `|${c.step},${c.life},${c.attempt},${c.node},${c.version},${c.holders.join("+")},${c.watched}`;
      key += `,${c.watching ? 1 : 0}${c.announced ? 1 : 0},${c.born},${view}`;
    }
    return key;
  }

  isDone(state: LockState): boolean {
    return state.contenders.every((contender) => contender.step === "ended");
  }

  violation(state: LockState): string | null {
    if (state.wrong !== null) return state.wrong;
    const names = servers.namesOf(state.server.holders);
    for (const name of names) {
      const others = names.filter((other) => other !== name);
      const mode = parseHolder(name)?.mode ?? "exclusive";
      if (!isCompatible(mode, others, this.#limit)) return `Incompatible holders: ${names.join(", ")}`;
    }
    for (const [who, contender] of state.contenders.entries()) {
      const session = this.#session(who, contender);
      const owns = (nodes: readonly servers.Node[] | null) => nodes?.some((node) => node.owner === session) ?? false;
      if (contender.step === "holding" && !owns(state.server.holders)) {
        return `${session} believes to hold and does not`;
      }
      if (contender.step === "ended" && (owns(state.server.holders) || owns(state.server.queue))) {
        return `${session} has ended and left an orphan`;
      }
    }
    return null;
  }

  /** Nothing moves by itself: then nobody may be waiting for what is there for the taking. */
  idleViolation(state: LockState): string | null {
    for (const [who, contender] of state.contenders.entries()) {
      if (contender.step === "ended" || contender.step === "holding") continue;
      const holders = servers.namesOf(state.server.holders);
      const granted = new Set(holders.map((name) => parseHolder(name)?.guid));
      const queue = (state.server.queue ?? []).filter((node) => !granted.has(parseContender(node.name)?.guid));
      const position = this.#position(who, contender, holders, { ...state.server, queue });
      if (position.kind === "eligible") return `${this.#session(who, contender)} waits for what nobody holds`;
    }
    return null;
  }

  transitions(state: LockState): Transition<LockState>[] {
    const out: Transition<LockState>[] = [];
    for (const [who, contender] of state.contenders.entries()) {
      this.#moves(state, who, contender, out);
      if (state.faultsLeft > 0) this.#faultsOf(state, who, contender, out);
    }
    this.#expiries(state, out);
    if (state.faultsLeft > 0) this.#faultsOfServer(state, out);
    return out;
  }

  // What a contender does.

  #moves(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const read = (label: string, change: Partial<Contender>) =>
      out.push(this.#with(state, "step", `${this.#session(who, c)} ${label}`, who, this.#seen(state, c, change)));
    const view = c.view ?? state.server;
    if (c.view !== null && this.#reads(c.step) && servers.textOf(c.view) !== servers.textOf(state.server)) {
      const caughtUp = { ...c, view: this.#options.staleReads ? state.server : null };
      out.push(this.#with(state, "step", `${this.#session(who, c)} catches up`, who, caughtUp));
    }
    switch (c.step) {
      case "contend":
        return this.#contend(state, who, c, out);
      case "read version":
        if (view.version === null) return void read("finds no lock", this.#again(c));
        return void read("reads the version", this.#after("version", { version: view.version }));
      case "read holders":
        return void read("reads the holders", this.#after("holders", { holders: servers.namesOf(view.holders) }));
      case "read queue":
        return void read("reads the queue", this.#decide(who, c, view));
      case "watch predecessor": {
        const there = servers.namesOf(view.queue).includes(c.watched);
        return void read(
          there ? "watches its predecessor" : "finds no predecessor",
          there ? { step: "await predecessor" } : { step: this.#firstRead, watched: "", watching: true },
        );
      }
      case "await predecessor":
        if (servers.namesOf(view.queue).includes(c.watched)) return;
        return void read("hears of its predecessor", { step: this.#firstRead, watched: "", watching: true });
      case "await holders":
        return this.#awaitHolders(who, c, view, read);
      case "announce":
        return this.#announce(state, who, c, out);
      case "grant":
        return this.#grant(state, who, c, out);
      case "recover":
        return this.#recover(state, who, c, out);
      case "recover queue": {
        const node = this.#own(who, c, view);
        return void read("looks into the queue", node === "" ? this.#again(c) : { node, step: this.#firstRead });
      }
      case "holding":
        return this.#release(state, who, c, out);
      case "leave": {
        const caughtUp = { ...c, node: this.#own(who, c, state.server), step: "leave queue" as const, view: null };
        return void out.push(this.#with(state, "step", `${this.#session(who, c)} looks for itself`, who, caughtUp));
      }
      case "leave queue": {
        const next = this.#has("leaves only the queue when it gives up") ? "ended" : "leave holders";
        return this.#write(state, who, c, out, {
          label: "leaves the queue",
          server: servers.withoutContender(state.server, c.node),
          change: { step: next },
          lost: c.step,
        });
      }
      case "leave holders":
        return this.#write(state, who, c, out, {
          label: "leaves the holders",
          server: servers.withoutHolder(state.server, this.#holderName(who, c)),
          change: { step: "ended" },
          lost: c.step,
        });
      case "ended":
        return;
    }
  }

  #contend(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { mode, priority = 100 } = this.#contender(who);
    const prefix = contenderPrefix(priority, mode, this.#guid(who, c));
    const made = servers.withContender(
      state.server,
      prefix,
      this.#session(who, c),
      this.#options.sequenceSticks ?? false,
    );
    const server = this.#options.tokens ? { ...made.server, zxid: state.server.zxid + 1 } : made.server;
    const born = this.#has("takes the token from its queue node") ? server.zxid : 0;
    this.#write(state, who, c, out, {
      label: "contends",
      server,
      change: { step: this.#firstRead, node: made.name, born, announced: false, watched: "", watching: false },
      lost: this.#has("does not look after a lost reply") ? "contend" : "recover",
    });
  }

  #decide(who: number, c: Contender, view: Server): Partial<Contender> {
    const position = this.#position(who, c, c.holders, view);
    switch (position.kind) {
      case "held":
        return { step: "holding" };
      case "gone":
        return this.#again(c);
      case "eligible":
        return { step: "grant", watching: false };
      case "queued":
        return { step: position.passed && !c.announced ? "announce" : "watch predecessor", watched: position.watch };
      case "blocked": {
        // Without a watch left by this read the holders are read once more, which leaves one.
        const wait = c.watching ? "await holders" : this.#firstRead;
        const step = position.passed && !c.announced ? "announce" : wait;
        return { step, watching: true, watched: "" };
      }
    }
  }

  #awaitHolders(
    who: number,
    c: Contender,
    view: Server,
    read: (label: string, change: Partial<Contender>) => void,
  ): void {
    if (this.#has("watches only its predecessor")) return;
    const now = servers.namesOf(view.holders);
    const deaf = this.#has("does not look at the holders when it watches them") && now.length === 0;
    if (deaf || now.join() === c.holders.join()) return;
    const shortcut = isCompatibleAfterAny(this.#contender(who).mode, c.holders, this.#limit);
    read(
      "hears of the holders",
      shortcut ? { step: "grant", watching: false } : { step: this.#firstRead, watching: false },
    );
  }

  #announce(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const silent = this.#has("passes others without telling them");
    const version = server.version === null || silent ? server.version : server.version + 1;
    this.#write(state, who, c, out, {
      label: "tells those it passes",
      server: { ...server, version },
      change: { step: this.#firstRead, announced: true, watching: true },
      lost: "announce",
    });
  }

  #grant(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const label = "asks for the grant";
    const fails = (change: Partial<Contender>, why: string) =>
      this.#write(state, who, c, out, { label: `${label}, ${why}`, server, change, lost: "recover" });
    if (server.version === null) return fails(this.#again(c), "no lock");
    const blind = this.#has("writes the state without a version");
    if (!blind && server.version !== c.version) return fails({ step: this.#firstRead }, "bad version");
    const outside = this.#has("leaves its queue node out of the grant");
    if (!outside && !servers.namesOf(server.queue).includes(c.node)) return fails(this.#again(c), "no own node");
    if (servers.namesOf(server.holders).includes(this.#holderName(who, c))) {
      return fails({ step: "recover" }, "is there");
    }

    const zxid = server.zxid + 1;
    const token = this.#has("takes the token from its queue node") ? c.born : zxid;
    const kept = this.#has("keeps its queue node until the release")
      ? server
      : servers.withoutContender(server, c.node);
    const granted: Server = {
      ...kept,
      version: server.version + 1,
      holders: [...(server.holders ?? []), { name: this.#holderName(who, c), owner: this.#session(who, c) }],
      ...(this.#options.tokens ? { zxid, token: Math.max(token, server.token) } : {}),
    };
    const wrong = token > server.token ? this.#passedOver(state, who, c) : `Token ${token} after ${server.token}`;
    this.#write(state, who, c, out, { label, server: granted, change: { step: "holding" }, lost: "recover", wrong });
  }

  /** Who stands before `who`, has told so and waits for the holders, must not be passed. */
  #passedOver(state: LockState, who: number, c: Contender): string | null {
    const mine = parseContender(c.node);
    for (const [other, contender] of state.contenders.entries()) {
      if (other === who || contender.step !== "await holders" || mine === null) continue;
      const theirs = servers.namesOf(state.server.queue).includes(contender.node)
        ? parseContender(contender.node)
        : null;
      if (theirs === null || this.#options.sequenceSticks || this.#contender(who).mode === "shared") continue;
      if (comesBefore(theirs, mine)) return `${c.node} passed ${contender.node}`;
    }
    return null;
  }

  #recover(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const unsynced = this.#has("does not sync after a lost reply");
    const view = unsynced ? (c.view ?? state.server) : state.server;
    const name = this.#holderName(who, c);
    const anyOwner = this.#has("uses its guid again after a restart");
    const mine = view.holders?.some((node) => node.name === name && (anyOwner || node.owner === this.#session(who, c)));
    const change: Contender = { ...c, step: mine ? "holding" : "recover queue", view: unsynced ? c.view : null };
    out.push(this.#with(state, "step", `${this.#session(who, c)} looks at the holders`, who, change));
  }

  #release(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    let server = servers.withoutHolder(state.server, this.#holderName(who, c));
    if (this.#has("keeps its queue node until the release")) server = servers.withoutContender(server, c.node);
    this.#write(state, who, c, out, {
      label: "releases",
      server,
      change: { step: "ended" },
      lost: "leave",
      kind: "choice",
    });
  }

  // What happens to it.

  #faultsOf(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    if (c.step === "ended") return;
    if (this.#may("crash")) {
      const reborn: Contender = { ...started, life: c.life + 1 };
      out.push(this.#with(state, "fault", `${this.#session(who, c)} crashes and starts again`, who, reborn));
    }
    const leaving = c.step === "holding" || c.step.startsWith("leave");
    if (this.#may("gives up") && !leaving) {
      const step: Step = c.node === "" || !servers.namesOf((c.view ?? state.server).queue).includes(c.node)
        ? "leave"
        : "leave queue";
      out.push(this.#with(state, "fault", `${this.#session(who, c)} gives up`, who, { ...c, step }));
    }
  }

  /** A session that nobody has any more expires sooner or later. */
  #expiries(state: LockState, out: Transition<LockState>[]): void {
    const living = new Set(state.contenders.map((contender, who) => this.#session(who, contender)));
    const nodes = [...(state.server.queue ?? []), ...(state.server.holders ?? [])];
    for (const owner of new Set(nodes.map((node) => node.owner))) {
      if (living.has(owner)) continue;
      const server = servers.withoutSession(state.server, owner);
      out.push({ kind: "step", label: `session ${owner} expires`, state: { ...state, server } });
    }
  }

  #faultsOfServer(state: LockState, out: Transition<LockState>[]): void {
    const { server } = state;
    const push = (label: string, next: Server) =>
      out.push({
        kind: "fault",
        label,
        state: this.#disowned({ ...state, server: next, faultsLeft: state.faultsLeft - 1 }),
      });
    if (this.#may("reaped")) { for (const next of servers.reaped(server)) push("an empty container is reaped", next); }
    if (this.#may("path deleted") && server.version !== null) {
      push("the path is deleted", { ...server, version: null, queue: null, holders: null, sequence: 0 });
    }
    if (this.#may("contender deleted")) {
      for (const { name } of server.queue ?? []) push(`${name} is deleted`, servers.withoutContender(server, name));
    }
    if (this.#may("holder deleted")) {
      for (const { name } of server.holders ?? []) push(`${name} is deleted`, servers.withoutHolder(server, name));
    }
  }

  /** A holder whose node somebody deletes stops; that it takes a moment is what the documentation warns of. */
  #disowned(state: LockState): LockState {
    const contenders = state.contenders.map((contender, who) => {
      const name = this.#holderName(who, contender);
      const lost = contender.step === "holding" && !servers.namesOf(state.server.holders).includes(name);
      return lost ? { ...contender, step: "leave" as const } : contender;
    });
    return { ...state, contenders };
  }

  // Small change.

  /** The outcomes of a write: answered, or its answer lost, done or not. */
  #write(
    state: LockState,
    who: number,
    c: Contender,
    out: Transition<LockState>[],
    write: {
      label: string;
      server: Server;
      change: Partial<Contender>;
      lost: Step;
      wrong?: string | null;
      kind?: TransitionKind;
    },
  ): void {
    const label = `${this.#session(who, c)} ${write.label}`;
    const answered = { ...c, view: this.#options.staleReads ? write.server : null, ...write.change };
    const done: LockState = { ...state, server: write.server, wrong: write.wrong ?? null };
    out.push(this.#with(done, write.kind ?? "step", label, who, answered));
    if (!this.#may("lost reply") || state.faultsLeft === 0) return;
    const unanswered: Contender = {
      ...c,
      ...(write.lost === "contend" ? this.#again(c) : {}),
      step: write.lost,
      view: c.view ?? state.server,
    };
    const fewer = (next: LockState): LockState => ({ ...next, faultsLeft: state.faultsLeft - 1 });
    out.push(this.#with(fewer(state), "fault", `${label}, not done, unanswered`, who, unanswered));
    out.push(this.#with(fewer(done), "fault", `${label}, done, unanswered`, who, unanswered));
  }

  #with(
    state: LockState,
    kind: TransitionKind,
    label: string,
    who: number,
    contender: Contender,
  ): Transition<LockState> {
    const contenders = state.contenders.map((other, index) => (index === who ? withoutTheForgotten(contender) : other));
    // A fault that a write reports has already been counted.
    const counted = kind === "fault" && !label.endsWith("unanswered") ? 1 : 0;
    return { kind, label, state: { ...state, contenders, faultsLeft: state.faultsLeft - counted } };
  }

  #seen(state: LockState, c: Contender, change: Partial<Contender>): Contender {
    const view = this.#options.staleReads ? (c.view ?? state.server) : c.view;
    return { ...c, view, ...change };
  }

  /** Contend once more, under another guid. */
  #again(c: Contender): Partial<Contender> {
    return { step: "contend", attempt: c.attempt + 1, node: "", holders: [], version: 0, watched: "", watching: false };
  }

  /** Where a decision starts. What an earlier one has read is of no use to it. */
  get #firstRead(): Step {
    return this.#has("reads the holders before the version") ? "read holders" : "read version";
  }

  #after(what: "version" | "holders", change: Partial<Contender>): Partial<Contender> {
    const first = this.#has("reads the holders before the version") ? "holders" : "version";
    const second = first === "version" ? "read holders" : "read version";
    return { ...change, step: what === first ? second : "read queue" };
  }

  #reads(step: Step): boolean {
    return /^(read|watch|await|recover queue)/.test(step) ||
      (step === "recover" && this.#has("does not sync after a lost reply"));
  }

  #position(who: number, c: Contender, holders: readonly string[], server: Server): QueuePosition {
    const queue = servers.namesOf(server.queue);
    const { mode } = this.#contender(who);
    return queuePosition({ holders, queue, guid: this.#guid(who, c), mode, limit: this.#limit });
  }

  #own(who: number, c: Contender, server: Server): string {
    const guid = this.#guid(who, c);
    return server.queue?.find((node) => parseContender(node.name)?.guid === guid)?.name ?? "";
  }

  #contender(who: number): { readonly mode: LockMode; readonly priority?: number } {
    return this.#options.contenders[who] ?? { mode: "exclusive" };
  }

  #session(who: number, c: Contender): string {
    return `${"abc"[who]}${c.life}`;
  }

  #guid(who: number, c: Contender): string {
    const life = this.#has("uses its guid again after a restart") ? "" : c.life;
    return `${"abc"[who]}${life}${c.attempt === 0 ? "" : `t${c.attempt}`}`;
  }

  #holderName(who: number, c: Contender): string {
    return holderName(this.#contender(who).mode, this.#guid(who, c));
  }

  get #limit(): number {
    return this.#options.limit ?? 1;
  }

  #may(fault: Fault): boolean {
    return this.#options.faults.includes(fault);
  }

  #has(mistake: Mistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }
}
