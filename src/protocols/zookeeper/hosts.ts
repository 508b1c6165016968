/** Parses the list of servers that users write, and resolves host names to addresses. */
import { BatonError, errorMessage } from "../../base/errors.ts";
import { type Address, formatAddress, splitHostPort } from "../../base/sockets/connection.ts";
import { isIpLiteral, type ResolveHost } from "../../base/sockets/resolve_host.ts";
import { rejectOnAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { describeSocketFailure } from "../../base/sockets/describe_failure.ts";
import { validateNodePath } from "./node_path.ts";

export interface ZooKeeperServerList {
  readonly addresses: readonly Address[];
  /** The path of the node that this client sees as the root; empty for the real root. */
  readonly chroot: string;
}

const portDefault = 2181;

/**
 * Parses a list of servers, such as `host:port,[::1]:2181/chroot` or `unix:/path/of/keeper.sock`. The default port is
 * 2181. A chroot may follow the last server. Throws USAGE.
 */
export function parseZooKeeperServers(text: string): ZooKeeperServerList {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length);
    if (!path.startsWith("/")) throw serverListError(text, "unix: needs the absolute path of a socket");
    return { addresses: [{ kind: "unix", path }], chroot: "" };
  }
  const slash = text.indexOf("/");
  const hosts = slash === -1 ? text : text.slice(0, slash);
  const chroot = slash === -1 ? "" : text.slice(slash).replace(/^\/$/, "");
  if (chroot.includes(",")) {
    throw serverListError(text, "write the chroot once, after the last server, as in zk1:2181,zk2:2181/app");
  }
  if (chroot !== "") {
    try {
      validateNodePath(chroot);
    } catch (error) {
      throw serverListError(text, errorMessage(error));
    }
  }
  return { addresses: hosts.split(",").map((host) => parseHost(host.trim(), text)), chroot };
}

function parseHost(text: string, list: string): Address {
  const parts = splitHostPort(text);
  if (parts === null) {
    throw serverListError(list, `"${text}" is not host:port (write IPv6 addresses in brackets, as in [::1]:2181)`);
  }
  const port = parts.port ?? portDefault;
  if (port < 1 || port > 65_535) throw serverListError(list, `${port} is not a port`);
  return { kind: "tcp", host: parts.host, port };
}

function serverListError(list: string, why: string): BatonError {
  return new BatonError("USAGE", `Cannot use "${list}" as the list of servers: ${why}`);
}

export interface ZooKeeperServerEndpoint {
  /** The address, with an IP address instead of a name. */
  readonly address: Address;
  /** The host as the user wrote it. The server's TLS certificate must contain this name. */
  readonly host: string;
  readonly name: string;
}

export interface ServerFailure {
  readonly name: string;
  readonly why: string;
}

interface HostsOptions {
  readonly resolve: ResolveHost;
  readonly clock: Clock;
  readonly random?: () => number;
}

/**
 * Resolves the host names of a server list. Each call resolves them again, because the addresses of names may change.
 */
export class ZooKeeperHosts {
  readonly #list: ZooKeeperServerList;
  readonly #options: HostsOptions;
  /** The last known addresses of each name, for use while the resolver does not respond. */
  readonly #known = new Map<string, string[]>();

  constructor(list: ZooKeeperServerList, options: HostsOptions) {
    this.#list = list;
    this.#options = options;
  }

  /**
   * Returns the addresses in random order, so that clients spread over the servers. If resolving a name fails or takes
   * longer than `lookupMs`, uses the last known addresses of the name.
   */
  async resolveServers(
    lookupMs: number,
    signal: AbortSignal,
  ): Promise<{ endpoints: ZooKeeperServerEndpoint[]; failures: ServerFailure[] }> {
    const endpoints: ZooKeeperServerEndpoint[] = [];
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
        failures.push({ name, why: describeSocketFailure(error) });
      }
      return undefined;
    }));
    return { endpoints: this.#shuffled(endpoints), failures };
  }

  async #lookup(host: string, lookupMs: number, signal: AbortSignal): Promise<string[]> {
    if (isIpLiteral(host)) return [host];
    const { clock, resolve } = this.#options;
    using deadline = deadlineAfter(clock, lookupMs, {
      signal,
      reason: () => new Error(`its name could not be resolved within ${formatDuration(lookupMs)}`),
    });
    try {
      const found = await rejectOnAbort(resolve(host), deadline.signal);
      this.#known.set(host, found);
      return found;
    } catch (error) {
      const known = this.#known.get(host);
      if (known === undefined || signal.aborted) throw error;
      return known;
    }
  }

  #shuffled<T>(items: T[]): T[] {
    const { random = Math.random } = this.#options;
    for (let last = items.length - 1; last > 0; last--) {
      const pick = Math.floor(random() * (last + 1));
      [items[last], items[pick]] = [items[pick] as T, items[last] as T];
    }
    return items;
  }
}
