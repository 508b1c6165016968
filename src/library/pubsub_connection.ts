/**
 * Owns the connection of a program's publish/subscribe client, and one state and one session for each topic. Opens each
 * of them when a call first needs it. The time limit of a call includes the opening.
 */
import { BatonError } from "../base/errors.ts";
import type { ClientState } from "../pubsub/client/client_state.ts";
import { parseProxyEndpoint } from "../pubsub/client/proxy_endpoint.ts";
import { PubsubClientSession } from "../pubsub/client/pubsub_client_session.ts";
import { PubsubRequester, type PubsubRequestOptions } from "../pubsub/client/requester.ts";
import { topicClientStatesFolder } from "../pubsub/client/state_folder.ts";
import { findAnnouncedProxies } from "../pubsub/ownership/announced_proxies.ts";
import { PubsubPath } from "../pubsub/ownership/pubsub_path.ts";
import { anyAbortSignal, rejectOnAbort, throwIfAborted } from "../base/support/abort.ts";
import { systemClock } from "../base/support/clock.ts";
import { deadlineAfter } from "../base/support/deadline.ts";
import { userStateFolder } from "../base/support/home_folder.ts";
import { readCurvePublicKey, readCurveSecretKey } from "../protocols/zeromq/curve_key_file.ts";
import { curveDialOptions } from "../protocols/zeromq/curve_security.ts";
import type { ZeroMqSocketOptions } from "../protocols/zeromq/socket_options.ts";
import {
  checkOptions,
  functionForm,
  type OptionForms,
  signalForm,
  textForm,
  textsForm,
  waitForm,
} from "./check_arguments.ts";
import { checkSqlite } from "./check_runtime.ts";
import { findSession, type LibrarySession, serverForms, type ServerOptions } from "./session.ts";

/** How the client finds the service: at `proxies`, or at the proxies that the coordination service announces. */
export interface PubsubClientOptions extends ServerOptions {
  /** The addresses of proxies (`host:port`, `tcp://host:port`, `ipc:///path`), in the order in which they are tried. */
  readonly proxies?: readonly string[];
  /**
   * The folder for the states of the client ID; by default ~/.local/state/baton/pubsub, as for `baton pubsub client`. A
   * state contains the session number, the position, and the puts with an unknown outcome of one topic. Only one
   * process can use an ID in a topic at a time.
   */
  readonly stateDir?: string;
  /**
   * The time limit of a whole call in milliseconds; by default 30,000. It includes opening the state, finding a proxy,
   * connecting, and the response.
   */
  readonly wait?: number;
  /**
   * The file with the key pair of this client, from `baton pubsub keygen`; needs `serviceKeyFile`. By default, nothing
   * is encrypted.
   */
  readonly keyFile?: string;
  /** The file with the public key of the proxies. */
  readonly serviceKeyFile?: string;
  /**
   * Receives a sentence if a request makes no progress for 3 s, if an iterator waits for servers, or if a topic has no
   * subscriber.
   */
  readonly onProblem?: (sentence: string) => void;
}

const clientForms: OptionForms<PubsubClientOptions> = {
  ...serverForms,
  proxies: {
    ...textsForm,
    expected: "an array of at least one address",
    fits: (value) => isTexts(value) && value.length > 0,
  },
  stateDir: textForm,
  wait: waitForm(),
  keyFile: textForm,
  serviceKeyFile: textForm,
  onProblem: functionForm,
};

export interface PubsubCallOptions {
  /** The time limit of this call in milliseconds; by default the client's `wait`. */
  readonly wait?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export const pubsubCallForms: OptionForms<PubsubCallOptions> = { wait: waitForm(), signal: signalForm };

/** The default time limit of a call, in milliseconds. */
const waitMsDefault = 30_000;
/** How long to wait for the response of a proxy before the next proxy is tried, in milliseconds. */
const attemptMs = 5000;

export class PubsubConnection {
  readonly id: string;
  readonly clock = systemClock();
  readonly waitMs: number;
  readonly requester: PubsubRequester;
  readonly #options: PubsubClientOptions;
  readonly #closed = new AbortController();
  readonly #sessions = new Map<string, PubsubClientSession>();
  readonly #states = new Map<string, Promise<ClientState>>();

