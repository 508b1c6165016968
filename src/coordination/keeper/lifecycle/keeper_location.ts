/**
 * Finds the folder and the socket of a user's keeper. They depend on the effective user and the user database, but not
 * on HOME or the XDG variables. Cron, a login shell and sudo therefore find the same keeper, unless BATON_KEEPER_DIR or
 * BATON_STATE_DIR moves it. ensure_keeper.ts starts the keeper.
 */
import { accessSync, constants, mkdirSync, readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import process from "node:process";
import { BatonError, systemCallErrorReason } from "../../../base/errors.ts";
import { findHomeFolder, findNamedStateFolder } from "../../../base/support/home_folder.ts";
import { socketPathBytesMax } from "../../../base/sockets/clear_socket_path.ts";
import {
  checkSafeFolder,
  effectiveUserId,
  foldersToCheckAbove,
  type FolderToCheck,
  statKeeperFolder,
} from "./safe_folder.ts";

export interface KeeperLocation {
  /** The data directory; null if another user runs the keeper. */
  readonly dir: string | null;
  readonly socketPath: string;
  /** "machine" if the keeper serves all users of this machine, "user" if only one. */
  readonly scope: "machine" | "user";
  /** The folders above `dir` that other users must not be able to rename, from the top. */
  readonly above?: readonly FolderToCheck[];
}

/** The name of the log file, in the data directory, of a keeper that was started on demand. */
export const keeperLogFileName = "keeper.log";

/** Path of the socket of the keeper that root has set up for all users. */
export const machineKeeperSocketPath = "/run/baton/keeper.sock";

export interface KeeperLocationOptions {
  readonly machineKeeperSocketPath?: string;
  readonly userDatabase?: string;
  readonly fallbackFolder?: string;
}

/**
 * Returns the location of the machine's keeper if there is one, otherwise the location of this user's keeper.
 * BATON_STATE_DIR moves this user's keeper; BATON_KEEPER_DIR overrides everything. Throws CONFIG if the location is not
 * safe: owned by another user, writable for others, or a symbolic link. Checks every folder below the home folder or
 * /var/tmp. If the user named a folder, checks all folders above it.
 */
export function findKeeperLocation(
  env: Readonly<Record<string, string | undefined>>,
  options: KeeperLocationOptions = {},
): KeeperLocation {
  const named = env["BATON_KEEPER_DIR"];
  if (named !== undefined && named !== "") {
    if (!named.startsWith("/")) throw configError(`BATON_KEEPER_DIR is "${named}", which is not an absolute path`);
    return locationIn({ dir: resolve(named), above: foldersToCheckAbove(resolve(named)) });
  }
  const machine = options.machineKeeperSocketPath ?? machineKeeperSocketPath;
  if (machineKeeperExists(machine)) return { dir: null, socketPath: machine, scope: "machine" };
  const name = join("keeper", machineId());
  const stateFolder = findNamedStateFolder(env);
  if (stateFolder !== null) {
    const dir = join(stateFolder, name);
    return locationIn({ dir, above: foldersToCheckAbove(dir) });
  }
  const home = findHomeFolder(effectiveUserId(), options.userDatabase ?? "/etc/passwd");
  const atHome = home?.startsWith("/") ? folderBelow(home, join(".local/state/baton", name), "home") : null;
  const fallback = options.fallbackFolder ?? shortFolder();
  const elsewhere = folderBelow(dirname(fallback), join(basename(fallback), name), "own");
  // Uses an existing location again: the locks then do not move when the home folder becomes writable or read-only.
  for (const location of [atHome, elsewhere]) {
    if (location !== null && statKeeperFolder(location.dir) !== null) return locationIn(location);
  }
  return locationIn(atHome !== null && home !== null && isUsableHome(home) ? atHome : elsewhere);
}

/** Creates the missing folders of a keeper, and checks all its folders again. Throws CONFIG or CANNOT_CREATE. */
export function createKeeperFolders(
  location: { dir: string; socketPath: string; above?: readonly FolderToCheck[] },
): void {
  for (const folder of new Set([location.dir, dirname(location.socketPath)])) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new BatonError(
        "CANNOT_CREATE",
        `Cannot create the keeper's folder ${folder}: ${systemCallErrorReason(error)}`,
      );
    }
  }
  checkFolders(location);
}

function locationIn({ dir, above }: { dir: string; above: readonly FolderToCheck[] }): KeeperLocation {
  const location = { dir, socketPath: socketPathOf(dir), scope: "user", above } as const;
  checkFolders(location);
  return location;
}

function checkFolders(
  { dir, socketPath, above = [] }: { dir: string; socketPath: string; above?: readonly FolderToCheck[] },
): void {
  const folders: FolderToCheck[] = [...above, { path: dir, rule: "own" }];
  const socketFolder = dirname(socketPath);
  if (socketFolder !== dir) {
    folders.push({ path: dirname(socketFolder), rule: "system" }, { path: socketFolder, rule: "own" });
  }
  for (const folder of folders) checkSafeFolder(folder);
}

/**
 * Returns the path of the socket: in the data directory, or in /var/tmp if the path in the data directory would be too
 * long for a socket.
 */
function socketPathOf(dir: string): string {
  const beside = join(dir, "keeper.sock");
  if (Buffer.byteLength(beside) <= socketPathBytesMax) return beside;
  const { createHash } = process.getBuiltinModule("node:crypto");
  const name = createHash("sha256").update(dir).digest("hex").slice(0, 32);
  return join(shortFolder(), `${name}.sock`);
}

/**
 * Returns the folder `way` below `first`, and the folders above it that must be checked. A home folder itself is not
 * checked.
 */
function folderBelow(
  first: string,
  way: string,
  rule: "home" | "own",
): { dir: string; above: readonly FolderToCheck[] } {
  const above: FolderToCheck[] = rule === "home" ? [] : [{ path: first, rule: "system" }];
  let path = first;
  for (const name of dirname(way).split("/")) above.push({ path: path = join(path, name), rule });
  return { dir: join(first, way), above };
}

function shortFolder(): string {
  return `/var/tmp/baton-${effectiveUserId()}`;
}

/**
 * Returns true if this machine has a keeper for all users. The folder decides, not the socket: while that keeper
 * restarts, the socket is missing for a moment, and clients must not use another keeper.
 */
function machineKeeperExists(socketPath: string): boolean {
  const folder = statKeeperFolder(dirname(socketPath));
  if (folder === null) return false;
  const socket = statKeeperFolder(socketPath);
  const safe = folder.isDirectory() && folder.uid === 0 && (folder.mode & 0o022) === 0 &&
    (socket === null || socket.isSocket() && socket.uid === 0);
  if (!safe) {
    throw configError(
      `The machine's keeper at ${socketPath} is not safe to use: ` +
        "it and its folder must be owned by root and writable only for root",
    );
  }
  return true;
}

function isUsableHome(home: string): boolean {
  try {
    const stat = statSync(home);
    accessSync(home, constants.W_OK | constants.X_OK);
    return stat.isDirectory() && stat.uid === effectiveUserId();
  } catch {
    return false;
  }
}

function machineId(): string {
  for (const path of ["/etc/machine-id", "/var/lib/dbus/machine-id"]) {
    const id = readOrNull(path)?.trim() ?? "";
    if (/^[0-9a-f]{32}$/.test(id)) return id;
  }
  return hostname().replace(/[^A-Za-z0-9.-]/g, "_") || "localhost";
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function configError(message: string): BatonError {
  return new BatonError("CONFIG", message);
}
