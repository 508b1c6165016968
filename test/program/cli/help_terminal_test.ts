/** Help on a terminal, and in a pipe. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";
import { TerminalSession } from "../../support/terminal_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

async function onTerminal(line: string, env: Record<string, string> = {}): Promise<string> {
  const terminal = new TerminalSession(["/bin/sh", "-c", `"$baton" ${line}; echo "ended $?"`], {
    env: { ...session.env, ...env },
    cwd: session.folder,
    columns: 80,
  });
  await terminal.shows(/ended \d+/);
  return (await terminal.ended()).shown;
}

test("colors are shown on a terminal only; NO_COLOR and CLICOLOR_FORCE decide otherwise", async () => {
  const bold = "\x1b[1mWaiting:\x1b[22m";
  expect(await onTerminal("lock --help")).toContain(bold);
  expect(await onTerminal("lock --help", { NO_COLOR: "1" })).not.toContain("\x1b[1m");
  expect(await onTerminal("lock --help", { TERM: "dumb" })).not.toContain("\x1b[1m");
  expect((await session.run('"$baton" lock --help')).stdout).not.toContain("\x1b");
  expect((await session.run('"$baton" lock --help', { CLICOLOR_FORCE: "1" })).stdout).toContain(bold);
});

test("lines fit into a terminal of 80 columns", async () => {
  for (const line of ["", "-h", "lock -h", "help connection"]) {
    const shown = await onTerminal(line, { NO_COLOR: "1" });
    expect([line, shown.split("\r\n").filter((one) => one.length > 80 && !one.startsWith("  baton"))]).toEqual([
      line,
      [],
    ]);
  }
});

test("the environment of cron is enough for help", async () => {
  const ended = await session.run('env -i "$baton" lock -h');
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  expect(ended.stdout).toContain("Main options:");
});
