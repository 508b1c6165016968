/** Reads the address of a proxy as users write it. */
import { parseConnectEndpoint } from "../../protocols/zeromq/zeromq_endpoint.ts";

/** Returns the ZeroMQ endpoint of an address; `host:port` means TCP. Throws USAGE for an invalid address. */
export function parseProxyEndpoint(address: string): string {
  const endpoint = address.includes("://") ? address : `tcp://${address}`;
  parseConnectEndpoint(endpoint, address);
  return endpoint;
}
