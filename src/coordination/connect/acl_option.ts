/** Converts the `acl` and `auth.*` settings to options of the client. */
import type { Acl } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";

/** Permission bits of ZooKeeper's letters, as in zkCli. Source: ZooDefs.Perms. */
const letters: Record<string, number> = { r: 1, w: 2, c: 4, d: 8, a: 16 };
const all = 31;

/** Returns undefined for `open`, the client's default. Throws CONFIG without the place of the entries, which the caller adds. */
export function aclOf(entries: readonly string[]): Acl[] | undefined {
  if (entries.length === 1 && entries[0] === "open") return undefined;
  return entries.map((entry) => {
    if (entry === "creator") return { perms: all, id: { scheme: "auth", id: "" } };
    if (entry === "open") {
      throw new BatonError(
        "CONFIG",
        "open must be the only entry; with other entries, write world:anyone:cdrwa for all clients",
      );
    }
    const [, scheme, id, written] = /^([^:]+):(.*):([rwcda]+)$/.exec(entry) ?? [];
    if (scheme === undefined || id === undefined || written === undefined) {
      throw new BatonError(
        "CONFIG",
        `"${entry}" is not open, creator or scheme:id:perms, where perms are letters of rwcda`,
      );
    }
    return { perms: [...written].reduce((bits, letter) => bits | (letters[letter] ?? 0), 0), id: { scheme, id } };
  });
}

/**
 * Reads one credential per line; ignores empty lines and lines that start with #. Throws CONFIG with the name that `where`
 * gives to the line (from 1), and never quotes a secret.
 */
export function credentialsOf(
  text: string,
  where: (line: number) => string,
): { scheme: string; credentials: string }[] {
  return text.split("\n").map((line) => line.trim()).flatMap((line, index) => {
    if (line === "" || line.startsWith("#")) return [];
    const colon = line.indexOf(":");
    if (colon < 1) {
      throw new BatonError(
        "CONFIG",
        `${where(index + 1)}: this is not scheme:credentials, as in digest:USER:PASSWORD`,
      );
    }
    return [{ scheme: line.slice(0, colon), credentials: line.slice(colon + 1) }];
  });
}
