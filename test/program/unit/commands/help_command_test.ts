import { expect, test } from "bun:test";
import { runCommandLine } from "../../../../commands/command_line.ts";
import { commandLoaders, loadProductSettings, products } from "../../../../commands/products.ts";
import { exitCodes } from "../../../../src/base/exit_codes.ts";
import { groupCommandFamilies } from "../../../../commands/program/help/command_families.ts";
import { loadHelpTopics } from "../../../../commands/program/help/help_topics.ts";
import { connectionSettings } from "../../../../src/coordination/settings/coordination_settings.ts";
import { fakeIo } from "../../../support/fake_io.ts";

const printed = async (line: string, io = fakeIo()) => {
  const code = await runCommandLine(line.split(" ").filter(Boolean), io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
};

test("baton alone is a mistake, and prints ten lines with every command or its group; -h asks for them", async () => {
  const alone = await printed("");
  expect([alone.code, alone.stdout]).toEqual([exitCodes.USAGE, ""]);
  expect(alone.stderr.split("\n").length).toBeLessThanOrEqual(13);
  for (const name of Object.keys(commandLoaders)) expect(alone.stderr).toContain(name.split(" ")[0] ?? "");
  expect(await printed("-h")).toEqual({ code: exitCodes.SUCCESS, stdout: alone.stderr, stderr: "" });
});

test("every command has a place in the list of commands", async () => {
  const names = Object.keys(commandLoaders);
  const families = await groupCommandFamilies(products, names);
  expect(families.map(({ heading }) => heading)).not.toContain("Others");
  expect(families.flatMap((family) => family.names).sort()).toEqual([...names].sort());
  expect((await groupCommandFamilies(products, [...names, "new"])).at(-1)).toEqual({
    heading: "Others",
    names: ["new"],
  });
});

test("-h prints less than --help, and says where the rest is", async () => {
  const [short, full] = [await printed("lock -h"), await printed("lock --help")];
  expect([short.code, full.code]).toEqual([exitCodes.SUCCESS, exitCodes.SUCCESS]);
  expect(short.stdout.split("\n").length).toBeLessThan(35);
  expect(short.stdout).toStartWith("baton lock NAME [options] COMMAND");
  expect(short.stdout).toContain("\nMain options:\n");
  expect(short.stdout).toMatch(/\n {2}-w, --wait <\w+>/);
  expect(short.stdout).not.toContain("--on-doubt");
  expect(short.stdout).toContain("baton lock --help describes all");
  expect(full.stdout).toContain("--on-doubt");
  expect(full.stdout.split("\n").length).toBeGreaterThan(50);
  expect((await printed("help lock")).stdout).toBe(full.stdout);
  expect((await printed("lock -h --help")).stdout).toBe(full.stdout);
});

test("help on a topic prints what it is called after", async () => {
  for (const topic of Object.keys(await loadHelpTopics(products, await loadProductSettings()))) {
    const { code, stdout } = await printed(`help ${topic}`);
    expect([topic, code]).toEqual([topic, exitCodes.SUCCESS]);
    for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(110);
  }
  const { stdout } = await printed("help connection");
  for (const { flag, key } of Object.values<{ flag?: string; key?: string }>(connectionSettings)) {
    expect(stdout).toContain(flag?.split(", ").at(-1) ?? key ?? "");
  }
  expect((await printed("help times")).stdout).toContain("--kill-after <duration>");
});

test("what there is no help on is 64, with the word that was meant", async () => {
  const cases: [line: string, message: string][] = [
    ["help conection", 'There is no help on "conection", did you mean "connection"?'],
    [
      "help colours",
      'There is no help on "colours"; the topics are connection, times, exit-codes, environment, config, and all',
    ],
    ["help pubsub keygne", 'There is no command "pubsub keygne", did you mean "keygen"?'],
    ["help lock who", 'baton help takes one command or topic, not "lock who"'],
    ["help times now", 'baton help takes one command or topic, not "times now"'],
  ];
  for (const [line, message] of cases) {
    const { code, stderr } = await printed(line);
    expect([line, code]).toEqual([line, exitCodes.USAGE]);
    expect(stderr).toContain(message);
  }
});

test("headings are bold on a terminal, and lines fit into it", async () => {
  const narrow = fakeIo({ stdoutIsTerminal: true, columns: 70 });
  const { stdout } = await printed("lock --help", narrow);
  expect(stdout).toContain("\x1b[1mWaiting:\x1b[22m\n");
  // deno-lint-ignore no-control-regex -- escape codes are control characters
  const visible = stdout.replaceAll(/\x1b\[\d+m/g, "").split("\n");
  const beforeExamples = visible.slice(1, visible.indexOf("Examples:"));
  expect(beforeExamples.filter((line) => line.length > 75)).toEqual([]);
  expect((await printed("lock --help", fakeIo({ stdoutIsTerminal: true, env: { NO_COLOR: "1" } }))).stdout)
    .not.toContain("\x1b");
});
