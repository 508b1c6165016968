/**
 * Everything that another process of this program needs to end a session: servers, connection settings, ID and password. Encoded
 * as one word of text for a private pipe; it is secret.
 */
import type { TlsOptions } from "../sockets/connection.ts";
import type { ConnectOptions } from "./zookeeper_client.ts";
import type { SessionIdentity, ZooKeeperCredentials } from "./handshake.ts";
import type { ZooKeeperServerList } from "./hosts.ts";
import type { ZooKeeperSession } from "./zookeeper.ts";

export interface SessionHandle {
  readonly servers: ZooKeeperServerList;
  readonly tls?: TlsOptions | undefined;
  /** Servers with enforce.auth.enabled accept no request before it, not even closeSession. */
  readonly auth: readonly ZooKeeperCredentials[];
  readonly identity: SessionIdentity;
}

export function formatSessionHandle(
  { servers, tls, auth = [] }: ConnectOptions,
  { id, password }: Pick<ZooKeeperSession, "id" | "password">,
): string {
  const text = JSON.stringify({ servers, tls, auth, id: String(id), password: base64(password) });
  return base64(new TextEncoder().encode(text));
}

/** Throws for a text that `formatSessionHandle` has not made. */
export function parseSessionHandle(word: string): SessionHandle {
  const { id, password, ...rest } = JSON.parse(Buffer.from(word, "base64").toString()) as
    & Omit<SessionHandle, "identity">
    & { readonly id: string; readonly password: string };
  return { ...rest, identity: { id: BigInt(id), password: new Uint8Array(Buffer.from(password, "base64")) } };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
