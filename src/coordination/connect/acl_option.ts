/** The `acl` and `auth.*` settings as the client wants them. */
import type { Acl } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";

/** ZooKeeper's letters, as zkCli writes them. Source: ZooDefs.Perms. */
const letters: Record<string, number> = { r: 1, w: 2, c: 4, d: 8, a: 16 };
const all = 31;

/** Undefined for `open`, which is what the client does by itself. Throws CONFIG; where the entries stand is for the caller to say. */
export function aclOf(entries: readonly string[]): Acl[] | undefined {
  if (entries.length === 1 && entries[0] === "open") return undefined;
  return entries.map((entry) => {
    if (entry === "creator") return { perms: all, id: { scheme: "auth", id: "" } };
    if (entry === "open") {
      throw new BatonError("CONFIG", "open stands alone; beside other entries, everybody is world:anyone:cdrwa");
    }
    const [, scheme, id, written] = /^([^:]+):(.*):([rwcda]+)$/.exec(entry) ?? [];
    if (scheme === undefined || id === undefined || written === undefined) {
      throw new BatonError(
        "CONFIG",
        `"${entry}" is not open, creator or scheme:id:perms with perms out of r, w, c, d and a`,
      );
    }
    return { perms: [...written].reduce((bits, letter) => bits | (letters[letter] ?? 0), 0), id: { scheme, id } };
  });
}

/**
 * One line each; empty lines and those that begin with # do not count. Throws CONFIG with what `where` calls the line,
 * counted from 1, and never quotes a secret.
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
