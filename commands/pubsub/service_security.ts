/** Reads the keys and permissions of proxies, servers and clients from their settings. */
import { formatCurveKey } from "../../src/protocols/zeromq/curve_certificate.ts";
import { readCurvePublicKey, readCurveSecretKey } from "../../src/protocols/zeromq/curve_key_file.ts";
import { curveDialOptions, curveListenOptions } from "../../src/protocols/zeromq/curve_security.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import { BatonError } from "../../src/base/errors.ts";
import { ClientAcl } from "../../src/pubsub/client_acl.ts";
import { readConfiguredFile } from "../../src/base/support/private_file.ts";
import { decodeUtf8 } from "../../src/base/support/text.ts";

export interface PubsubServiceSecurity {
  /** The options of the socket for proxies and servers; it accepts only processes with the service's key. */
  readonly internalListenOptions: ZeroMqSocketOptions;
  readonly internalDialOptions: ZeroMqSocketOptions;
  readonly clientListenOptions: ZeroMqSocketOptions;
  /** Checks whether a client may send a message; undefined if every accepted client may. */
  readonly authorize:
    | ((userId: string | null, message: Parameters<ClientAcl["refusalReason"]>[1]) => string | null)
    | undefined;
  /** Reads the client list again, and returns how many keys it has. If it throws CONFIG, the old list stays valid. */
  readonly readClients: (() => number) | undefined;
}

/**
 * Reads the service's key and its client list. Returns undefined if there is no key; then nothing is encrypted. All
 * proxies and servers of a service have the same key pair. Throws CONFIG for unusable files, or USAGE if there is a
 * client list but no key.
 */
export function readPubsubServiceSecurity({ pubsubKey, pubsubClients }: {
  readonly pubsubKey?: string | undefined;
  readonly pubsubClients?: string | undefined;
}): PubsubServiceSecurity | undefined {
  if (pubsubKey === undefined) {
    if (pubsubClients === undefined) return undefined;
    throw new BatonError(
      "USAGE",
      "--clients lists the accepted keys, and needs --key: without it no client proves a key",
    );
  }
  const key = readCurveSecretKey(pubsubKey);
  const own = formatCurveKey(key.publicKey);
  const read = pubsubClients === undefined
    ? null
    : () => ClientAcl.parse(decodeUtf8(readConfiguredFile(pubsubClients), pubsubClients), pubsubClients);
  let acl = read?.() ?? null;
  return {
    internalListenOptions: curveListenOptions(key, (publicKey) => publicKey === own),
    internalDialOptions: curveDialOptions(key, key.publicKey),
    clientListenOptions: curveListenOptions(
      key,
      (publicKey) => publicKey === own || acl === null || acl.hasKey(publicKey),
    ),
    authorize: acl === null
      ? undefined
      : (userId, message) => userId === own ? null : acl?.refusalReason(userId ?? "", message) ?? null,
    readClients: read === null ? undefined : () => {
      acl = read();
      return acl.size;
    },
  };
}

/** Returns socket options with the client's own key and the service's key; undefined if neither key is given. */
export function readPubsubClientSecurity({ pubsubKey, pubsubServiceKey }: {
  readonly pubsubKey?: string | undefined;
  readonly pubsubServiceKey?: string | undefined;
}): ZeroMqSocketOptions | undefined {
  if (pubsubKey === undefined && pubsubServiceKey === undefined) return undefined;
  if (pubsubKey === undefined || pubsubServiceKey === undefined) {
    throw new BatonError(
      "USAGE",
      "An encrypted connection needs both --key (your own key) and --service-key (the key of the proxies)",
    );
  }
  return curveDialOptions(readCurveSecretKey(pubsubKey), readCurvePublicKey(pubsubServiceKey));
}
