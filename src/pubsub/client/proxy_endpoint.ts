/** The address of a proxy as users write it. */
import { parseEndpoint } from "../../protocols/zeromq/endpoint.ts";

/** Returns the endpoint; `host:port` is TCP. Throws USAGE for an invalid address, before anything is started. */
export function parseProxyEndpoint(address: string): string {
  const endpoint = address.includes("://") ? address : `tcp://${address}`;
  parseEndpoint(endpoint, address);
  return endpoint;
}
