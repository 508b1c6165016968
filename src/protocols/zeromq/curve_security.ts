/** CURVE as a socket option: for a socket that is bound, and for one that connects. */
import { randomBytes } from "node:crypto";
import type { X25519Secret } from "../../base/support/x25519.ts";
import { curveClientMechanism } from "./zmtp/curve_client.ts";
import { curveServerMechanism } from "./zmtp/curve_server.ts";
import type { ZeroMqSocketOptions } from "./socket_options.ts";

/** Accepts each peer that has proven a key (Z85) for which `isAllowed` returns true. The key is the peer's user ID. */
export function curveListenOptions(key: X25519Secret, isAllowed: (publicKey: string) => boolean): ZeroMqSocketOptions {
  return { security: curveServerMechanism({ key, randomBytes, isAllowed }) };
}

/** Security of a connection to a peer that has to prove `serverKey`. Throws ZmtpError for an invalid key. */
export function curveDialOptions(key: X25519Secret, serverKey: Uint8Array): ZeroMqSocketOptions {
  return { security: curveClientMechanism({ key, serverKey, randomBytes }) };
}
