/**
 * The settings that runs of a pool show each other (docs/protocol/pool.md) as an explicit-state model, deciding with
 * the recipe's own decidePoolAdmission. A session sees a prefix of the history that only grows, so that a stale list is
 * the same list read earlier: what was read is kept here, and acted on later. After a lost reply the next connection
 * may be behind the session's own write, until a write is answered: that is what `view` is for.
 *
 * Models: docs/protocol/pool.md, src/coordination/pool/pool_admission.ts, src/coordination/pool/pool_membership.ts,
 * src/coordination/pool/shared_pool_settings.ts
 */
import { decidePoolAdmission, poolRunNodePrefix } from "../../../src/coordination/pool/pool_admission.ts";
import type { Model, Transition, TransitionKind } from "../../support/explore.ts";

export type SettingsFault = "lost reply" | "crash" | "expires";

/** Ways to build it wrong: each must be found out. */
export type SettingsMistake =
  | "looks before it shows its settings"
  | "takes whoever is about to step back for gone"
  | "steps back before whoever comes later"
  | "takes its settings back before its jobs have ended"
  | "shows its settings in a session of their own"
  | "does not settle its writes after a lost reply";

export interface SettingsModelOptions {
  /** One run for each: its settings. */
  readonly settings: readonly ("a" | "b" | "c")[];
  readonly faults: readonly SettingsFault[];
  readonly faultsMax: number;
  /** The server's counter has come to its end. */
  readonly sticks?: boolean;
  readonly mistakes?: readonly SettingsMistake[];
}

interface Node {
  readonly name: string;
  /** The session that it goes with. */
  readonly owner: string;
}

interface Run {
  readonly step: "peek" | "show" | "recover" | "look" | "act" | "running" | "leave" | "ended";
  readonly life: number;
  readonly attempt: number;
  readonly isRefused: boolean;
  /** It has jobs. */
  readonly works: boolean;
  /** The list that it acts on. */
  readonly names: readonly string[];
  /** The tree as this session's connection sees it; null: as it is. */
  readonly view: readonly Node[] | null;
}

export interface SettingsState {
  readonly nodes: readonly Node[];
  readonly sequence: number;
  readonly runs: readonly Run[];
  /** Sessions whose baton was killed while jobs ran: these are dead before the session ends, and maybe no sooner. */
  readonly ghosts: readonly string[];
  readonly faultsLeft: number;
}

export class PoolSettingsModel implements Model<SettingsState> {
  readonly initial: readonly SettingsState[];
  readonly #options: SettingsModelOptions;

  constructor(options: SettingsModelOptions) {
    this.#options = options;
    const run: Run = {
      step: this.#has("looks before it shows its settings") ? "peek" : "show",
      life: 0,
      attempt: 0,
      isRefused: false,
      works: false,
      names: [],
      view: null,
    };
    const { faultsMax: faultsLeft, settings } = options;
    this.initial = [{ nodes: [], sequence: 0, runs: settings.map(() => run), ghosts: [], faultsLeft }];
  }

  key(state: SettingsState): string {
    return JSON.stringify(state);
  }

  isDone({ runs }: SettingsState): boolean {
    return runs.every(({ step }) => step === "ended");
  }

