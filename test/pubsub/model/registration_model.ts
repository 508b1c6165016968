/**
 * A topic that forgets a publisher, or is deleted and begins again, while puts are under way, are delivered late, or
 * again. One client with two messages of one process, which becomes known to the topic first; it may be killed, and
 * then asks what became of what it has sent. Requests stay in the network for ever, and arrive as often as it likes,
 * heard or not. Decides by the store's own function.
 *
 * Models: src/pubsub/store/clients/client_admission.ts
 */
import { decideClientRegistration } from "../../../src/pubsub/store/clients/client_admission.ts";
import type { Model, Transition } from "../../support/explore.ts";

export const mistakes = [
  "takes a client that it does not know for a new one",
  "asks a client that it knows for nothing",
  "does not raise the number when it forgets",
  "loses the number in a crash",
  "leaves the number behind when it moves",
  "begins again with the number 0",
  "resumes with the newest number",
  "sends a put again with the number that it was refused with",
] as const;
export type RegistrationMistake = (typeof mistakes)[number];

type Message =
  | { readonly is: "unsent" }
  | { readonly is: "sent" | "resumed"; readonly number: number }
  /** Told to its user: stored, or that nobody can say any more. */
  | { readonly is: "stored" | "forgotten" };

export interface RegistrationState {
  /** The topic's number, and what it knows of the client: the number when it came, and which messages it has put. */
  readonly number: number;
  readonly client: { readonly since: number; readonly puts: readonly [boolean, boolean] } | null;
  /** How often each message lies in the topic's log. */
  readonly log: readonly [number, number];
  readonly messages: readonly [Message, Message];
  /** Numbers that each message's requests carried: each may arrive, or arrive again, at any time. */
  readonly network: readonly [readonly number[], readonly number[]];
  /** The same of puts of nothing. */
  readonly registrations: readonly number[];
  /** What the client knows of the topic's number, and whether its process has become known to the topic. */
  readonly known: number;
  readonly isRegistered: boolean;
  readonly forgetsLeft: number;
  readonly faultsLeft: number;
}

type Out = Transition<RegistrationState>[];

export class RegistrationModel implements Model<RegistrationState> {
  readonly #mistake: RegistrationMistake | null;
  readonly initial: readonly RegistrationState[];

  constructor({ mistake = null, forgets, faults }: {
    readonly mistake?: RegistrationMistake | null;
    readonly forgets: number;
    readonly faults: number;
  }) {
    this.#mistake = mistake;
    this.initial = [{
      number: 0,
      client: null,
      log: [0, 0],
      messages: [{ is: "unsent" }, { is: "unsent" }],
      network: [[], []],
      registrations: [],
      known: 0,
      isRegistered: false,
      forgetsLeft: forgets,
      faultsLeft: faults,
    }];
  }

  key(state: RegistrationState): string {
    return JSON.stringify(state);
  }

  transitions(state: RegistrationState): Out {
    const out: Out = [];
    this.#registration(state, out);
    for (const at of [0, 1] as const) this.#message(state, at, out);
    this.#forgets(state, out);
    this.#faults(state, out);
    return out;
  }

  violation({ log, messages }: RegistrationState): string | null {
    for (const at of [0, 1] as const) {
      if (log[at] > 1) return `message ${at + 1} is stored twice`;
      if (messages[at].is === "stored" && log[at] === 0) return `message ${at + 1} was answered OK, and is not stored`;
    }
    return null;
  }

  idleViolation(): null {
    return null;
  }

  isDone({ messages }: RegistrationState): boolean {
    return messages.every(({ is }) => is === "stored" || is === "forgotten");
  }

