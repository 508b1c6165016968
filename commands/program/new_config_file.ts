/**
 * Writes the files of `baton config init`: a configuration file in which all settings are comments, and a schema for
 * editors beside it.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { BatonError, systemCallErrorReason } from "../../src/base/errors.ts";

/** The settings that most users of several machines need, with an example of each. */
const examples: readonly (readonly [key: string, example: string])[] = [
  ["servers", '"zk1:2181,zk2:2181,zk3:2181"'],
  ["scope", '"cluster"'],
  ["root", '"/baton"'],
  ["session.timeout", '"10s"'],
  ["tls.enabled", "true"],
  ["tls.ca", '"/etc/baton/ca.pem"'],
  ["auth.file", '"/etc/baton/credentials"'],
  ["acl", '"creator"'],
  ["history.enabled", "true"],
  ["retry.dead_letter", '"file:/var/log/baton/dead-letters.jsonl"'],
];

const schemaFileName = "config.schema.json";

/**
 * Writes a new file, and `schema` beside it. Returns the path of the file. Throws CANNOT_CREATE if the file exists or
 * cannot be written.
 */
export function beginConfigFile(path: string, settings: SettingTable, schema: string): string {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(path, newConfigFile(settings), { flag: "wx" });
    writeFileSync(join(dirname(path), schemaFileName), schema);
  } catch (thrown) {
    const exists = (thrown as NodeJS.ErrnoException).code === "EEXIST";
    const why = exists ? "there is such a file; it stays as it is" : systemCallErrorReason(thrown);
    throw new BatonError("CANNOT_CREATE", `Cannot write ${path}: ${why}`, { cause: thrown });
  }
  return path;
}

/** Returns the text of a new configuration file. All settings in it are comments. */
export function newConfigFile(settings: SettingTable): string {
  const declared = Object.values(settings);
  const parts = examples.map(([key, example]) => {
    const help = declared.find((setting) => setting.key === key)?.help ?? "";
    return `# ${help}\n# ${key} = ${example}\n`;
  });
  return [
    `#:schema ./${schemaFileName}\n`,
    "# The configuration of baton. `baton help config` lists all settings; `baton config check` finds mistakes.\n\n",
    parts.join("\n"),
  ].join("");
}
