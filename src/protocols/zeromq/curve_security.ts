/** Socket options for CURVE, ZeroMQ's encryption and authentication. */
import { randomBytes } from "node:crypto";
import type { X25519Secret } from "../../base/support/x25519.ts";
import { curveClientMechanism } from "./zmtp/curve_client.ts";
import { curveServerMechanism } from "./zmtp/curve_server.ts";
import type { ZeroMqSocketOptions } from "./socket_options.ts";

/**
 * Returns the options of a socket that listens with CURVE. The socket accepts a peer if `isAllowed` accepts the public
 * key (Z85) whose secret key the peer has proven to have. That public key becomes the peer's user ID.
 */
export function curveListenOptions(key: X25519Secret, isAllowed: (publicKey: string) => boolean): ZeroMqSocketOptions {
  return { security: curveServerMechanism({ key, randomBytes, isAllowed }) };
}

/**
 * Returns the options of a socket that connects with CURVE. The peer has to prove that it owns `serverKey`. Throws
 * ZmtpError for an invalid key.
 */
export function curveDialOptions(key: X25519Secret, serverKey: Uint8Array): ZeroMqSocketOptions {
  return { security: curveClientMechanism({ key, serverKey, randomBytes }) };
}
