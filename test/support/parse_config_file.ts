/** Reads the text of a configuration file that has to be correct. */
import { checkConfigFile } from "../../src/base/config/config_syntax.ts";
import type { ConfigFile } from "../../src/base/config/resolve_settings.ts";

/** Throws the first mistake of the file. */
export function parseConfigFile(...file: Parameters<typeof checkConfigFile>): ConfigFile {
  const { file: read, mistakes: [mistake] } = checkConfigFile(...file);
  if (read === null || mistake !== undefined) throw mistake;
  return read;
}
