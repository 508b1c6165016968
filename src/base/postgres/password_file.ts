/**
 * Finds the password for a database in a file with the format of libpq's .pgpass: host:port:database:user:password in
 * each line.
 */
import { readFileSync } from "node:fs";
import { BatonError, errorMessage } from "../errors.ts";
import { checkPrivateFile } from "../support/private_file.ts";
import type { DatabaseAddress, DatabaseHost } from "./database_address.ts";

/**
 * Returns undefined if the file does not exist or has no line for the database. Throws CONFIG for a file that other
 * users can read.
 */
export function passwordFromFile(
  { database, user, passwordFile }: Pick<DatabaseAddress, "database" | "user" | "passwordFile">,
  { host, port }: DatabaseHost,
): string | undefined {
  if (passwordFile === null) return undefined;
  let text: string;
  try {
    text = readFileSync(passwordFile, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new BatonError("CONFIG", `Cannot read the password file: ${errorMessage(error)}`, { cause: error });
  }
  checkPrivateFile(passwordFile, "The password file");
  // libpq writes a Unix socket in the default folder as localhost; a line may name either.
  const hostNames = host.startsWith("/") ? [host, "localhost"] : [host];
  for (const line of text.split("\n")) {
    const fields = fieldsOf(line);
    if (fields === null) continue;
    const [atHost = "", atPort = "", atDatabase = "", atUser = "", password = ""] = fields;
    const matches = [[atPort, String(port)], [atDatabase, database], [atUser, user]] as const;
    const isHere = atHost === "*" || hostNames.includes(atHost);
    if (isHere && matches.every(([wanted, found]) => wanted === "*" || wanted === found)) return password;
  }
  return undefined;
}

/**
 * The five fields of a line; a backslash escapes a colon or a backslash. Null: a comment, or not a line of five fields.
 */
function fieldsOf(line: string): string[] | null {
  if (line.startsWith("#")) return null;
  const fields = line.replace(/\r$/, "").match(/(?:\\.|[^:\\])*(?::|$)/g)?.slice(0, 5) ?? [];
  if (fields.length < 5) return null;
  return fields.map((field) => field.replace(/:$/, "").replace(/\\(.)/g, "$1"));
}
