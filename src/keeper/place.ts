/**
 * Where a user's keeper lives. The same from cron, from a login shell and under sudo: it follows from the effective user
 * and the user database, never from HOME or the XDG variables. Starts nothing; see on_demand.ts.
 */
import { accessSync, constants, lstatSync, mkdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { BatonError, messageOf } from "../errors.ts";

export interface KeeperPlace {
  /** The folder of the data; null when somebody else runs the keeper and it is only there to be used. */
  readonly dir: string | null;
  readonly socketPath: string;
  /** Whom it serves: everybody on this machine, or this user. */
  readonly scope: "machine" | "user";
}

/** The keeper that root set up for all users. */
export const machineSocketPath = "/run/baton/keeper.sock";

/** The system's room for a unix socket's path, without the zero at its end. */
const socketPathBytesMax = process.platform === "linux" ? 107 : 103;

/** Where to look, for tests. */
export interface PlaceOptions {
  readonly machineSocketPath?: string;
  readonly userDatabase?: string;
  readonly fallbackFolder?: string;
}

/**
 * The place of this user's keeper, or of the machine's if there is one. BATON_KEEPER_DIR overrides both. Throws CONFIG
 * when what is there is not safe to use: another owner, open to others, a link.
 */
export function keeperPlace(
  env: Readonly<Record<string, string | undefined>>,
  options: PlaceOptions = {},
): KeeperPlace {
  const named = env["BATON_KEEPER_DIR"];
  if (named !== undefined && named !== "") {
    if (!named.startsWith("/")) throw config(`BATON_KEEPER_DIR is "${named}", which is not an absolute path`);
    return placeIn(resolve(named));
  }
  const machine = options.machineSocketPath ?? machineSocketPath;
  if (machineKeeperExists(machine)) return { dir: null, socketPath: machine, scope: "machine" };
  const name = join("keeper", machineId());
  const home = homeInDatabase(userId(), options.userDatabase ?? "/etc/passwd");
  const atHome = home?.startsWith("/") ? join(home, ".local/state/baton", name) : null;
  const elsewhere = join(options.fallbackFolder ?? shortFolder(), name);
  // A place that exists stays the place: a home that becomes writable, or stops being so, must not move the locks.
  for (const dir of [atHome, elsewhere]) if (dir !== null && look(dir) !== null) return placeIn(dir);
  return placeIn(atHome !== null && home !== null && isUsableHome(home) ? atHome : elsewhere);
}

/** Makes the folders that are missing, and checks again. Throws CONFIG, or CANNOT_CREATE. */
export function makePlace({ dir, socketPath }: { dir: string; socketPath: string }): void {
  for (const folder of new Set([dir, dirname(socketPath)])) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new BatonError("CANNOT_CREATE", `Cannot make the keeper's folder ${folder}: ${messageOf(error)}`);
    }
    checkOwn(folder);
  }
}

function placeIn(dir: string): KeeperPlace {
  checkOwn(dir);
  const beside = join(dir, "keeper.sock");
  if (Buffer.byteLength(beside) <= socketPathBytesMax) return { dir, socketPath: beside, scope: "user" };
  const folder = shortFolder();
  checkOwn(folder);
  const { createHash } = process.getBuiltinModule("node:crypto");
  const name = createHash("sha256").update(dir).digest("hex").slice(0, 32);
  return { dir, socketPath: join(folder, `${name}.sock`), scope: "user" };
}

function shortFolder(): string {
  return `/var/tmp/baton-${userId()}`;
}

/** What is there already must belong to this user alone. */
function checkOwn(folder: string): void {
  const stat = look(folder);
  if (stat === null) return;
  const mode = stat.mode & 0o777;
  const wrong = stat.isSymbolicLink()
    ? "it is a link"
    : !stat.isDirectory()
    ? "it is not a folder"
    : stat.uid !== userId()
    ? `it belongs to user ${stat.uid}, not to ${userId()}`
    : (mode & 0o077) !== 0
    ? `its mode is ${mode.toString(8)}, which lets others in; it has to be 700`
    : null;
  if (wrong !== null) throw config(`The keeper's folder ${folder} is not safe to use: ${wrong}`);
}

/**
 * The folder decides, not the socket: while root's keeper is being restarted its socket is away for a moment, and whoever
 * came just then would otherwise take the same lock in a keeper of his own.
 */
function machineKeeperExists(socketPath: string): boolean {
  const folder = look(dirname(socketPath));
  if (folder === null) return false;
  const socket = look(socketPath);
  const safe = folder.isDirectory() && folder.uid === 0 && (folder.mode & 0o022) === 0 &&
    (socket === null || socket.isSocket() && socket.uid === 0);
  if (!safe) {
    throw config(
      `The machine's keeper at ${socketPath} is not safe to use: it and its folder have to belong to root alone`,
    );
  }
  return true;
}

function look(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return null; // not there for this user
    throw config(`Cannot look at ${path}: ${messageOf(error)}`);
  }
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
function homeInDatabase(uid: number, userDatabase: string): string | null {
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

function userId(): number {
  const uid = process.geteuid?.();
  if (uid === undefined) throw config("This system has no user ids, and the keeper cannot tell its user from others");
  return uid;
}

function config(message: string): BatonError {
  return new BatonError("CONFIG", message);
}
