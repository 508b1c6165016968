/** Socket options for CURVE, ZeroMQ's encryption and authentication. */
import { randomBytes } from "node:crypto";
import type { X25519Secret } from "../../base/support/x25519.ts";
import { curveClientMechanism } from "./zmtp/curve_client.ts";
import { curveServerMechanism } from "./zmtp/curve_server.ts";
import type { ZeroMqSocketOptions } from "./socket_options.ts";

/**
 * For a socket that listens. Accepts a peer if `isAllowed` returns true for the public key (Z85) that the peer has
 * proven to own. The key is the peer's user ID.
 */
export function curveListenOptions(key: X25519Secret, isAllowed: (publicKey: string) => boolean): ZeroMqSocketOptions {
  return { security: curveServerMechanism({ key, randomBytes, isAllowed }) };
}

/** For a socket that connects. The peer has to prove that it owns `serverKey`. Throws ZmtpError for an invalid key. */
export function curveDialOptions(key: X25519Secret, serverKey: Uint8Array): ZeroMqSocketOptions {
  return { security: curveClientMechanism({ key, serverKey, randomBytes }) };
}
