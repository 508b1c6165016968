/** Parses addresses as users write them. */
import { type Address, splitHostPort } from "./connection.ts";

/**
 * Parses `host:port`, `[address]:port` (IPv6) or `unix:/absolute/path`. Port 0 is allowed. Returns null for other
 * texts.
 */
export function parseAddress(text: string): Address | null {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length);
    return path.startsWith("/") ? { kind: "unix", path } : null;
  }
  const { host = "", port = null } = splitHostPort(text) ?? {};
  return port === null || port > 65_535 ? null : { kind: "tcp", host, port };
}

/** Parses an address to listen on. `:port` means that port at 127.0.0.1. */
export function parseListenAddress(text: string): Address | null {
  return parseAddress(text.startsWith(":") ? `127.0.0.1${text}` : text);
}