  violation({ runs, ghosts, nodes, faultsLeft }: SettingsState): string | null {
    const working = runs.flatMap(({ works }, who) => works ? [this.#termsOf(who)] : []);
    const all = new Set([...working, ...ghosts.map((session) => this.#termsOf("abc".indexOf(session[0] ?? "")))]);
    if (all.size > 1) return `Jobs of ${all.size} settings run at once`;
    for (const [who, run] of runs.entries()) {
      const isLeft = run.step === "ended" && nodes.some(({ owner }) => owner === sessionOf(who, run));
      if (isLeft) return `${sessionOf(who, run)} has ended and left its settings`;
    }
    const isCalm = faultsLeft === this.#options.faultsMax && this.#options.sticks !== true;
    return isCalm && runs.every(({ isRefused }) => isRefused) ? "All have stepped back" : null;
  }

  /** Whoever is refused ends, and whoever waits looks again. */
  idleViolation(): string | null {
    return null;
  }

  transitions(state: SettingsState): Transition<SettingsState>[] {
    const out: Transition<SettingsState>[] = [];
    for (const [who, run] of state.runs.entries()) {
      this.#moves(state, who, run, out);
      if (state.faultsLeft > 0) this.#faultsOf(state, who, run, out);
    }
    this.#expiries(state, out);
    return out;
  }

  #moves(state: SettingsState, who: number, run: Run, out: Transition<SettingsState>[]): void {
    const to = (label: string, change: Partial<Run>, kind: TransitionKind = "step") =>
      out.push({ kind, label: `${sessionOf(who, run)} ${label}`, state: withRun(state, who, { ...run, ...change }) });
    const view = run.view ?? state.nodes;
    const again = { step: "show", attempt: run.attempt + 1, view: null, names: run.names } as const;
    if (run.view !== null) to("catches up", { view: null });
    switch (run.step) {
      case "peek":
        return void to("looks early", { step: "show", names: namesOf(state.nodes) });
      case "show": {
        const sequence = this.#options.sticks === true ? 2 ** 31 - 1 : state.sequence;
        const prefix = poolRunNodePrefix(this.#termsOf(who).repeat(16), guidOf(who, run));
        const node = { name: prefix + String(sequence).padStart(10, "0"), owner: sessionOf(who, run) };
        const done = { nodes: [...state.nodes, node], sequence: state.sequence + 1 };
        const step = this.#has("looks before it shows its settings") ? "act" : "look";
        const names = step === "act" ? [...run.names, node.name] : [];
        return this.#write(state, who, run, out, {
          label: "shows its settings",
          done,
          to: { step, names },
          lost: "recover",
        });
      }
      case "recover":
        return void to("looks for its settings", this.#own(who, run, view) === undefined ? again : { step: "look" });
      case "look":
        return void to("looks", { step: "act", names: namesOf(view) });
      case "act":
        return this.#act(who, run, to, again);
      case "running": {
        if (this.#has("takes its settings back before its jobs have ended")) {
          return void to("leaves", { step: "leave" }, "choice");
        }
        return void to("is done with its jobs", { step: "leave", works: false }, "choice");
      }
      case "leave": {
        const own = this.#own(who, run, view);
        const nodes = state.nodes.filter(({ name }) => name !== own);
        const done = { nodes, sequence: nodes.length === 0 ? 0 : state.sequence }; // reaped
        const end = run.works ? { step: "leave", works: true } as const : { step: "ended", names: [] } as const;
        if (run.works && own === undefined) return void to("is done with its jobs", { works: false }, "choice");
        return this.#write(state, who, run, out, { label: "takes its settings back", done, to: end, lost: "leave" });
      }
      case "ended":
    }
  }

  #act(
    who: number,
    run: Run,
    to: (label: string, change: Partial<Run>, kind?: TransitionKind) => void,
    again: Partial<Run>,
  ): void {
    const admission = decidePoolAdmission(run.names, guidOf(who, run));
    const isCrowded = run.names.some((name) => !name.startsWith(this.#termsOf(who)));
    const kind = admission.kind === "waiting" && this.#has("takes whoever is about to step back for gone")
      ? "admitted"
      : isCrowded && this.#has("steps back before whoever comes later")
      ? "refused"
      : admission.kind;
    if (kind === "gone") to("is not there", again);
    else if (kind === "admitted") to("starts jobs", { step: "running", works: true, names: [] });
    else {
      const refused = { step: "leave", isRefused: true, names: [] } as const;
      to("is refused", refused, kind === "waiting" ? "choice" : "step"); // having waited for long enough
      if (kind === "waiting") to("waits", { step: "look", names: [] });
    }
  }

  /** Answered, or its answer lost, done or not: then the next connection may not have seen it. */
  #write(state: SettingsState, who: number, run: Run, out: Transition<SettingsState>[], write: {
    readonly label: string;
    readonly done: Pick<SettingsState, "nodes" | "sequence">;
    readonly to: Partial<Run>;
    readonly lost: Run["step"];
  }): void {
    const label = `${sessionOf(who, run)} ${write.label}`;
    const done = { ...state, ...write.done };
    out.push({ kind: "step", label, state: withRun(done, who, { ...run, view: null, ...write.to }) });
    if (!this.#may("lost reply") || state.faultsLeft === 0) return;
    const view = this.#has("does not settle its writes after a lost reply") ? (run.view ?? state.nodes) : null;
    const unanswered = { ...run, step: write.lost, view };
    for (const [what, from] of [["not done", state], ["done", done]] as const) {
      const next = { ...from, faultsLeft: state.faultsLeft - 1 };
      out.push({ kind: "fault", label: `${label}, ${what}, unanswered`, state: withRun(next, who, unanswered) });
    }
  }

  #faultsOf(state: SettingsState, who: number, run: Run, out: Transition<SettingsState>[]): void {
    if (run.step === "ended") return;
    const session = sessionOf(who, run);
    const less = { ...state, faultsLeft: state.faultsLeft - 1 };
    const push = (label: string, next: SettingsState) =>
      out.push({ kind: "fault", label: `${session} ${label}`, state: next });
    const without = (nodes: readonly Node[]) => nodes.filter(({ owner }) => owner !== session);
    if (this.#may("crash")) {
      const { initial: [{ runs: [fresh] } = { runs: [] }] } = this;
      const ghosts = run.works ? [...state.ghosts, session] : state.ghosts;
      if (fresh !== undefined) {
        push("is killed, and comes again", withRun({ ...less, ghosts }, who, { ...fresh, life: run.life + 1 }));
      }
    }
    if (!this.#may("expires")) return;
    const nodes = without(state.nodes);
    const gone = { ...less, nodes, sequence: nodes.length === 0 ? 0 : state.sequence };
    // Its jobs were dead before: they go by the same session.
    const ended = { ...run, step: "ended", works: false, names: [], view: null } as const;
    push("expires", withRun(gone, who, this.#has("shows its settings in a session of their own") ? run : ended));
  }

  /** A session that nobody has any more expires sooner or later. */
  #expiries(state: SettingsState, out: Transition<SettingsState>[]): void {
    const living = new Set(state.runs.map((run, who) => sessionOf(who, run)));
    const dead = new Set(
      [...state.nodes.map(({ owner }) => owner), ...state.ghosts].filter((owner) => !living.has(owner)),
    );
    for (const owner of dead) {
      const nodes = state.nodes.filter((node) => node.owner !== owner);
      const ghosts = state.ghosts.filter((ghost) => ghost !== owner);
      const sequence = nodes.length === 0 ? 0 : state.sequence;
      out.push({ kind: "step", label: `session ${owner} expires`, state: { ...state, nodes, ghosts, sequence } });
    }
  }

  #own(who: number, run: Run, nodes: readonly Node[]): string | undefined {
    return namesOf(nodes).find((name) => name.includes(`-${guidOf(who, run)}-`));
  }

  #termsOf(who: number): string {
    return this.#options.settings[who] ?? "";
  }

  #may(fault: SettingsFault): boolean {
    return this.#options.faults.includes(fault);
  }

  #has(mistake: SettingsMistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }
}

const namesOf = (nodes: readonly Node[]): string[] => nodes.map(({ name }) => name);
const sessionOf = (who: number, { life }: Run): string => `${"abc"[who]}${life}`;

function guidOf(who: number, { life, attempt }: Run): string {
  return `${who}${life.toString(16)}${attempt.toString(16)}`.padEnd(32, "f");
}

function withRun(state: SettingsState, who: number, run: Run): SettingsState {
  return { ...state, runs: state.runs.map((other, index) => (index === who ? run : other)) };
}
