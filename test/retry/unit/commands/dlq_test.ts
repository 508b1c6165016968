/** What `dlq redrive --all` shows on a terminal while it takes its time, and that a pipe sees nothing of it. */
import { expect, test } from "bun:test";
import { dlqSettings } from "../../../../commands/retry/dlq.ts";
import { runDlq } from "../../../../commands/retry/dlq.ts";
import { fakeIo } from "../../../support/fake_io.ts";
import { RetryRig, rigMessage } from "../../../support/retry_rig.ts";
import { callOf } from "../../../program/unit/commands/call_of.ts";

const terminal = { stderrIsTerminal: true, env: { TERM: "xterm" } };
const letters = 1200;

/** Letters of two kinds, half of them of each. */
function storeOfLetters(): RetryRig {
  const rig = new RetryRig({ maxMessages: letters });
  const tried = (error: string) => ({ outcome: "final", retryAfterMs: null, error }) as const;
  const messages = Array.from(
    { length: letters },
    (_, at) => rigMessage("", { tried: tried(at % 2 ? "odd" : "even") }),
  );
  rig.call("accept", messages, 1);
  return rig;
}

async function redrive(rig: RetryRig, options: Parameters<typeof fakeIo>[0], words: readonly string[]) {
  const io = fakeIo(options);
  const code = await runDlq(await callOf(dlqSettings, ["redrive", "--all", "--store", rig.folder, ...words], io));
  return { code, stderr: io.stderr() };
}

test("how many of those that are chosen, how fast, and how long it will take; then the line is gone", async () => {
  using rig = storeOfLetters();
  const { code, stderr } = await redrive(rig, terminal, ["--where", "error=odd", "--rate", "400/s"]);
  expect(code).toBe(0);
  const shown = [...stderr.matchAll(/(\d+) of 600 messages redriven, (\d+) a second, (\d+) %(?:, ([^,]+) left)?/g)];
  expect(shown.length).toBeGreaterThan(1); // from one second on
  for (const [, count, , share] of shown) expect(Number(share)).toBe(Math.floor(Number(count) / 6));
  const left = shown.flatMap(([, , , , left]) => (left === undefined ? [] : [left]));
  expect(left.length).toBeGreaterThan(0);
  for (const time of left) expect([time, /^\d+ (ms|s)$/.test(time)]).toEqual([time, true]);
  expect(stderr).toEndWith("\r\x1b[Kbaton: 600 messages are redriven\n");
  expect(rig.call("totals")).toMatchObject({ waiting: { count: 600 }, dead: { count: 600 } });
}, 20_000);

test("in a pipe, and with --quiet, nothing of it", async () => {
  using rig = storeOfLetters();
  expect((await redrive(rig, {}, ["--where", "error=odd"])).stderr).toBe("baton: 600 messages are redriven\n");
  expect((await redrive(rig, terminal, ["-q"])).stderr).toBe("");
  expect(rig.call("totals").waiting.count).toBe(letters);
});
