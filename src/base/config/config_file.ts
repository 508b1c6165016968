/** Finds and reads the configuration files. resolve_settings.ts decides which values apply. */
import { closeSync, openSync } from "node:fs";
import { BatonError, systemCallErrorReason } from "../errors.ts";
import { readBytesAtMost } from "../support/read_at_most.ts";
import { decodeUtf8 } from "../support/text.ts";
import type { ConfigFile } from "./resolve_settings.ts";
import type { SettingTable } from "./setting.ts";

const fileBytesMax = 256 * 1024;

export interface ConfigFileOptions {
  /** The file that the user named with --config. It must exist. */
  readonly named?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder of the machine's file; /etc/baton by default. Tests set another folder. */
  readonly systemFolder?: string;
  /** Returns the home folder in the user database; throws if the user has no entry there. Tests set this function. */
  readonly accountHome?: () => string;
  /**
   * Called with each mistake in a file; the correct settings still apply. If this function is missing, the first
   * mistake is thrown.
   */
  readonly onMistake?: (mistake: BatonError) => void;
}

/**
 * Reads and checks the configuration files. Returns the files that exist, in order of precedence: first the file named
 * by --config (otherwise the user's file), then the machine's file. Throws CONFIG with the file, the line, the key, the
 * value and the expected form. `loadTable` returns all settings that a file may contain; it is called only if a file
 * exists.
 */
export async function readConfigFiles(
  loadTable: () => SettingTable | Promise<SettingTable>,
  options: ConfigFileOptions,
): Promise<ConfigFile[]> {
  const { named } = options;
  const own = named === undefined
    ? await readUserFile(options)
    : { path: named, source: readSource(named, true) ?? "" };
  const files = [own, readFileIn({ folder: options.systemFolder ?? "/etc/baton" })].filter((file) => file !== null);
  if (files.length === 0) return [];
  const settings = await loadTable();
  const { checkConfigFile } = await import("./config_syntax.ts"); // loading zod and the TOML parser takes a millisecond
  return files.flatMap((source) => {
    const { file, mistakes } = checkConfigFile(settings, source);
    for (const mistake of mistakes) {
      if (options.onMistake === undefined) throw mistake;
      options.onMistake(mistake);
    }
    return file ?? [];
  });
}

async function readUserFile(options: ConfigFileOptions): Promise<{ path: string; source: string } | null> {
  const found = await findUserFolder(options);
  return found === null ? null : readFileIn(found);
}

interface UserConfigFolder {
  readonly folder: string;
  readonly variable?: string;
}

/** Returns the path of the user's configuration file. Throws CONFIG for a user without a home folder. */
export async function findUserConfigFile(options: Pick<ConfigFileOptions, "env" | "accountHome">): Promise<string> {
  const found = await findUserFolder(options);
  if (found !== null) return `${found.folder}/config.toml`;
  throw new BatonError("CONFIG", "This user has no home folder: name the file, as in baton config init FILE");
}

/**
 * Finds the folder of the user's file, in XDG_CONFIG_HOME or ~/.config. Cron does not set HOME; the home folder then
 * comes from the user database, so that a command under cron reads the same file as in a shell.
 */
async function findUserFolder(
  { env, accountHome }: Pick<ConfigFileOptions, "env" | "accountHome">,
): Promise<UserConfigFolder | null> {
  const configHome = env["XDG_CONFIG_HOME"];
  if (configHome?.startsWith("/")) return { folder: `${configHome}/baton`, variable: "XDG_CONFIG_HOME" };
  const home = env["HOME"];
  if (home) return { folder: `${home}/.config/baton`, variable: "HOME" };
  const { userInfo } = await import("node:os");
  try {
    return { folder: `${accountHome === undefined ? userInfo().homedir : accountHome()}/.config/baton` };
  } catch (thrown) {
    if (thrown instanceof BatonError) throw thrown;
    return null; // the user database has no entry for this user, which is common in containers
  }
}

function readFileIn({ folder, variable }: UserConfigFolder): { path: string; source: string } | null {
  const path = `${folder}/config.toml`;
  const source = readSource(path, false, variable);
  return source === null ? null : { path, source };
}

function readSource(path: string, required: boolean, variable?: string): string | null {
  let source: Uint8Array;
  try {
    source = readFile(path);
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (!required && (code === "ENOENT" || code === "ENOTDIR")) return null;
    // The environment may, after su or sudo, still name the home folder of another user.
    const advice = variable === undefined || code === "EMFILE" || code === "ENFILE"
      ? ""
      : `; the path comes from ${variable}: set it to a folder of this user, or use --config FILE`;
    throw new BatonError(
      "CONFIG",
      `Cannot read the configuration file ${path}: ${systemCallErrorReason(thrown)}${advice}`,
      {
        cause: thrown,
      },
    );
  }
  if (source.length > fileBytesMax) {
    throw new BatonError("CONFIG", `The configuration file ${path} is larger than ${fileBytesMax} bytes`);
  }
  return decodeUtf8(source, `The configuration file ${path}`);
}

function readFile(path: string): Uint8Array {
  const fd = openSync(path, "r");
  try {
    return readBytesAtMost(fd, fileBytesMax);
  } finally {
    closeSync(fd);
  }
}
