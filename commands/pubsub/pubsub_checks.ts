/** Checks the settings of publish/subscribe for `baton config check`. */
import { parseListenAddressFlag } from "../../src/base/config/listen_address.ts";
import { parseBindEndpoint, parseConnectEndpoint } from "../../src/protocols/zeromq/zeromq_endpoint.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { parseProxyEndpoint } from "../../src/pubsub/client/proxy_endpoint.ts";
import { pubsubSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { defineProductChecks } from "../product.ts";
import { readTopicStoreLocation } from "./topic_store_location.ts";

export const pubsubChecks = defineProductChecks({
  settings: pubsubSettings,
  values: {
    pubsubServerId: (id) => checkPubsubName("server id", id),
    pubsubServerListen: parseBindEndpoint,
    pubsubServerAdvertise: (endpoint) => parseConnectEndpoint(endpoint),
    pubsubProxyListen: (endpoints) => endpoints.forEach((endpoint) => parseBindEndpoint(endpoint)),
    pubsubProxyAdvertise: (endpoint) => parseConnectEndpoint(endpoint),
    pubsubProxies: (addresses) => addresses.forEach(parseProxyEndpoint),
    pubsubClientId: (id) => checkPubsubName("client id", id),
    pubsubMetricsListen: parseListenAddressFlag,
  },
  together: (values, sources) => [() => readTopicStoreLocation(values, sources)],
});
