/** Where configuration files are, and what they say. Which of their values counts is in resolve.ts. */
import { closeSync, openSync } from "node:fs";
import { BatonError, messageOf } from "../errors.ts";
import { readAtMost } from "../support/read_at_most.ts";
import { utf8Text } from "../support/utf8_text.ts";
import type { SettingTable } from "./setting.ts";

/** A configuration file longer than this is a mistake. */
const fileBytesMax = 256 * 1024;

export interface ConfigFile {
  readonly path: string;
  /** File key → the value, written as a flag would write it. */
  readonly values: ReadonlyMap<string, string>;
  /** The line of a key, counted from 1. Looked up only when somebody wants to know. */
  lineOf(key: string): number | null;
}

export interface ConfigFileOptions {
  /** The file the user named; it must exist. */
  readonly named?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The machine's folder; another one in tests. */
  readonly systemFolder?: string;
  /** The home that the user database names, for tests. Throws where it names none. */
  readonly accountHome?: () => string;
  /** Is told every mistake, and what is none counts; left out: the first mistake is thrown. */
  readonly onMistake?: (mistake: BatonError) => void;
}

/**
 * The files that are there, the strongest first: the named one or else the user's, then the machine's. Every one is
 * checked as a whole. Throws CONFIG with file, line, key, value and what was wanted.
 */
export async function readConfigFiles(settings: SettingTable, options: ConfigFileOptions): Promise<ConfigFile[]> {
  const { named } = options;
  const own = named === undefined ? await userFile(options) : { path: named, source: read(named, true) ?? "" };
  const files = [own, firstOf(options.systemFolder ?? "/etc/baton")].filter((file) => file !== null);
  if (files.length === 0) return [];
  const { checkedConfigFile } = await import("./config_syntax.ts"); // zod and the TOML parser cost a millisecond
  return files.flatMap((source) => {
    const { file, mistakes } = checkedConfigFile(settings, source);
    for (const mistake of mistakes) {
      if (options.onMistake === undefined) throw mistake;
      options.onMistake(mistake);
    }
    return file ?? [];
  });
}

/**
 * XDG_CONFIG_HOME or ~/.config. Without HOME, as in an empty environment, the account's own home folder counts, so that
 * a job reads the same file wherever it was started.
 */
async function userFile(
  { env, accountHome }: ConfigFileOptions,
): Promise<{ path: string; source: string } | null> {
  const configHome = env["XDG_CONFIG_HOME"];
  if (configHome?.startsWith("/")) return firstOf(`${configHome}/baton`, "XDG_CONFIG_HOME");
  const home = env["HOME"];
  if (home) return firstOf(`${home}/.config/baton`, "HOME");
  const { userInfo } = await import("node:os");
  try {
    return firstOf(`${accountHome === undefined ? userInfo().homedir : accountHome()}/.config/baton`);
  } catch (thrown) {
    if (thrown instanceof BatonError) throw thrown;
    return null; // a user without an entry, as containers have
  }
}

/** `variable` is the one that the folder follows from, if any. */
function firstOf(folder: string, variable?: string): { path: string; source: string } | null {
  for (const path of [`${folder}/config.toml`, `${folder}/config.json`]) {
    const source = read(path, false, variable);
    if (source !== null) return { path, source };
  }
  return null;
}

function read(path: string, required: boolean, variable?: string): string | null {
  let source: Uint8Array;
  try {
    source = readFile(path);
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (!required && (code === "ENOENT" || code === "ENOTDIR")) return null;
    // As after su or sudo, which may leave another user's home in the environment.
    const advice = variable === undefined || code === "EMFILE" || code === "ENFILE"
      ? ""
      : `; the path follows from ${variable}: set it to a folder of this user's, or name a file with --config FILE`;
    throw new BatonError("CONFIG", `Cannot read the configuration file ${path}: ${messageOf(thrown)}${advice}`, {
      cause: thrown,
    });
  }
  if (source.length > fileBytesMax) {
    throw new BatonError("CONFIG", `The configuration file ${path} is larger than ${fileBytesMax} bytes`);
  }
  return utf8Text(source, `The configuration file ${path}`);
}

function readFile(path: string): Uint8Array {
  const fd = openSync(path, "r");
  try {
    return readAtMost(fd, fileBytesMax);
  } finally {
    closeSync(fd);
  }
}
