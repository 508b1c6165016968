/** What every part of the lock's model knows: its options, its states, and how one state follows from another. */
import type { LockMode } from "../../../src/base/process/lease.ts";
import { holderNodeName, parseContenderNode, parseHolderNode } from "../../../src/coordination/lock/lock_nodes.ts";
import {
  contenderComesBefore,
  freePermitSlot,
  type LockQueuePosition,
  lockQueuePosition,
} from "../../../src/coordination/lock/queue_position.ts";
import type { Transition, TransitionKind } from "../../support/explore.ts";
import * as servers from "./lock_server_model.ts";
import type { Server } from "./lock_server_model.ts";
import type { Ledger } from "./ledger_model.ts";

export type Fault =
  | "lost reply"
  | "crash"
  | "path deleted"
  | "contender deleted"
  | "holder deleted"
  | "reaped"
  | "gives up"
  | "cut off";

/** Ways to build the protocol wrong: each must be found out. */
export type Mistake =
  | "watches only its predecessor"
  | "reads the grants before the version"
  | "leaves its queue node out of the grant"
  | "writes the state without a version"
  | "does not settle its writes after a lost reply"
  | "does not look after a lost reply"
  | "uses its guid again after a restart"
  | "takes the token from its queue node"
  | "does not look at the grants when it watches them"
  | "leaves only the queue when it gives up"
  | "passes others without telling them"
  | "guesses which slot has become free"
  | "tells without filling in the token"
  | "keeps the history that it read first"
  | "takes a new lock without making it"
  | "holds beside older grants"
  | "takes every other grant for an older one"
  | "does not look at its own grant when the older ones are gone"
  | "reads its own grant before the older ones"
  | "holds although its server was cut off"
  | "withdraws grants without checking the holder's"
  | "withdraws grants without looking at their ages"
  | "does not withdraw grants"
  | "leaves the queue with a grant in advance"
  | "leaves its queue node behind at the release";

export interface ContenderKind {
  readonly mode: LockMode;
  readonly priority?: number;
  /** The limit that it sets; the model's when left out. */
  readonly limit?: number;
  /** Where there is no lock it makes one that it holds: src/coordination/lock/uncontended_lock.ts. Exclusive. */
  readonly takesNew?: boolean;
}

export interface LockModelOptions {
  readonly contenders: readonly ContenderKind[];
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
  /** An election: the guarded state has a history, with tokens, and no grant is made in advance. */
  readonly history?: boolean;
}

export type Step =
  | "contend"
  | "read version"
  | "read grants"
  | "read queue"
  | "watch predecessor"
  | "await predecessor"
  | "await grants"
  | "announce"
  | "grant"
  | "advance"
  | "read ages"
  | "withdraw"
  | "read older"
  | "read own"
  | "await older"
  | "look first"
  | "recover"
  | "recover queue"
  | "holding"
  | "release queue"
  | "leave"
  | "leave queue"
  | "leave grants"
  | "ended";

export interface Contender {
  readonly step: Step;
  readonly life: number;
  readonly attempt: number;
  /** The own node in the queue, as far as known. */
  readonly node: string;
  /** The grant that it asked for last. */
  readonly asked: string;
  readonly version: number;
  /** The history as read with the version; an election's. */
  readonly read: Ledger | null;
  readonly grants: readonly string[];
  /** As read, while the ages of the grants are read. */
  readonly queue: readonly string[];
  /** The oldest grant, when it withdraws others. */
  readonly oldest: string;
  /** The zxid of its grant in advance. */
  readonly token: number;
  /** Its queue node is there as long as its grant. */
  readonly keeps: boolean;
  /** Its grant was deleted by force. */
  readonly disowned: boolean;
  /** Its server is cut off from the others, and its session may expire. */
  readonly cut: boolean;
  readonly watched: string;
  /** Reads of the grants leave a watch: after the predecessor has gone it is likely the first. */
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

export const started: Contender = {
  step: "contend",
  life: 0,
  attempt: 0,
  node: "",
  asked: "",
  version: 0,
  read: null,
  grants: [],
  queue: [],
  oldest: "",
  token: 0,
  keeps: false,
  disowned: false,
  cut: false,
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
      return c.grants.length === 0 ? c : { ...c, grants: [] };
    case "release queue":
    case "holding": {
      const { step, life, attempt, node, asked, keeps } = c;
      return { ...started, step, life, attempt, node, asked, keeps };
    }
    case "contend":
    case "look first":
    case "recover":
    case "recover queue":
    case "await predecessor":
    case "watch predecessor":
      return c.version === 0 && c.grants.length === 0 ? c : { ...c, version: 0, read: null, grants: [] };
    case "read older":
    case "read own":
    case "await older":
      return c.version === 0 ? c : { ...c, version: 0, read: null };
    default:
      return c;
  }
}

export class LockWorld {
  readonly options: LockModelOptions;

  constructor(options: LockModelOptions) {
    this.options = options;
  }