  /** A put of nothing, until the topic knows the client. */
  #registration(state: RegistrationState, out: Out): void {
    const { known, registrations, isRegistered } = state;
    if (!isRegistered && !registrations.includes(known)) {
      const next = { ...state, registrations: [...registrations, known] };
      out.push({ kind: "step", label: `the client asks to be known, with the number ${known}`, state: next });
    }
    for (const number of registrations) {
      const decision = this.#decide(state, number);
      const client = state.client ?? { since: state.number, puts: [false, false] as const };
      const next = decision === "unregistered" ? state : { ...state, client };
      const label = `its request with the number ${number} arrives: ${decision}`;
      out.push({ kind: "choice", label: `${label}, which nobody hears`, state: next });
      if (isRegistered || number !== known) continue;
      const heard = decision === "unregistered"
        ? { ...next, known: Math.max(known, state.number) }
        : { ...next, isRegistered: true };
      out.push({ kind: "step", label, state: heard });
    }
  }

  #message(state: RegistrationState, at: 0 | 1, out: Out): void {
    const message = state.messages[at];
    const which = `message ${at + 1}`;
    if (message.is === "unsent" && state.isRegistered) {
      out.push({ kind: "step", label: `${which} is sent`, state: sent(state, at, state.known) });
    }
    for (const number of state.network[at]) {
      const { next, answer } = this.#arrives(state, at, number);
      const arrived = `${which} arrives with the number ${number}: ${answer}`;
      out.push({ kind: "choice", label: `${arrived}, which nobody hears`, state: next });
      const waits = (message.is === "sent" || message.is === "resumed") && message.number === number;
      if (waits) out.push({ kind: "step", label: arrived, state: this.#hears(next, at, answer) });
    }
  }

  #decide(state: RegistrationState, number: number): "known" | "new" | "unregistered" {
    const { client } = state;
    if (client === null && this.#has("takes a client that it does not know for a new one")) return "new";
    if (client !== null && this.#has("asks a client that it knows for nothing")) return "known";
    return decideClientRegistration(number, { client: client?.since ?? null, topic: state.number });
  }

  /** At the server. */
  #arrives(state: RegistrationState, at: 0 | 1, number: number): {
    readonly next: RegistrationState;
    readonly answer: "OK" | "UNREGISTERED";
  } {
    if (this.#decide(state, number) === "unregistered") return { next: state, answer: "UNREGISTERED" };
    const client = state.client ?? { since: state.number, puts: [false, false] as const };
    if (client.puts[at]) return { next: { ...state, client }, answer: "OK" };
    const next = { ...state, client: { ...client, puts: with_(client.puts, at, true) } };
    return { next: { ...next, log: with_(state.log, at, state.log[at] + 1) }, answer: "OK" };
  }

  /** At the client: a put that was unregistered may have been stored before it was forgotten. */
  #hears(state: RegistrationState, at: 0 | 1, answer: "OK" | "UNREGISTERED"): RegistrationState {
    const message = state.messages[at];
    if (answer === "OK") return withMessage(state, at, { is: "stored" });
    if (this.#has("sends a put again with the number that it was refused with")) return sent(state, at, state.number);
    return message.is === "resumed" ? withMessage(state, at, { is: "forgotten" }) : this.#resume(state, at);
  }

  #resume(state: RegistrationState, at: 0 | 1): RegistrationState {
    const message = state.messages[at];
    if (message.is !== "sent" && message.is !== "resumed") return state;
    const number = this.#has("resumes with the newest number") ? Math.max(state.known, state.number) : message.number;
    const network = [...new Set([...state.network[at], number])];
    const next = { ...state, network: with_(state.network, at, network) };
    return withMessage(next, at, { is: "resumed", number });
  }

  #forgets(state: RegistrationState, out: Out): void {
    if (state.client === null || state.forgetsLeft === 0) return;
    const number = this.#has("does not raise the number when it forgets") ? state.number : state.number + 1;
    const next = { ...state, client: null, number, forgetsLeft: state.forgetsLeft - 1 };
    out.push({ kind: "choice", label: "the topic forgets the client", state: next });
    // With another content's numbers, which are all greater; who was subscribed to the old one may have had its
    // messages.
    const again = this.#has("begins again with the number 0") ? 0 : state.number + 1;
    const begun = { ...next, number: again };
    out.push({ kind: "choice", label: "an operator deletes the topic, and it begins again", state: begun });
  }

  #faults(state: RegistrationState, out: Out): void {
    if (state.faultsLeft === 0) return;
    const after = { ...state, faultsLeft: state.faultsLeft - 1 };
    const resumed = { ...this.#resume(this.#resume(after, 0), 1), isRegistered: false };
    out.push({ kind: "fault", label: "the client is killed, and resumes", state: resumed });
    const crashed = this.#has("loses the number in a crash") ? { ...after, number: 0 } : after;
    out.push({ kind: "fault", label: "the server crashes", state: crashed });
    const moved = this.#has("leaves the number behind when it moves") ? { ...after, number: 0 } : after;
    out.push({ kind: "fault", label: "the topic moves to another server", state: moved });
  }

  #has(mistake: RegistrationMistake): boolean {
    return this.#mistake === mistake;
  }
}

function sent(state: RegistrationState, at: 0 | 1, number: number): RegistrationState {
  const network = [...new Set([...state.network[at], number])];
  return withMessage({ ...state, network: with_(state.network, at, network) }, at, { is: "sent", number });
}

function withMessage(state: RegistrationState, at: 0 | 1, message: Message): RegistrationState {
  return { ...state, messages: with_(state.messages, at, message) };
}

function with_<T>([first, second]: readonly [T, T], at: 0 | 1, value: T): readonly [T, T] {
  return at === 0 ? [value, second] : [first, value];
}
