/** What a contender of the lock's model does: one step of src/coordination/lock/lock_contender.ts at a time, rightly or with a mistake. */
import { contenderPrefix, parseContender, parseHolder } from "../../src/coordination/lock/lock_nodes.ts";
import { comesBefore, isFreeAfterChange } from "../../src/coordination/lock/queue_position.ts";
import type { Transition } from "./explore.ts";
import { withGrantOf, withTelling } from "./ledger_model.ts";
import * as servers from "./lock_server_model.ts";
import type { Server } from "./lock_server_model.ts";
import type { Contender, LockState, LockWorld } from "./lock_world.ts";

export class ContenderModel {
  readonly #world: LockWorld;

  constructor(world: LockWorld) {
    this.#world = world;
  }

  /** Whether tokens matter. */
  get #counts(): boolean {
    return (this.#world.options.tokens ?? false) || (this.#world.options.history ?? false);
  }

  moves(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const read = (label: string, change: Partial<Contender>) =>
      out.push(
        this.#world.with(
          state,
          "step",
          `${this.#world.session(who, c)} ${label}`,
          who,
          this.#world.seen(state, c, change),
        ),
      );
    const view = c.view ?? state.server;
    if (c.view !== null && this.#world.reads(c.step) && servers.textOf(c.view) !== servers.textOf(state.server)) {
      const caughtUp = { ...c, view: this.#world.options.staleReads ? state.server : null };
      out.push(this.#world.with(state, "step", `${this.#world.session(who, c)} catches up`, who, caughtUp));
    }
    switch (c.step) {
      case "contend":
        return this.#contend(state, who, c, out);
      case "read version":
        if (view.version === null) return void read("finds no lock", this.#world.again(c));
        return void read(
          "reads the version",
          this.#world.after("version", {
            version: view.version,
            read: (this.#world.has("keeps the history that it read first") ? c.read : null) ?? view.ledger,
          }),
        );
      case "read holders":
        return void read("reads the holders", this.#world.after("holders", { holders: servers.namesOf(view.holders) }));
      case "read queue":
        return void read("reads the queue", this.#decide(who, c, view));
      case "watch predecessor": {
        const there = servers.namesOf(view.queue).includes(c.watched);
        return void read(
          there ? "watches its predecessor" : "finds no predecessor",
          there ? { step: "await predecessor" } : { step: this.#world.firstRead, watched: "", watching: true },
        );
      }
      case "await predecessor":
        if (servers.namesOf(view.queue).includes(c.watched)) return;
        return void read("hears of its predecessor", { step: this.#world.firstRead, watched: "", watching: true });
      case "await holders":
        return this.#awaitHolders(who, c, view, read);
      case "announce":
        return this.#announce(state, who, c, out);
      case "grant":
        return this.#grant(state, who, c, out);
      case "recover":
        return this.#recover(state, who, c, out);
      case "recover queue": {
        const node = this.#world.own(who, c, view);
        return void read(
          "looks into the queue",
          node === "" ? this.#world.again(c) : { node, step: this.#world.firstRead },
        );
      }
      case "holding":
        return this.#release(state, who, c, out);
      case "leave": {
        const caughtUp = {
          ...c,
          node: this.#world.own(who, c, state.server),
          step: "leave queue" as const,
          view: null,
        };
        return void out.push(
          this.#world.with(state, "step", `${this.#world.session(who, c)} looks for itself`, who, caughtUp),
        );
      }
      case "leave queue": {
        const next = this.#world.has("leaves only the queue when it gives up") ? "ended" : "leave holders";
        return this.#world.write(state, who, c, out, {
          label: "leaves the queue",
          server: servers.withoutContender(state.server, c.node),
          change: { step: next },
          lost: c.step,
        });
      }
      case "leave holders":
        return this.#world.write(state, who, c, out, {
          label: "leaves the holders",
          server: servers.withoutHolder(state.server, c.asked),
          change: { step: "ended" },
          lost: c.step,
        });
      case "ended":
        return;
    }
  }

  #contend(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { mode, priority = 100, takesNew = false } = this.#world.contender(who);
    const isNew = this.#world.has("takes a new lock without making it")
      ? state.server.holders === null
      : state.server.version === null;
    if (takesNew && isNew) return this.#takeNew(state, who, c, out);
    const prefix = contenderPrefix(priority, mode, this.#world.guid(who, c));
    const made = servers.withContender(
      state.server,
      prefix,
      this.#world.session(who, c),
      this.#world.options.sequenceSticks ?? false,
    );
    const server = this.#counts ? { ...made.server, zxid: state.server.zxid + 1 } : made.server;
    const born = this.#world.has("takes the token from its queue node") ? server.zxid : 0;
    this.#world.write(state, who, c, out, {
      label: "contends",
      server,
      change: { step: this.#world.firstRead, node: made.name, born, announced: false, watched: "", watching: false },
      lost: this.#world.has("does not look after a lost reply") ? "contend" : "recover",
    });
  }

  /** One write makes the lock, held; where there is one already it is refused, and the queue is the way. */
  #takeNew(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const asked = this.#world.holderName(who, c, []);
    const zxid = server.zxid + 1;
    const made: Server = {
      ...server,
      version: server.version ?? 0,
      holders: [{ name: asked, owner: this.#world.session(who, c) }],
      ...(this.#counts ? { zxid, token: Math.max(zxid, server.token) } : {}),
    };
    this.#world.write(state, who, { ...c, asked }, out, {
      label: "takes the new lock",
      server: made,
      change: { step: "holding" },
      lost: this.#world.has("does not look after a lost reply") ? "contend" : "recover",
      wrong: zxid > server.token ? null : `Token ${zxid} after ${server.token}`,
    });
  }

  #decide(who: number, c: Contender, view: Server): Partial<Contender> {
    const position = this.#world.position(who, c, c.holders, view);
    switch (position.kind) {
      case "held":
        return { step: "holding", asked: position.holder };
      case "gone":
        return this.#world.again(c);
      case "eligible":
        return { step: "grant", watching: false, asked: this.#world.holderName(who, c, c.holders) };
      case "queued":
        return { step: position.passed && !c.announced ? "announce" : "watch predecessor", watched: position.watch };
      case "blocked": {
        // Without a watch left by this read the holders are read once more, which leaves one.
        const wait = c.watching ? "await holders" : this.#world.firstRead;
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
    if (this.#world.has("watches only its predecessor")) return;
    const now = servers.namesOf(view.holders);
    const deaf = this.#world.has("does not look at the holders when it watches them") && now.length === 0;
    if (deaf || now.join() === c.holders.join()) return;
    const guesses = this.#world.has("guesses which slot has become free");
    const left = guesses ? c.holders.slice(1) : [];
    const change: Partial<Contender> = guesses || isFreeAfterChange(c.holders)
      ? { step: "grant", asked: this.#world.holderName(who, c, left) }
      : { step: this.#world.firstRead };
    read("hears of the holders", { ...change, watching: false });
  }

  #announce(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const refused = server.version !== c.version;
    const silent = this.#world.has("passes others without telling them");
    const version = server.version === null || refused || silent ? server.version : server.version + 1;
    const zxid = this.#counts && !refused ? server.zxid + 1 : server.zxid;
    const fills = !this.#world.has("tells without filling in the token");
    const ledger = refused ? server.ledger : server.ledger && withTelling(server.ledger, c.read ?? server.ledger, {
      zxid,
      fills,
    });
    this.#world.write(state, who, c, out, {
      label: "tells those it passes",
      server: { ...server, version, zxid, ledger },
      change: { step: this.#world.firstRead, announced: true, watching: true },
      lost: "announce",
    });
  }

  #grant(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const label = "asks for the grant";
    const fails = (change: Partial<Contender>, why: string) =>
      this.#world.write(state, who, c, out, { label: `${label}, ${why}`, server, change, lost: "recover" });
    if (server.version === null) return fails(this.#world.again(c), "no lock");
    const blind = this.#world.has("writes the state without a version");
    if (!blind && server.version !== c.version) return fails({ step: this.#world.firstRead }, "bad version");
    const outside = this.#world.has("leaves its queue node out of the grant");
    if (!outside && !servers.namesOf(server.queue).includes(c.node)) return fails(this.#world.again(c), "no own node");
    if (servers.namesOf(server.holders).includes(c.asked)) {
      return fails({ step: "recover" }, "is there");
    }

    const zxid = server.zxid + 1;
    const token = this.#world.has("takes the token from its queue node") ? c.born : zxid;
    const kept = this.#world.has("keeps its queue node until the release")
      ? server
      : servers.withoutContender(server, c.node);
    const granted: Server = {
      ...kept,
      version: server.version + 1,
      holders: [...(server.holders ?? []), {
        name: c.asked,
        owner: this.#world.session(who, c),
      }],
      ...(this.#counts ? { zxid, token: Math.max(token, server.token) } : {}),
      ledger: server.ledger && withGrantOf(server.ledger, c.read ?? server.ledger, { id: c.asked, zxid }),
    };
    const slot = parseHolder(c.asked)?.slot ?? 0;
    const wrong = slot >= this.#world.limitOf(who)
      ? `Slot ${slot} of ${this.#world.limitOf(who)}`
      : token > server.token
      ? this.#passedOver(state, who, c)
      : `Token ${token} after ${server.token}`;
    this.#world.write(state, who, c, out, {
      label,
      server: granted,
      change: { step: "holding" },
      lost: "recover",
      wrong,
    });
  }

  /** Who stands before `who`, has told so and waits for the holders, must not be passed. */
  #passedOver(state: LockState, who: number, c: Contender): string | null {
    const mine = parseContender(c.node);
    for (const [other, contender] of state.contenders.entries()) {
      if (other === who || contender.step !== "await holders" || mine === null) continue;
      const theirs = servers.namesOf(state.server.queue).includes(contender.node)
        ? parseContender(contender.node)
        : null;
      if (theirs === null || this.#world.options.sequenceSticks || this.#world.contender(who).mode === "shared") {
        continue;
      }
      if (comesBefore(theirs, mine)) return `${c.node} passed ${contender.node}`;
    }
    return null;
  }

  #recover(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const unsynced = this.#world.has("does not settle its writes after a lost reply");
    const view = unsynced ? (c.view ?? state.server) : state.server;
    const held = this.#world.held(who, c, view);
    const anyOwner = this.#world.has("uses its guid again after a restart");
    const owner = view.holders?.find((node) => node.name === held)?.owner;
    const mine = held !== "" && (anyOwner || owner === this.#world.session(who, c));
    const found: Partial<Contender> = mine ? { step: "holding", asked: held } : { step: "recover queue" };
    const change: Contender = { ...c, ...found, view: unsynced ? c.view : null };
    out.push(this.#world.with(state, "step", `${this.#world.session(who, c)} looks at the holders`, who, change));
  }

  #release(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    let server = servers.withoutHolder(state.server, c.asked);
    if (this.#world.has("keeps its queue node until the release")) server = servers.withoutContender(server, c.node);
    this.#world.write(state, who, c, out, {
      label: "releases",
      server,
      change: { step: "ended" },
      lost: "leave",
      kind: "choice",
    });
  }
}
