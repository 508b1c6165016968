/** Finds what may stop locks on this machine: certificates that end, a full disk, keepers of several users. */
import { readFileSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { BatonError } from "../../src/base/errors.ts";
import { type Finding, makeFinding } from "../../src/base/rows/finding.ts";
import { judgeDisk } from "../../src/base/rows/row_findings.ts";
import { readCertificateEndMs } from "../../src/base/sockets/tls_files.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";

const certificateEndMsMin = 14 * 24 * 3_600_000;

/** Returns the findings for certificates that this user can read and that end soon. */
export function certificateFindings(files: readonly (string | undefined)[], nowMs: number): Finding[] {
  return [...new Set(files)].filter((file) => file !== undefined).flatMap((file) => {
    try {
      const endMs = readCertificateEndMs(file);
      if (endMs - nowMs > certificateEndMsMin) return [];
      const what = `it ${endMs > nowMs ? "ends" : "ended"} at ${new Date(endMs).toISOString()}`;
      return [makeFinding("certificate-ends", { where: `certificate ${file}`, what, action: "renew it" })];
    } catch (thrown) {
      if (thrown instanceof BatonError) return [];
      throw thrown;
    }
  });
}

/** Returns the findings for this user's keeper. There are none if another user, or another machine, runs it. */
export function ownKeeperFindings({ servers, scope }: CoordinationServers): Finding[] {
  if (scope !== "user") return [];
  const socket = servers.slice("unix:".length);
  const { bavail, bsize } = statfsSync(dirname(socket));
  return [...judgeDisk("keeper of this user", bavail * bsize), ...judgeKeeperSockets(listUnixSockets(), socket)];
}

/** Returns /proc/net/unix, the sockets of this network namespace; an empty text on another system. */
function listUnixSockets(): string {
  try {
    return readFileSync("/proc/net/unix", "utf8");
  } catch {
    return "";
  }
}

/** Finds running keepers of other users in the text of /proc/net/unix. Pure. */
export function judgeKeeperSockets(sockets: string, ownSocket: string): Finding[] {
  const paths = sockets.split("\n").map((line) => line.slice(line.indexOf("/")));
  const others = [...new Set(paths)].filter((path) => path !== ownSocket && isUserKeeperSocket(path)).sort();
  if (others.length === 0 || !isUserKeeperSocket(ownSocket)) return [];
  const what = `other users have keepers of their own: ${others.join(", ")}; locks of the same name do not exclude ` +
    "each other between users";
  const action = "run one keeper for all users as root: systemctl enable --now baton-keeper";
  return [makeFinding("keepers-of-several-users", { where: "this machine", what, action })];
}

/** Returns true if a path is that of a user's keeper in the home folder or below /var/tmp. */
function isUserKeeperSocket(path: string): boolean {
  return /^(\/.*\/\.local\/state\/baton|\/var\/tmp\/baton-\d+)\/keeper\/[^/]+\/keeper\.sock$/.test(path);
}
