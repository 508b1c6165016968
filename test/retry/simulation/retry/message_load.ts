/** The messages of a world, and what the service or the commands do with each of them. */
import type { StoreRules } from "../../../../src/retry/queue/store_rules.ts";
import type { FirstTry, NewMessage } from "../../../../src/retry/queue/stored_message.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimWorld } from "../../../world/sim_world.ts";
import type { BackendAct, BackendRequestLine } from "./backend_program.ts";
import type { CommandAct } from "./command_model.ts";

/** A share of the messages that no try delivers, and of those that are refused. */
const hopeless = { failing: 0.06, refused: 0.04 };

/** The error of a message that `call` has made a dead letter. */
export const finalInCall = "exited with 65 in call";

/** Draws the rules of `call` beside processors with `rules`: it has the option --dead-letter, or has none. */
export function rulesOfCall(rules: StoreRules, chance: Chance): StoreRules {
  return chance.fork("option").is(0.7) && rules.letters === "pending" ? { ...rules, letters: "open" } : rules;
}

export const usualFirstTry: FirstTry = { outcome: "retry", retryAfterMs: null, error: "exited with 1" };

/** Draws first tries as `call` makes them: most may be tried again. */
export function firstTriesOfCall(chance: Chance): () => FirstTry {
  const own = chance.fork("first tries");
  return () => own.is(0.2) ? { outcome: "final", retryAfterMs: null, error: finalInCall } : usualFirstTry;
}

export interface MessageLoadOptions {
  readonly kind: "http" | "command";
  /** The share of the tries that fail. */
  readonly failing: number;
  readonly isQuiet: () => boolean;
}

export class MessageLoad {
  readonly #world: SimWorld;
  readonly #options: MessageLoadOptions;
  readonly #chance: Chance;
  /** The content of each message by its number. */
  readonly #bodies = new Map<string, string>();
  count = 0;

  constructor(world: SimWorld, options: MessageLoadOptions) {
    this.#world = world;
    this.#options = options;
    this.#chance = world.chance.fork("backend");
  }

  /** Whether a content is the whole one of a message. */
  readonly isWhole = (body: string): boolean => this.#bodies.get(body.trim()) === body;

  newMessage(chance: Chance): Omit<NewMessage, "tried"> {
    const number = ++this.count;
    const key = chance.oneOf([null, "a", "b", "c"]);
    const head = this.#options.kind === "http"
      ? { kind: "http", method: "POST", path: `/${number}`, headers: [] } as const
      : { kind: "command", argv: null, cwd: null } as const;
    const body = `${number}${" ".repeat(chance.oneOf([0, 10, 3000]))}`;
    this.#bodies.set(String(number), body);
    return { head, key, body: new TextEncoder().encode(body) };
  }

  /** What becomes of a message whatever happens: the same in all its tries. */
  #fateOf(body: string): "refused" | "failing" | "usual" {
    const draw = this.#chance.fork(`message ${body.trim()}`).next();
    return draw < hopeless.refused ? "refused" : draw < hopeless.refused + hopeless.failing ? "failing" : "usual";
  }

  backendAct({ id, body }: BackendRequestLine): BackendAct {
    const chance = this.#chance;
    const fate = this.#fateOf(body);
    const afterMs = this.#options.isQuiet() || chance.is(0.8) ? chance.between(0, 30) : chance.between(0, 7000);
    this.#world.log(() => `the backend has ${id}, ${fate}`);
    const respond = (status: number, retryAfter: number | null = null): BackendAct => ({
      ...{ response: { status, retryAfter }, afterMs, loses: false },
    });
    if (fate === "refused") return respond(422);
    if (fate === "failing") return respond(500);
    if (this.#options.isQuiet() || !chance.is(this.#options.failing)) return respond(200);
    const what = chance.oneOf(["fails", "limits", "is busy", "loses", "hangs"] as const);
    this.#world.count(`mark backend ${what}`);
    if (what === "fails") return respond(500);
    if (what === "limits") return respond(429, chance.whole(1, 4));
    if (what === "is busy") return respond(503, chance.is(0.5) ? 1 : null);
    return { response: null, afterMs, loses: what === "loses" };
  }

  commandAct(id: string, body: string): CommandAct {
    const chance = this.#chance;
    const fate = this.#fateOf(body);
    const runsMs = this.#options.isQuiet() || chance.is(0.8) ? chance.between(1, 100) : chance.between(0, 7000);
    this.#world.log(() => `a command for ${id} runs for ${runsMs.toFixed(0)} ms, ${fate}`);
    const isFailing = fate === "failing" || (!this.#options.isQuiet() && chance.is(this.#options.failing));
    return { runsMs, code: fate === "refused" ? 65 : isFailing ? chance.oneOf([1, 75]) : 0 };
  }

  letterAct(): CommandAct {
    const chance = this.#chance;
    const runsMs = this.#options.isQuiet() || chance.is(0.8) ? chance.between(1, 100) : chance.between(0, 7000);
    return { runsMs, code: !this.#options.isQuiet() && chance.is(this.#options.failing) ? 1 : 0 };
  }
}