  /** The outcomes of a write: answered, or its answer lost, done or not. */
  write(
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
    const label = `${this.session(who, c)} ${write.label}`;
    const answered = { ...c, view: this.options.staleReads ? write.server : null, ...write.change };
    const done: LockState = { ...state, server: write.server, wrong: write.wrong ?? null };
    out.push(this.with(done, write.kind ?? "step", label, who, answered));
    if (!this.may("lost reply") || state.faultsLeft === 0) return;
    const unanswered: Contender = {
      ...c,
      ...(write.lost === "contend" ? this.again(c) : {}),
      step: write.lost,
      view: c.view ?? state.server,
    };
    const fewer = (next: LockState): LockState => ({ ...next, faultsLeft: state.faultsLeft - 1 });
    out.push(this.with(fewer(state), "fault", `${label}, not done, unanswered`, who, unanswered));
    out.push(this.with(fewer(done), "fault", `${label}, done, unanswered`, who, unanswered));
  }

  with(
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

  seen(state: LockState, c: Contender, change: Partial<Contender>): Contender {
    const view = this.options.staleReads ? (c.view ?? state.server) : c.view;
    return { ...c, view, ...change };
  }

  /** Contend once more, under another guid. */
  again(c: Contender): Partial<Contender> {
    const nothingRead = {
      grants: [],
      version: 0,
      read: null,
      watched: "",
      watching: false,
      keeps: false,
      disowned: false,
      token: 0,
    };
    return { step: "contend", attempt: c.attempt + 1, node: "", asked: "", ...nothingRead };
  }

  /** Where a decision starts. What an earlier one has read is of no use to it. */
  get firstRead(): Step {
    return this.has("reads the grants before the version") ? "read grants" : "read version";
  }

  after(what: "version" | "grants", change: Partial<Contender>): Partial<Contender> {
    const first = this.has("reads the grants before the version") ? "grants" : "version";
    const second = first === "version" ? "read grants" : "read version";
    return { ...change, step: what === first ? second : "read queue" };
  }

  reads(step: Step): boolean {
    return /^(read|watch|await|recover queue)/.test(step) ||
      (step === "recover" && this.has("does not settle its writes after a lost reply"));
  }

  position(
    who: number,
    c: Contender,
    { grants, queue, oldest }: { grants: readonly string[]; queue: readonly string[]; oldest?: string },
  ): LockQueuePosition {
    const { mode } = this.contender(who);
    const mayAdvance = !(this.options.history ?? false);
    const known = oldest === undefined ? {} : { oldest };
    return lockQueuePosition({
      grants,
      queue,
      guid: this.guid(who, c),
      mode,
      limit: this.limitOf(who),
      mayAdvance,
      ...known,
    });
  }

  /** Whether the contender with this queue node has a grant. */
  hasGrant(server: Server, queueNode: string): boolean {
    const guid = parseContenderNode(queueNode)?.guid;
    return server.grants?.some(({ name }) => parseHolderNode(name)?.guid === guid) ?? false;
  }

  /** Who stands before the contender with `node`, has told so and waits for the grants, must not be passed. */
  passedOver(state: LockState, who: number, node: string): string | null {
    const mine = parseContenderNode(node);
    for (const [other, contender] of state.contenders.entries()) {
      if (other === who || contender.step !== "await grants" || mine === null) continue;
      const isQueued = servers.namesOf(state.server.queue).includes(contender.node);
      const theirs = isQueued ? parseContenderNode(contender.node) : null;
      if (theirs === null || this.options.sequenceSticks || this.contender(who).mode === "shared") continue;
      if (contenderComesBefore(theirs, mine)) return `${node} passed ${contender.node}`;
    }
    return null;
  }

  own(who: number, c: Contender, server: Server): string {
    const guid = this.guid(who, c);
    return server.queue?.find((node) => parseContenderNode(node.name)?.guid === guid)?.name ?? "";
  }

  contender(who: number): ContenderKind {
    return this.options.contenders[who] ?? { mode: "exclusive" };
  }

  session(who: number, c: Contender): string {
    return `${"abc"[who]}${c.life}`;
  }

  guid(who: number, c: Contender): string {
    const life = this.has("uses its guid again after a restart") ? "" : c.life;
    return `${"abc"[who]}${life}${c.attempt === 0 ? "" : `t${c.attempt}`}`;
  }

  /** The node it will ask for, `grants` being what it knows of the others'. */
  grantName(who: number, c: Contender, grants: readonly string[]): string {
    const { mode } = this.contender(who);
    return holderNodeName({ mode, slot: mode === "permit" ? freePermitSlot(grants) : null, guid: this.guid(who, c) });
  }

  /** Its own node among the grants, or "". */
  granted(who: number, c: Contender, server: Server): string {
    const guid = this.guid(who, c);
    return server.grants?.find((node) => parseHolderNode(node.name)?.guid === guid)?.name ?? "";
  }

  limitOf(who: number): number {
    return this.contender(who).limit ?? this.options.limit ?? 1;
  }

  get limitMax(): number {
    return Math.max(...this.options.contenders.map((_, who) => this.limitOf(who)));
  }

  may(fault: Fault): boolean {
    return this.options.faults.includes(fault);
  }

  has(mistake: Mistake): boolean {
    return this.options.mistakes?.includes(mistake) ?? false;
  }
}