  /**
   * Checks the options; opens nothing. Throws USAGE for an invalid option or address, and CONFIG for unusable key
   * files.
   */
  constructor(id: string, options: PubsubClientOptions) {
    checkOptions("PubsubClient", options, clientForms);
    const { proxies, wait = waitMsDefault } = options;
    this.id = id;
    this.#options = options;
    this.waitMs = wait;
    const endpoints = proxies?.map(parseProxyEndpoint);
    const security = securityOf(options);
    const session = findSession("PubsubClient", options);
    this.requester = new PubsubRequester({
      findProxies: (signal) => endpoints === undefined ? findProxies(session, signal) : Promise.resolve(endpoints),
      clock: this.clock,
      timeoutMs: this.waitMs,
      attemptMs,
      onStall: (why) => this.report(why),
      ...(security === undefined ? {} : { socket: security }),
    });
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  report(sentence: string): void {
    this.#options.onProblem?.(sentence);
  }

  /** Returns the time limit of a call that starts now, and the signal that ends it. */
  limitsOf(options: PubsubCallOptions): { readonly endMs: number; readonly signal: AbortSignal } {
    checkOptions("PubsubClient", options, pubsubCallForms);
    const { wait = this.waitMs, signal } = options;
    return { endMs: this.clock.now() + wait, signal: anyAbortSignal(this.closed, signal) };
  }

  /**
   * Runs one call for a topic. If another process has taken over the client ID, this call fails and the next call uses
   * a new session.
   */
  async call<T>(
    topic: string,
    options: PubsubCallOptions,
    work: (session: PubsubClientSession, limits: PubsubRequestOptions) => Promise<T>,
  ): Promise<T> {
    const limits = this.limitsOf(options);
    const session = await this.session(topic, limits);
    try {
      return await work(session, limits);
    } catch (thrown) {
      if (thrown instanceof BatonError && thrown.code === "FENCED") this.replaceSession(topic, session);
      throw thrown;
    }
  }

  /**
   * Returns the session for a topic. Rejects with LOCK_BUSY while another process uses the client ID, or with CONFIG,
   * CANNOT_CREATE or IO.
   */
  async session(
    topic: string,
    { endMs, signal }: { readonly endMs: number; readonly signal: AbortSignal },
  ): Promise<PubsubClientSession> {
    const state = await this.state(topic, { endMs, signal });
    const known = this.#sessions.get(topic);
    if (known !== undefined) return known;
    const session = new PubsubClientSession(state, this.requester, "own");
    this.#sessions.set(topic, session);
    return session;
  }

  isCurrent(topic: string, session: PubsubClientSession): boolean {
    return this.#sessions.get(topic) === session;
  }

  /**
   * Makes the next request for the topic use a new session, because the counters of this session cannot be used again.
   */
  replaceSession(topic: string, session: PubsubClientSession): void {
    if (this.isCurrent(topic, session)) this.#sessions.delete(topic);
  }

  async state(
    topic: string,
    { endMs, signal }: { readonly endMs: number; readonly signal: AbortSignal },
  ): Promise<ClientState> {
    throwIfAborted(signal);
    const opening = this.#states.get(topic) ?? this.#openState(topic);
    const reason = () => new BatonError("LOCK_BUSY", `Another process uses the client ID ${JSON.stringify(this.id)}`);
    using limit = deadlineAfter(this.clock, Math.max(1, endMs - this.clock.now()), { signal, reason });
    return await rejectOnAbort(opening, limit.signal);
  }

  /** Ends all requests. The state keeps the messages that were put and not yet confirmed. */
  async close(): Promise<void> {
    this.#closed.abort(new DOMException(`The publish/subscribe client "${this.id}" was closed`, "AbortError"));
    const states = await Promise.all([...this.#states.values()].map((state) => state.catch(() => null)));
    await this.requester[Symbol.asyncDispose]();
    for (const state of states) state?.[Symbol.dispose]();
  }

  /** Opens the state of a topic. If this fails, the next call tries again. */
  #openState(topic: string): Promise<ClientState> {
    const { clock, waitMs, closed: signal } = this;
    const open = async () => {
      const { stateDir = userStateFolder("pubsub", "name the folder for client states with stateDir") } = this.#options;
      checkSqlite("a publish/subscribe client");
      // The module is loaded only here, because Node.js 22 prints a warning when SQLite is loaded.
      const { ClientState } = await import("../pubsub/client/client_state.ts");
      return await ClientState.open(topicClientStatesFolder(stateDir, topic), this.id, { waitMs, clock, signal });
    };
    const opening = open();
    this.#states.set(topic, opening);
    opening.catch(() => this.#states.delete(topic));
    return opening;
  }
}

async function findProxies(session: LibrarySession, signal: AbortSignal): Promise<string[]> {
  return await session.call(
    "find the proxies",
    { signal },
    ({ zk, root, waiting }) => findAnnouncedProxies(zk, new PubsubPath(root), waiting.signal),
  );
}

function isTexts(value: unknown): value is readonly string[] {
  return textsForm.fits(value);
}

/**
 * Reads the keys for an encrypted connection. Returns undefined if no keys are given, so that nothing is encrypted.
 * Throws USAGE or CONFIG.
 */
function securityOf({ keyFile, serviceKeyFile }: PubsubClientOptions): ZeroMqSocketOptions | undefined {
  if (keyFile === undefined && serviceKeyFile === undefined) return undefined;
  if (keyFile === undefined || serviceKeyFile === undefined) {
    throw new BatonError("USAGE", "An encrypted connection needs both keyFile and serviceKeyFile");
  }
  return curveDialOptions(readCurveSecretKey(keyFile), readCurvePublicKey(serviceKeyFile));
}
