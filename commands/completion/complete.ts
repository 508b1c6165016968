/** `baton __complete ARG…`: the completions that a shell requests. A failure prints nothing, and no keeper is started. */
import { parseArgs } from "../../src/terminal/parse_args.ts";
import type { Io } from "../../src/terminal/io.ts";
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import { readConfigFiles } from "../../src/config/config_file.ts";
import { type ConfigSources, resolveSettings, sectionNames } from "../../src/config/resolve_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import { connectionSettings, fileSettings, poolComponentSettings } from "../../src/config/settings.ts";
import { decodeLockName } from "../../src/coordination/lock/lock_name.ts";
import { folderOf } from "../../src/coordination/lock/lock_path.ts";
import { type Command, commonSettings, type ServedNames } from "../command.ts";
import { flagsOf } from "../run_command.ts";
import { coordinationOf } from "../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { candidates, commandAt, matching } from "./candidates.ts";

/** The user waits for the completion. */
const connectTimeoutMs = 1000;
/** The maximum number of names from the server; no terminal shows more. */
const namesMax = 1000;

export async function complete(
  commands: ReadonlyMap<string, Command>,
  words: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const before = words.slice(0, -1);
  const typed = words.at(-1) ?? "";
  let found = candidates(commands, { before, typed });
  if (found.kind === "served") {
    const { command, words: behind = [] } = commandAt(commands, before) ?? {};
    const names = await servedNames(found.of, { command, words: behind, io }).catch(() => []);
    found = matching(
      [...found.words, ...names.filter((one) => one.startsWith(typed)).sort().slice(0, namesMax)],
      typed,
    );
  }
  io.out([found.kind, ...("words" in found ? found.words : [])].map((line) => `${line}\n`).join(""));
  return exitCodes.SUCCESS;
}

/** Lists names with the options that were typed so far. Invalid options are ignored. */
async function servedNames(folder: ServedNames, { command, words, io }: {
  readonly command: Command | undefined;
  readonly words: readonly string[];
  readonly io: Io;
}): Promise<string[]> {
  if (command === undefined) return [];
  const settings = { ...commonSettings, ...connectionSettings };
  const { flags } = parseArgs(flagsOf({ ...command.settings, ...settings }), words);
  const files = await readConfigFiles(fileSettings, { named: flags.get("config"), env: io.env });
  const sources = { flags, env: io.env, files };
  const known = folder === "pools" ? sectionNames(poolComponentSettings, files) : [];
  const served = await namesOnServer(folder, { flags, sources }).catch(() => []);
  return [...new Set([...known, ...served])];
}

async function namesOnServer(
  folder: ServedNames,
  { flags, sources }: { readonly flags: ReadonlyMap<string, string>; readonly sources: ConfigSources },
): Promise<string[]> {
  const settings = { ...commonSettings, ...connectionSettings };
  const values = resolveSettings(settings, sources) as SettingValues<typeof settings>;
  const { startServer: _starts, ...options } = coordinationOf(values, sources).connect;
  await using zk = await connect({ ...options, connectTimeoutMs, retries: 0 });
  const kind = flags.get("kind");
  const at = kind === undefined ? folder : `${kind}s`;
  const { children } = await zk.getChildren(folderOf(at, values.root));
  return children.map(decodeLockName);
}
