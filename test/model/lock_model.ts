/**
 * The lock protocol of docs/protocol/lock.md as an explicit-state model, deciding with the recipe's own queuePosition.
 *
 * Stale reads: a session sees a prefix of the history that only grows, so a stale read is the same read done earlier, and
 * interleaving covers it, except after a lost reply: then the new connection may be behind the session's own write until
 * a write of its own. That is what `view` is for. With `staleReads` every read has an explicit view, which shows the same at more cost.
 */
import { isCompatible } from "../../src/coordination/lock/queue_position.ts";
import { parseContender, parseHolder } from "../../src/coordination/lock/lock_nodes.ts";
import type { Model, Transition } from "./explore.ts";
import { ContenderModel } from "./lock_contender_model.ts";
import { Interned } from "./interned.ts";
import { emptyLedger, type Ledger, ledgerViolation, textOf as textOfLedger } from "./ledger_model.ts";
import * as servers from "./lock_server_model.ts";
import type { Server } from "./lock_server_model.ts";
import { type Contender, type LockModelOptions, type LockState, LockWorld, started, type Step } from "./lock_world.ts";

export class LockModel implements Model<LockState> {
  readonly initial: readonly LockState[];
  readonly #world: LockWorld;
  readonly #contenders: ContenderModel;
  readonly #serverNumbers = new Interned<Server>(servers.textOf);
  readonly #ledgerNumbers = new Interned<Ledger>(textOfLedger);
  readonly #contenderNumbers = new Interned<Contender>((c) => {
    const view = c.view === null ? -1 : this.#serverNumbers.numberOf(c.view);
    const read = c.read === null ? "" : this.#ledgerNumbers.numberOf(c.read);
    const flags = `${c.watching ? 1 : 0}${c.announced ? 1 : 0}`;
    return [
      c.step,
      c.life,
      c.attempt,
      c.node,
      c.asked,
      c.version,
      c.holders.join("+"),
      c.watched,
      flags,
      c.born,
      view,
      read,
    ]
      .join();
  });

  constructor(options: LockModelOptions) {
    this.#world = new LockWorld(options);
    this.#contenders = new ContenderModel(this.#world);
    this.initial = [
      {
        server: { ...servers.usedServer, ledger: options.history ? emptyLedger : null },
        contenders: options.contenders.map(() => started),
        faultsLeft: options.faultsMax,
        wrong: null,
      },
    ];
  }

  key(state: LockState): string {
    const contenders = state.contenders.map((contender) => this.#contenderNumbers.numberOf(contender));
    const server = this.#serverNumbers.numberOf(state.server);
    return `${server},${contenders.join()},${state.faultsLeft}${state.wrong ?? ""}`;
  }

  isDone(state: LockState): boolean {
    return state.contenders.every((contender) => contender.step === "ended");
  }

  violation(state: LockState): string | null {
    if (state.wrong !== null) return state.wrong;
    const { ledger } = state.server;
    const misled = ledger === null ? null : ledgerViolation(ledger);
    if (misled !== null) return misled;
    const names = servers.namesOf(state.server.holders);
    for (const name of names) {
      const others = names.filter((other) => other !== name);
      const mode = parseHolder(name)?.mode ?? "exclusive";
      const slot = parseHolder(name)?.slot ?? null;
      if (slot !== null && others.some((other) => parseHolder(other)?.slot === slot)) {
        return `Two holders share slot ${slot}: ${names.join(", ")}`;
      }
      if (!isCompatible(mode, others, this.#world.limitMax)) return `Incompatible holders: ${names.join(", ")}`;
    }
    for (const [who, contender] of state.contenders.entries()) {
      const session = this.#world.session(who, contender);
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
      const position = this.#world.position(who, contender, holders, { ...state.server, queue });
      if (position.kind === "eligible") return `${this.#world.session(who, contender)} waits for what nobody holds`;
    }
    return null;
  }

  transitions(state: LockState): Transition<LockState>[] {
    const out: Transition<LockState>[] = [];
    for (const [who, contender] of state.contenders.entries()) {
      this.#contenders.moves(state, who, contender, out);
      if (state.faultsLeft > 0) this.#faultsOf(state, who, contender, out);
    }
    this.#expiries(state, out);
    if (state.faultsLeft > 0) this.#faultsOfServer(state, out);
    return out;
  }

  #faultsOf(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    if (c.step === "ended") return;
    if (this.#world.may("crash")) {
      const reborn: Contender = { ...started, life: c.life + 1 };
      out.push(
        this.#world.with(state, "fault", `${this.#world.session(who, c)} crashes and starts again`, who, reborn),
      );
    }
    const leaving = c.step === "holding" || c.step.startsWith("leave");
    if (this.#world.may("gives up") && !leaving) {
      const step: Step = c.node === "" || !servers.namesOf((c.view ?? state.server).queue).includes(c.node)
        ? "leave"
        : "leave queue";
      out.push(this.#world.with(state, "fault", `${this.#world.session(who, c)} gives up`, who, { ...c, step }));
    }
  }

  /** A session that nobody has any more expires sooner or later. */
  #expiries(state: LockState, out: Transition<LockState>[]): void {
    const living = new Set(state.contenders.map((contender, who) => this.#world.session(who, contender)));
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
    if (this.#world.may("reaped")) {
      for (const next of servers.reaped(server)) push("an empty container is reaped", next);
    }
    if (this.#world.may("path deleted") && server.version !== null) {
      push("the path is deleted", servers.withoutPath(server));
    }
    if (this.#world.may("contender deleted")) {
      for (const { name } of server.queue ?? []) push(`${name} is deleted`, servers.withoutContender(server, name));
    }
    if (this.#world.may("holder deleted")) {
      for (const { name } of server.holders ?? []) push(`${name} is deleted`, servers.withoutHolder(server, name));
    }
  }

  /** A holder whose node somebody deletes stops; that it takes a moment is what the documentation warns of. */
  #disowned(state: LockState): LockState {
    const contenders = state.contenders.map((contender, who) => {
      const lost = contender.step === "holding" && this.#world.held(who, contender, state.server) === "";
      return lost ? { ...contender, step: "leave" as const } : contender;
    });
    return { ...state, contenders };
  }
}
