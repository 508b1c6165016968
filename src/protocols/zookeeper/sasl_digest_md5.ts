/**
 * The client's side of SASL DIGEST-MD5 (RFC 2831). The service `zookeeper` and the server `zk-sasl-md5` are ZooKeeper's
 * names (ZooKeeperSaslClient, SaslServerPrincipal).
 */
import { createHash } from "node:crypto";
import { protocolError } from "../../base/wire/bytes.ts";

const zooKeeperUri = "zookeeper/zk-sasl-md5";

export interface SaslExchange {
  /**
   * Returns the response to the server's token; null when the server has proved that it knows the password. Throws
   * PROTOCOL.
   */
  next(token: Uint8Array): Uint8Array | null;
}

/** Starts an exchange. `credentials` is `user:password`; `clientNonce` must be unique. */
export function startSaslDigestMd5(
  credentials: string,
  clientNonce: string,
  { digestUri = zooKeeperUri }: { readonly digestUri?: string } = {},
): SaslExchange {
  const colon = credentials.indexOf(":");
  const user = credentials.slice(0, colon);
  const password = credentials.slice(colon + 1);
  let proofWanted: string | null = null;
  return {
    next(token) {
      const directives = parseDirectives(new TextDecoder().decode(token));
      if (proofWanted !== null) {
        if (directives.get("rspauth") === proofWanted) return null;
        throw protocolError("The server did not prove in SASL DIGEST-MD5 that it knows the password");
      }
      const nonce = directives.get("nonce");
      if (nonce === undefined || !(directives.get("qop") ?? "auth").split(",").includes("auth")) {
        throw protocolError(
          "The server's SASL DIGEST-MD5 challenge has no nonce, or does not offer plain authentication",
        );
      }
      const realm = directives.get("realm") ?? "";
      const secret = md5(`${user}:${realm}:${password}`);
      const digest = (method: string) => {
        const a1 = hex(md5(Buffer.concat([secret, Buffer.from(`:${nonce}:${clientNonce}`)])));
        const a2 = hex(md5(`${method}:${digestUri}`));
        return hex(md5(`${a1}:${nonce}:00000001:${clientNonce}:auth:${a2}`));
      };
      proofWanted = digest("");
      return new TextEncoder().encode([
        "charset=utf-8",
        `username=${quoted(user)}`,
        `realm=${quoted(realm)}`,
        `nonce=${quoted(nonce)}`,
        "nc=00000001",
        `cnonce=${quoted(clientNonce)}`,
        `digest-uri=${quoted(digestUri)}`,
        "maxbuf=65536",
        `response=${digest("AUTHENTICATE")}`,
        "qop=auth",
      ].join(","));
    },
  };
}

function parseDirectives(text: string): Map<string, string> {
  const directives = new Map<string, string>();
  for (const match of text.matchAll(/([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,\s]+))/g)) {
    directives.set(match[1] ?? "", match[3] ?? (match[2] ?? "").replace(/\\(.)/g, "$1"));
  }
  return directives;
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

function md5(data: string | Uint8Array): Buffer {
  return createHash("md5").update(data).digest();
}

function hex(bytes: Buffer): string {
  return bytes.toString("hex");
}
