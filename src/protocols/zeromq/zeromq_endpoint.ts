/** Reads and formats endpoints in ZeroMQ's notation: tcp://host:port and ipc:///path. */
import { BatonError } from "../../base/errors.ts";
import { type Address, formatAddress, splitHostPort } from "../../base/sockets/connection.ts";

/** The longest path of a socket in bytes: the 108 bytes of `sun_path` without the final zero byte. */
export const ipcPathBytesMax = 107;

/** Parses an endpoint to connect to. Throws USAGE; the message quotes `written`, the user's text. */
export function parseConnectEndpoint(endpoint: string, written = endpoint): Address {
  const address = parseAnyEndpoint(endpoint, written);
  if (address.kind === "tcp" && (address.port === 0 || address.host === "*")) {
    throw usageError(written, "to connect, an endpoint needs a host and a port, as in tcp://db1:5555");
  }
  return address;
}

/**
 * Parses an endpoint to bind. The host `*` means every address of the machine; for the port `*` or 0, the system
 * chooses a port. Throws USAGE.
 */
export function parseBindEndpoint(endpoint: string): Address {
  const address = parseAnyEndpoint(endpoint.replace(/^(tcp:\/\/.*):\*$/, "$1:0"));
  return address.kind === "tcp" && address.host === "*" ? { ...address, host: "0.0.0.0" } : address;
}

export function formatZeroMqEndpoint(address: Address): string {
  return address.kind === "unix" ? `ipc://${address.path}` : `tcp://${formatAddress(address)}`;
}

function parseAnyEndpoint(endpoint: string, written = endpoint): Address {
  if (endpoint.startsWith("ipc://")) return parseIpc(endpoint);
  const { host = "", port = null } = endpoint.startsWith("tcp://") ? splitHostPort(endpoint.slice(6)) ?? {} : {};
  if (port === null) {
    throw usageError(written, "it is neither tcp://host:port nor ipc:///path (write an IPv6 address in brackets)");
  }
  if (port > 65_535) throw usageError(written, `${port} is not a port`);
  return { kind: "tcp", host, port };
}

function parseIpc(endpoint: string): Address {
  const path = endpoint.slice("ipc://".length);
  if (!path.startsWith("/") || path.includes("\0")) {
    throw usageError(endpoint, "ipc:// needs the absolute path of a socket, as in ipc:///run/baton/pubsub.sock");
  }
  const { length } = new TextEncoder().encode(path);
  if (length > ipcPathBytesMax) {
    throw usageError(endpoint, `its path has ${length} bytes, and a socket's path has at most ${ipcPathBytesMax}`);
  }
  return { kind: "unix", path };
}

function usageError(endpoint: string, why: string): BatonError {
  return new BatonError("USAGE", `Cannot use "${endpoint}" as an endpoint: ${why}`);
}
