/**
 * Runs statements against the database of its first argument and prints what it got, as JSON: for the runtime tests.
 */
import process from "node:process";
import { parseDatabaseUrl } from "../../src/base/postgres/database_address.ts";
import { DatabaseLane } from "../../src/base/postgres/database_lane.ts";
import { StatementError } from "../../src/base/postgres/statement_error.ts";
import { systemClock } from "../../src/base/support/clock.ts";

const address = parseDatabaseUrl(process.argv[2] ?? "", { mayHavePassword: true });
const lane = new DatabaseLane({ address, clock: systemClock(), name: "program" });
const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
const [row] = await lane.run({
  name: "values",
  text: "SELECT $1::bytea AS bytes, $2::bigint AS n, (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS tls",
}, [bytes, 128]);
const outcomeOf = async (text: string, deadlineMs: number): Promise<string> => {
  const error = await lane.run({ name: text, text }, [], { deadlineMs }).catch((error: unknown) => error);
  return error instanceof StatementError ? `${error.outcome} ${error.sqlState}` : String(error);
};
const refused = await outcomeOf("SELECT 1 / 0", 10_000);
const ended = await outcomeOf("SELECT pg_terminate_backend(pg_backend_pid())", 10_000);
await lane.run({ name: "reconnected", text: "SELECT 1" });
const late = await outcomeOf("SELECT pg_sleep(20)", 100);
const [again] = await lane.run({ name: "again", text: "SELECT 'again' AS word" });
await lane.close();
const isWhole = Buffer.isBuffer(row?.["bytes"]) && bytes.equals(row["bytes"]);
console.log(JSON.stringify({ isWhole, n: row?.["n"], tls: row?.["tls"], refused, ended, late, word: again?.["word"] }));
