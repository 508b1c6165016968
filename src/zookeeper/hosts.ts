/** The list of servers as users write it, and whom to ask in one round of attempts. */
import { BatonError, messageOf } from "../errors.ts";
import { type Address, formatAddress } from "../sockets/connection.ts";
import { isIpLiteral, type Resolve } from "../sockets/resolve_host.ts";
import { abortable } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { formatDuration } from "../support/duration.ts";
import { describeFailure } from "../sockets/describe_failure.ts";
import { validatePath } from "./node_path_names.ts";

export interface ZooKeeperServerList {
  readonly addresses: readonly Address[];
  /** Empty, or the path that is the root for this client. */
  readonly chroot: string;
}

const portDefault = 2181;

/**
 * Reads `host:port,[::1]:2181/chroot` (port 2181 when left out; the chroot stands once, at the end) or
 * `unix:/path/of/keeper.sock`. Throws USAGE.
 */
export function parseServers(text: string): ZooKeeperServerList {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length);
    if (!path.startsWith("/")) throw usage(text, "after `unix:` stands the absolute path of a socket");
    return { addresses: [{ kind: "unix", path }], chroot: "" };
  }
  const slash = text.indexOf("/");
  const hosts = slash === -1 ? text : text.slice(0, slash);
  const chroot = slash === -1 ? "" : text.slice(slash).replace(/^\/$/, "");
  if (chroot.includes(",")) {
    throw usage(text, "the chroot stands once, behind the last server, as in zk1:2181,zk2:2181/app");
  }
  if (chroot !== "") {
    try {
      validatePath(chroot);
    } catch (error) {
      throw usage(text, messageOf(error));
    }
  }
  return { addresses: hosts.split(",").map((host) => parseHost(host.trim(), text)), chroot };
}

function parseHost(text: string, list: string): Address {
  const match = /^(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:[\]]+))(?::(\d+))?$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  if (host === undefined) {
    throw usage(list, `"${text}" is not host:port (an IPv6 address stands in brackets, as in [::1]:2181)`);
  }
  const port = match?.[3] === undefined ? portDefault : Number(match[3]);
  if (port < 1 || port > 65_535) throw usage(list, `${port} is not a port`);
  return { kind: "tcp", host, port };
}

function usage(list: string, why: string): BatonError {
  return new BatonError("USAGE", `Cannot use "${list}" as the list of servers: ${why}`);
}

/** One place to dial in this round. */
export interface Endpoint {
  /** With an IP literal: a name was looked up. */
  readonly address: Address;
  /** The host as the user wrote it: what a TLS certificate is checked against. */
  readonly host: string;
  /** For messages. */
  readonly name: string;
}

/** Why a server could not be used, for the sentence that lists them all. */
export interface ServerFailure {
  readonly name: string;
  readonly why: string;
}

export interface LookupRound {
  readonly endpoints: Endpoint[];
  readonly failures: ServerFailure[];
}

/** Turns the list into endpoints, anew for each round: names may have moved. */
export class Hosts {
  readonly #list: ZooKeeperServerList;
  readonly #resolve: Resolve;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** The last answer for each name: better than nothing while the resolver is silent. */
  readonly #known = new Map<string, string[]>();

  constructor(list: ZooKeeperServerList, { resolve, clock, random = Math.random }: {
    readonly resolve: Resolve;
    readonly clock: Clock;
    readonly random?: () => number;
  }) {
    this.#list = list;
    this.#resolve = resolve;
    this.#clock = clock;
    this.#random = random;
  }

  /** Shuffled, so that many clients spread over the servers. A name gets `lookupMs`; then its last addresses serve. */
  async round(lookupMs: number, signal: AbortSignal): Promise<LookupRound> {
    const endpoints: Endpoint[] = [];
    const failures: ServerFailure[] = [];
    await Promise.all(this.#list.addresses.map(async (address) => {
      const name = formatAddress(address);
      if (address.kind === "unix") return endpoints.push({ address, host: "localhost", name });
      try {
        for (const ip of await this.#lookup(address.host, lookupMs, signal)) {
          const found: Address = { kind: "tcp", host: ip, port: address.port };
          const alias = ip === address.host ? name : `${name} (${ip})`;
          endpoints.push({ address: found, host: address.host, name: alias });
        }
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        failures.push({ name, why: describeFailure(error) });
      }
      return undefined;
    }));
    return { endpoints: this.#shuffled(endpoints), failures };
  }

  async #lookup(host: string, lookupMs: number, signal: AbortSignal): Promise<string[]> {
    if (isIpLiteral(host)) return [host];
    const deadline = deadlineAfter(this.#clock, lookupMs, {
      signal,
      reason: () => new Error(`its name was not looked up within ${formatDuration(lookupMs)}`),
    });
    try {
      const found = await abortable(this.#resolve(host), deadline.signal);
      this.#known.set(host, found);
      return found;
    } catch (error) {
      const known = this.#known.get(host);
      if (known === undefined || signal.aborted) throw error;
      return known;
    } finally {
      deadline.cancel();
    }
  }

  /** Fisher and Yates. */
  #shuffled<T>(items: T[]): T[] {
    for (let last = items.length - 1; last > 0; last--) {
      const pick = Math.floor(this.#random() * (last + 1));
      [items[last], items[pick]] = [items[pick] as T, items[last] as T];
    }
    return items;
  }
}
