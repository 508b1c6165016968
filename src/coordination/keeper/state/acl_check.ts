/**
 * Access control lists. Source: ZooKeeperServer.checkACL, PrepRequestProcessor.fixupACL, DigestAuthenticationProvider,
 * IPAuthenticationProvider. Pure; the connection provides the identities.
 */
import { createHash } from "node:crypto";
import { aclPermission, openAcl } from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Acl } from "../../../protocols/zookeeper/jute/zookeeper_records.ts";
import { refuseKeeperOperation } from "./operation_error.ts";

export interface ClientIdentity {
  readonly scheme: string;
  readonly id: string;
}

/**
 * Returns the ID of a digest identity, which is `user:base64(sha1(user:password))`. As in ZooKeeper, credentials
 * without a colon are a user name.
 */
export function digestIdentityId(credentials: string): string {
  const [user = ""] = credentials.split(":", 1);
  return `${user}:${createHash("sha1").update(credentials).digest("base64")}`;
}

/** Throws NOAUTH unless one of the identities has one of the permissions in the bit set `wanted`. */
export function checkAcl(acl: readonly Acl[], wanted: number, identities: readonly ClientIdentity[]): void {
  if (acl === openAcl || isPermittedByAcl(acl, wanted, identities)) return;
  refuseKeeperOperation("NOAUTH");
}

/** Returns true if one of the identities has one of the permissions in the bit set `wanted`. */
export function isPermittedByAcl(acl: readonly Acl[], wanted: number, identities: readonly ClientIdentity[]): boolean {
  if (acl === openAcl || identities.some((identity) => identity.scheme === "super")) return true;
  return acl.some(({ perms, id }) => {
    if ((perms & wanted) === 0) return false;
    if (id.scheme === "world") return id.id === "anyone";
    return identities.some((identity) => identity.scheme === id.scheme && matchesId(identity, id.id));
  });
}

function matchesId(identity: ClientIdentity, wanted: string): boolean {
  return identity.scheme === "ip" ? isAddressInRange(identity.id, wanted) : identity.id === wanted;
}

/**
 * Returns the list to store: `acl` with the client's own identities in place of `auth`. Throws INVALIDACL for an entry
 * that no identity can match.
 */
export function resolveAcl(acl: readonly Acl[] | null, identities: readonly ClientIdentity[]): readonly Acl[] {
  if (acl === null || acl.length === 0) refuseKeeperOperation("INVALIDACL");
  const first = acl[0];
  if (
    acl.length === 1 && first?.perms === aclPermission.all && first.id.scheme === "world" && first.id.id === "anyone"
  ) {
    return openAcl;
  }
  const resolved: Acl[] = [];
  for (const entry of acl) {
    for (const candidate of resolveEntry(entry, identities)) {
      const known = resolved.some(({ perms, id }) =>
        perms === candidate.perms && id.scheme === candidate.id.scheme && id.id === candidate.id.id
      );
      if (!known) resolved.push(candidate);
    }
  }
  return resolved;
}

function resolveEntry(entry: Acl, identities: readonly ClientIdentity[]): Acl[] {
  const { scheme, id } = entry.id;
  switch (scheme) {
    case "world":
      return id === "anyone" ? [entry] : refuseKeeperOperation("INVALIDACL");
    case "digest":
      return id.split(":").length === 2 ? [entry] : refuseKeeperOperation("INVALIDACL");
    case "ip":
      return isAddressRange(id) ? [entry] : refuseKeeperOperation("INVALIDACL");
    case "auth": {
      const own = identities.filter((identity) => identity.scheme === "digest");
      return own.length > 0
        ? own.map((identity) => ({ perms: entry.perms, id: identity }))
        : refuseKeeperOperation("INVALIDACL");
    }
    default:
      return refuseKeeperOperation("INVALIDACL");
  }
}

/** Returns the list with its digests hidden, for a client without the ADMIN permission. */
export function maskAclDigests(acl: readonly Acl[]): Acl[] {
  return acl.map((entry) =>
    entry.id.scheme === "digest"
      ? { perms: entry.perms, id: { scheme: "digest", id: `${entry.id.id.split(":")[0]}:x` } }
      : entry
  );
}

/** Returns true if `range` is an address, with or without a prefix length. */
export function isAddressRange(range: string): boolean {
  return parseRange(range) !== null;
}

export function isAddressInRange(address: string, range: string): boolean {
  const bytes = parseAddress(address);
  const parsed = parseRange(range);
  if (bytes === null || parsed === null || bytes.length !== parsed.bytes.length) return false;
  return bytes.every((byte, index) => {
    const bits = Math.min(8, Math.max(0, parsed.bits - index * 8));
    const mask = (0xff << (8 - bits)) & 0xff;
    return (byte & mask) === ((parsed.bytes[index] ?? 0) & mask);
  });
}

function parseRange(range: string): { bytes: number[]; bits: number } | null {
  const [address = "", prefix, ...rest] = range.split("/");
  const bytes = parseAddress(address);
  if (bytes === null || rest.length > 0) return null;
  if (prefix === undefined) return { bytes, bits: bytes.length * 8 };
  const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : Infinity;
  return bits <= bytes.length * 8 ? { bytes, bits } : null;
}

function parseAddress(address: string): number[] | null {
  const mapped = address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(mapped)) {
    const bytes = mapped.split(".").map(Number);
    return bytes.every((byte) => byte <= 255) ? bytes : null;
  }
  const halves = mapped.split("%")[0]?.split("::") ?? [];
  if (!mapped.includes(":") || halves.length > 2) return null;
  const [head = [], tail = []] = halves.map((half) => half === "" ? [] : half.split(":"));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...head, ...Array<string>(missing).fill("0"), ...tail];
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return null;
  return groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]);
}
