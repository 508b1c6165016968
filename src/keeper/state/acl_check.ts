/**
 * Who may do what. Source: ZooKeeperServer.checkACL, PrepRequestProcessor.fixupACL, DigestAuthenticationProvider,
 * IPAuthenticationProvider. Pure; where an identity comes from is the connection's business.
 */
import { createHash } from "node:crypto";
import { openAcl } from "../../wire/jute/open_acl.ts";
import { permission } from "../../wire/jute/zookeeper_operations.ts";
import type { Acl } from "../../wire/jute/zookeeper_records.ts";
import { addressMatches, isAddressRange } from "./ip_range.ts";
import { refuse } from "./operation_error.ts";

export interface Identity {
  readonly scheme: string;
  readonly id: string;
}

/** `user:base64(sha1(user:password))`, the id of a digest identity. As with the real server, what has no colon is a user's name. */
export function digestId(credentials: string): string {
  const [user = ""] = credentials.split(":", 1);
  return `${user}:${createHash("sha1").update(credentials).digest("base64")}`;
}

/** Refuses with NOAUTH unless one of the identities has one of the wanted permissions (a bit set). */
export function checkAcl(acl: readonly Acl[], wanted: number, identities: readonly Identity[]): void {
  if (acl === openAcl || permits(acl, wanted, identities)) return;
  refuse("NOAUTH");
}

/** Whether one of the identities has one of the wanted permissions. */
export function permits(acl: readonly Acl[], wanted: number, identities: readonly Identity[]): boolean {
  if (acl === openAcl || identities.some((identity) => identity.scheme === "super")) return true;
  return acl.some(({ perms, id }) => {
    if ((perms & wanted) === 0) return false;
    if (id.scheme === "world") return id.id === "anyone";
    return identities.some((identity) => identity.scheme === id.scheme && matches(identity, id.id));
  });
}

function matches(identity: Identity, wanted: string): boolean {
  return identity.scheme === "ip" ? addressMatches(identity.id, wanted) : identity.id === wanted;
}

/** The list as it is stored: `auth` replaced by the connection's own identities. Refuses with INVALIDACL what names nobody. */
export function resolveAcl(acl: readonly Acl[] | null, identities: readonly Identity[]): readonly Acl[] {
  if (acl === null || acl.length === 0) refuse("INVALIDACL");
  const first = acl[0];
  if (acl.length === 1 && first?.perms === permission.all && first.id.scheme === "world" && first.id.id === "anyone") {
    return openAcl;
  }
  const resolved: Acl[] = [];
  for (const entry of acl) {
    for (const candidate of expand(entry, identities)) {
      const known = resolved.some(({ perms, id }) =>
        perms === candidate.perms && id.scheme === candidate.id.scheme && id.id === candidate.id.id
      );
      if (!known) resolved.push(candidate);
    }
  }
  return resolved;
}

function expand(entry: Acl, identities: readonly Identity[]): Acl[] {
  const { scheme, id } = entry.id;
  switch (scheme) {
    case "world":
      return id === "anyone" ? [entry] : refuse("INVALIDACL");
    case "digest":
      return id.split(":").length === 2 ? [entry] : refuse("INVALIDACL");
    case "ip":
      return isAddressRange(id) ? [entry] : refuse("INVALIDACL");
    case "auth": {
      const own = identities.filter((identity) => identity.scheme === "digest");
      return own.length > 0 ? own.map((identity) => ({ perms: entry.perms, id: identity })) : refuse("INVALIDACL");
    }
    default:
      return refuse("INVALIDACL");
  }
}

/** What somebody without ADMIN sees of a list: the digests are hidden. */
export function maskDigests(acl: readonly Acl[]): Acl[] {
  return acl.map((entry) =>
    entry.id.scheme === "digest"
      ? { perms: entry.perms, id: { scheme: "digest", id: `${entry.id.id.split(":")[0]}:x` } }
      : entry
  );
}
