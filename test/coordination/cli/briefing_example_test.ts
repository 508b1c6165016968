/**
 * docs/examples/barrier, as its comments say: eight agents present when all are there, and leave when all are done.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

const folder = join(import.meta.dir, "../../../docs/examples/barrier");
const agents = ["000", "001", "002", "003", "004", "005", "006", "007"];

test("eight agents present when all have joined, and leave when all have finished", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  const env = { example: folder, BATON: session.env["baton"] ?? "" };
  const { code, stdout, stderr } = await session.run(`sh "$example/briefing.sh" ${agents.join(" ")}`, env);
  expect([code, stderr]).toEqual([0, ""]);
  const lines = stdout.trim().split("\n");
  const places = (what: string) => lines.flatMap((line, place) => line.includes(what) ? [place] : []);
  for (const what of ["joined the briefing", "presents a report", "has finished", "leaves"]) {
    expect(places(what)).toHaveLength(8);
  }
  expect(Math.max(...places("has finished"))).toBeLessThan(Math.min(...places("leaves")));
  const numbers = lines.flatMap((line) => /number (\d) of 8/.exec(line)?.[1] ?? []).sort();
  expect(numbers).toEqual(["1", "2", "3", "4", "5", "6", "7", "8"]);
});
