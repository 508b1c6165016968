/**
 * Finds the proxies for a client: those that the user names, those in a file, or those that have announced themselves.
 */
import { ServerConnectReport } from "../../src/protocols/zookeeper/connector.ts";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { pubsubClientSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { addOriginToErrors } from "../../src/base/config/resolve_settings.ts";
import type { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { PubsubRequesterOptions } from "../../src/pubsub/client/requester.ts";
import { findAnnouncedProxies } from "../../src/pubsub/ownership/announced_proxies.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { parseProxyEndpoint } from "../../src/pubsub/client/proxy_endpoint.ts";
import type { CommandCall } from "../command.ts";
import {
  type CoordinationServers,
  lockScopeTexts,
  readCoordinationServers,
} from "../../src/coordination/connect/coordination_servers.ts";
import { readConfiguredFile } from "../../src/base/support/private_file.ts";

export type ProxyLookupCall = Pick<
  CommandCall<typeof connectionSettings & Pick<typeof pubsubClientSettings, "pubsubProxies" | "pubsubProxiesFile">>,
  "values" | "sources" | "io"
>;

/**
 * Returns the function that finds proxies, and a description of the place where it looks. A client calls the function
 * when it can reach none of the proxies that it knows. Throws USAGE or CONFIG for an invalid address.
 */
export function proxyLookupOptions(call: ProxyLookupCall): Pick<PubsubRequesterOptions, "findProxies" | "lookupPlace"> {
  const { values, sources, io } = call;
  const { pubsubProxies, pubsubProxiesFile } = values;
  const named = pubsubProxies !== undefined
    ? addOriginToErrors(
      "pubsubProxies",
      pubsubClientSettings.pubsubProxies,
      sources,
      () => pubsubProxies.map(parseProxyEndpoint),
    )
    : pubsubProxiesFile === undefined
    ? null
    : readProxiesFile(pubsubProxiesFile);
  if (named !== null) {
    return { findProxies: () => Promise.resolve(named) };
  }
  let place: CoordinationServers | null = null;
  let report = new ServerConnectReport();
  const findProxies = async (signal: AbortSignal) => {
    if (place === null) {
      place = readCoordinationServers(values, sources, { warn: (text) => io.err(`baton: ${text}\n`) });
      if (place.assumed && !values.quiet && (values.verbose || io.stderrIsTerminal)) {
        io.err(`baton: this is about ${lockScopeTexts[place.scope]}; --servers or --proxies names others\n`);
      }
    }
    report = new ServerConnectReport();
    await using zk = await connectToZooKeeper({ ...place.connect, report, signal });
    return await findAnnouncedProxies(zk, new PubsubPath(place.root), signal);
  };
  if (values.servers === undefined) return { findProxies };
  const lookupPlace = () => {
    const why = report.describe(systemClock().now());
    return `in the coordination service at ${values.servers}${why === "" ? "" : ` (${why})`}`;
  };
  return { findProxies, lookupPlace };
}

function readProxiesFile(path: string): string[] {
  const text = new TextDecoder().decode(readConfiguredFile(path, `the proxies' addresses in ${path}`));
  const endpoints = text.split("\n").flatMap((line, index) => {
    const address = line.trim();
    return address === "" || address.startsWith("#")
      ? []
      : [parseProxyEndpointAt(address, `${path}, line ${index + 1}`)];
  });
  if (endpoints.length === 0) throw new BatonError("CONFIG", `no proxy address in ${path}`);
  return endpoints;
}

function parseProxyEndpointAt(address: string, place: string): string {
  try {
    return parseProxyEndpoint(address);
  } catch (thrown) {
    throw new BatonError("CONFIG", `${place}: ${errorMessage(thrown)}`, { cause: thrown });
  }
}
