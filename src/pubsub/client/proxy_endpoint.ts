/** The address of a proxy as users write it. */
import { parseConnectEndpoint } from "../../protocols/zeromq/zeromq_endpoint.ts";

/** Returns the endpoint; `host:port` is TCP. Throws USAGE for an invalid address, before anything is started. */
export function parseProxyEndpoint(address: string): string {
  const endpoint = address.includes("://") ? address : `tcp://${address}`;
  parseConnectEndpoint(endpoint, address);
  return endpoint;
}
