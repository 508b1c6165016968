/**
 * Where a user's keeper lives. The same from cron, from a login shell and under sudo: it follows from the effective user
 * and the user database, never from HOME or the XDG variables. Starts nothing; see on_demand.ts.
 */
import { accessSync, constants, mkdirSync, readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import process from "node:process";
import { BatonError, messageOf } from "../../errors.ts";
import { socketPathBytesMax } from "../../sockets/clear_socket_path.ts";
import { checkFolder, type SafeFolder, statFolder, userId } from "./safe_folder.ts";

export interface KeeperLocation {
  /** The folder of the data; null when somebody else runs the keeper and it is only there to be used. */
  readonly dir: string | null;
  readonly socketPath: string;
  /** Whom it serves: everybody on this machine, or this user. */
  readonly scope: "machine" | "user";
  /** The folders above `dir` that others must not be able to rename either, from the top; none above one that was named. */
  readonly parents?: readonly SafeFolder[];
}

/** In the place's folder: what a keeper that was started on demand says. */
export const keeperLogName = "keeper.log";

/** The keeper that root set up for all users. */
export const machineSocketPath = "/run/baton/keeper.sock";

/** Where to look, for tests. */
export interface KeeperLocationOptions {
  readonly machineSocketPath?: string;
  readonly userDatabase?: string;
  readonly fallbackFolder?: string;
}

/**
 * The place of this user's keeper, or of the machine's if there is one. BATON_KEEPER_DIR overrides both. Throws CONFIG
 * when what is there is not safe to use: another owner, open to others, a link. Below the home and /var/tmp that is asked of
 * every folder; who may write to those above a folder that was named is up to whoever named it.
 */
export function keeperLocation(
  env: Readonly<Record<string, string | undefined>>,
  options: KeeperLocationOptions = {},
): KeeperLocation {
  const named = env["BATON_KEEPER_DIR"];
  if (named !== undefined && named !== "") {
    if (!named.startsWith("/")) throw config(`BATON_KEEPER_DIR is "${named}", which is not an absolute path`);
    return locationIn({ dir: resolve(named), above: [] });
  }
  const machine = options.machineSocketPath ?? machineSocketPath;
  if (machineKeeperExists(machine)) return { dir: null, socketPath: machine, scope: "machine" };
  const name = join("keeper", machineId());
  const home = homeInDatabase(userId(), options.userDatabase ?? "/etc/passwd");
  const atHome = home?.startsWith("/") ? below(home, join(".local/state/baton", name), "home") : null;
  const fallback = options.fallbackFolder ?? shortFolder();
  const elsewhere = below(dirname(fallback), join(basename(fallback), name), "own");
  // A place that exists stays the location: a home that becomes writable, or stops being so, must not move the locks.
  for (const location of [atHome, elsewhere]) {
    if (location !== null && statFolder(location.dir) !== null) return locationIn(location);
  }
  return locationIn(atHome !== null && home !== null && isUsableHome(home) ? atHome : elsewhere);
}

/** Makes the folders that are missing, and checks again. Throws CONFIG, or CANNOT_CREATE. */
export function createFolders(location: { dir: string; socketPath: string; above?: readonly SafeFolder[] }): void {
  for (const folder of new Set([location.dir, dirname(location.socketPath)])) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new BatonError("CANNOT_CREATE", `Cannot make the keeper's folder ${folder}: ${messageOf(error)}`);
    }
  }
  checkFolders(location);
}

function locationIn({ dir, above }: { dir: string; above: readonly SafeFolder[] }): KeeperLocation {
  const location = { dir, socketPath: socketPathOf(dir), scope: "user", above } as const;
  checkFolders(location);
  return location;
}

function checkFolders(
  { dir, socketPath, above = [] }: { dir: string; socketPath: string; above?: readonly SafeFolder[] },
): void {
  const folders: SafeFolder[] = [...above, { path: dir, rule: "own" }];
  const socketFolder = dirname(socketPath);
  if (socketFolder !== dir) {
    folders.push({ path: dirname(socketFolder), rule: "system" }, { path: socketFolder, rule: "own" });
  }
  for (const folder of folders) checkFolder(folder);
}

/** Beside the data, or under a short name when that path is too long for a socket. */
function socketPathOf(dir: string): string {
  const beside = join(dir, "keeper.sock");
  if (Buffer.byteLength(beside) <= socketPathBytesMax) return beside;
  const { createHash } = process.getBuiltinModule("node:crypto");
  const name = createHash("sha256").update(dir).digest("hex").slice(0, 32);
  return join(shortFolder(), `${name}.sock`);
}

/** A folder and those on the way to it from the first, which is there; in a home that one is left to its owner. */
function below(first: string, way: string, rule: "home" | "own"): { dir: string; above: readonly SafeFolder[] } {
  const above: SafeFolder[] = rule === "home" ? [] : [{ path: first, rule: "system" }];
  let path = first;
  for (const name of dirname(way).split("/")) above.push({ path: path = join(path, name), rule });
  return { dir: join(first, way), above };
}

function shortFolder(): string {
  return `/var/tmp/baton-${userId()}`;
}

/**
 * The folder decides, not the socket: while root's keeper is being restarted its socket is away for a moment, and whoever
 * came just then would otherwise take the same lock in a keeper of his own.
 */
function machineKeeperExists(socketPath: string): boolean {
  const folder = statFolder(dirname(socketPath));
  if (folder === null) return false;
  const socket = statFolder(socketPath);
  const safe = folder.isDirectory() && folder.uid === 0 && (folder.mode & 0o022) === 0 &&
    (socket === null || socket.isSocket() && socket.uid === 0);
  if (!safe) {
    throw config(
      `The machine's keeper at ${socketPath} is not safe to use: it and its folder have to belong to root alone`,
    );
  }
  return true;
}

function isUsableHome(home: string): boolean {
  try {
    const stat = statSync(home);
    accessSync(home, constants.W_OK | constants.X_OK);
    return stat.isDirectory() && stat.uid === userId();
  } catch {
    return false;
  }
}

// node:os has userInfo() for this, but Bun answers it from HOME.
export function homeInDatabase(uid: number, userDatabase: string): string | null {
  const line = readOrNull(userDatabase)?.split("\n").find((entry) => entry.split(":")[2] === String(uid));
  if (line !== undefined) return line.split(":")[5] ?? null;
  const [command, args, field] = process.platform === "darwin"
    ? ["/usr/bin/id", ["-P"], 8] as const
    : ["getent", ["passwd", String(uid)], 5] as const;
  const { execFileSync } = process.getBuiltinModule("node:child_process");
  try {
    return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim().split(
      ":",
    )[field] ??
      null;
  } catch {
    return null; // a user without an entry, as containers have
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

function config(message: string): BatonError {
  return new BatonError("CONFIG", message);
}
