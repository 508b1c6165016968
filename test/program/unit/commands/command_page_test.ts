import { expect, test } from "bun:test";
import { type Command, commonCommandSettings, defineCommand } from "../../../../commands/command.ts";
import { commandLoaders } from "../../../../commands/products.ts";
import {
  briefEntry,
  commandPage,
  optionGroupHeadings,
  optionsByGroup,
  shortCommandPage,
  shortHelpOptions,
} from "../../../../commands/program/help/command_page.ts";
import { helpPageText } from "../../../../commands/program/help/page_text.ts";
import type { HelpPage } from "../../../../commands/help_page.ts";
import { putSettingsIntoGroup, setting } from "../../../../src/base/config/setting.ts";
import { textType, toggleType } from "../../../../src/base/config/value_types.ts";

const commands: Command[] = [];
for (const load of Object.values(commandLoaders)) commands.push(await load());

const entriesOf = ({ blocks }: HelpPage) => blocks.flatMap((block) => block.kind === "entries" ? block.entries : []);
const headingsOf = ({ blocks }: HelpPage) => blocks.flatMap((block) => block.kind === "heading" ? block.text : []);

test("every option of every command belongs to one group, and the full help names each once", () => {
  for (const command of commands) {
    const { name, settings, explainedElsewhere = {} } = command;
    const flags = Object.entries({ ...settings, ...commonCommandSettings }).flatMap(([key, { flag }]) =>
      flag === undefined || Object.hasOwn(explainedElsewhere, key) ? [] : [flag]
    );
    const grouped = optionsByGroup(command).flatMap(([, members]) => Object.values(members).map(({ flag }) => flag));
    expect([name, ...grouped.sort()]).toEqual([name, ...flags.sort()]);
    const page = commandPage(command);
    const text = JSON.stringify(page.blocks);
    for (const flag of flags) {
      expect([name, flag, text.includes(flag.split(", ").at(-1) ?? "")]).toEqual([name, flag, true]);
    }
  }
});

test("a group is short enough to be read: a table with more options than that names other groups for some", () => {
  for (const command of commands) {
    for (const [group, members] of optionsByGroup(command)) {
      const [count, most] = [Object.keys(members).length, group === "connection" ? 30 : 20];
      expect([command.name, group, count <= most]).toEqual([command.name, group, true]);
    }
  }
});

test("the short help has at most nine options, all basic ones among them, and two examples", () => {
  for (const command of commands) {
    const shown = shortHelpOptions(command);
    const basic = Object.entries({ ...command.settings, ...commonCommandSettings }).filter(([key, one]) =>
      one.basic === true && !Object.hasOwn(command.explainedElsewhere ?? {}, key)
    );
    expect([command.name, Object.keys(shown).length <= 9]).toEqual([command.name, true]);
    for (const [name] of basic) {
      expect([command.name, name, Object.hasOwn(shown, name)]).toEqual([command.name, name, true]);
    }
    const page = shortCommandPage(command);
    expect(page.blocks.filter(({ kind }) => kind === "examples").length).toBe(1);
    expect(page.usage).toEqual(commandPage(command).usage);
  }
});

test("a page has the groups in their order, and the connection settings once, by name", () => {
  const lock = commands.find(({ name }) => name === "lock");
  if (lock === undefined) throw new Error("there is no command lock");
  const page = commandPage(lock);
  const order = Object.values(optionGroupHeadings);
  const headings = headingsOf(page).filter((heading) => order.includes(heading));
  expect(headings).toEqual(order.filter((heading) => headings.includes(heading)));
  expect(headings).toEqual(expect.arrayContaining(["Options", "Waiting", "Output", "General"]));
  const terms = entriesOf(page).map(({ term }) => term);
  expect(terms).toContain("-z, --servers <host:port,…[/chroot]>");
  expect(terms.some((term) => term.startsWith("--tls"))).toBe(false);
  const texts = page.blocks.flatMap((block) => block.kind === "text" ? block.text : []);
  expect(texts.find((text) => text.includes("see baton help connection"))).toContain(
    "--session-timeout, --connect-timeout",
  );
});

test("an option without a group is one of the command's own; --json and --log are output", () => {
  const settings = {
    own: setting(textType("x"), { flag: "--own", help: "own" }),
    json: setting(toggleType(), { flag: "--json", help: "json", default: false }),
    ...putSettingsIntoGroup("limits", {
      max: setting(textType("x"), { flag: "--max", help: "max" }),
      key: setting(textType("x"), { flag: "--key", group: "security", help: "key" }),
    }),
  };
  const command: Command = defineCommand({
    name: "tried",
    summary: "",
    usage: "",
    details: [],
    examples: [],
    settings,
    run: () => Promise.resolve(0),
  });
  const groups = optionsByGroup(command).map(([group, members]) => [group, ...Object.keys(members)]);
  expect(groups).toEqual([
    ["main", "own"],
    ["limits", "max"],
    ["security", "key"],
    ["output", "json"],
    ["general", ...Object.keys(commonCommandSettings)],
  ]);
});

test("the short help begins with what a reader would type", () => {
  for (const command of commands) {
    const [summary, ...blocks] = shortCommandPage(command).blocks;
    expect([command.name, summary?.kind, blocks[0]?.kind, blocks[1]?.kind]).toEqual([
      command.name,
      "text",
      "heading",
      "examples",
    ]);
    expect([command.name, command.usage.split(" | ").length <= 12]).toEqual([command.name, true]);
  }
});

test("the short help of every command fits into 30 lines; the first 12 have an example", () => {
  for (const command of commands) {
    const page = shortCommandPage(command);
    const lines = helpPageText(page, (_style, text) => text, 100).trimEnd().split("\n");
    expect([command.name, lines.length <= 30]).toEqual([command.name, true]);
    const example = lines.indexOf("Examples:") + 2;
    expect([command.name, example <= 12]).toEqual([command.name, true]);
  }
});

test("the short help groups its options; those that have no company in their group stand together", () => {
  const headings = (name: string) => {
    const command = commands.find((one) => one.name === name);
    if (command === undefined) throw new Error(`there is no command ${name}`);
    return headingsOf(shortCommandPage(command)).slice(1);
  };
  expect(headings("lock")).toEqual(["Main options", "Waiting", "More options"]);
  expect(headings("retry-processor call")).toEqual(["Main options", "Retry policy"]);
  expect(headings("explain")).toEqual(["Options"]);
});

test("an example has its meaning on its own line as a comment, if both fit", () => {
  const examples = [["baton a", "short"], ["baton a --long", "longer"], ["baton a ".repeat(9), "below"]] as const;
  const page = { name: "a", summary: "", usage: [], blocks: [{ kind: "examples", examples }] } as const;
  expect(helpPageText(page, (_style, text) => text, 60)).toBe(
    `  baton a         # short\n  baton a --long  # longer\n  ${"baton a ".repeat(9)}\n      below\n`,
  );
});

test("the short help of retry-processor call shows how to send a request", () => {
  const call = commands.find(({ name }) => name === "retry-processor call");
  if (call === undefined) throw new Error("there is no command retry-processor call");
  const terms = entriesOf(shortCommandPage(call)).map(({ term }) => term);
  expect(terms).toContain("--url <url>");
  expect(terms).toContain("-H, --header <name:value>");
});

test("an option of the short help has its purpose, and its default if both fit into one line", () => {
  const term = "--wait <duration>";
  expect(briefEntry({ term, meaning: "wait this long; then exit 75 (also --timeout)", standard: "10s" }))
    .toEqual({ term, meaning: "wait this long", standard: "10s" });
  expect(briefEntry({ term, meaning: "wait this long. Not with -n", standard: "no limit, or ".repeat(5) }))
    .toEqual({ term, meaning: "wait this long", standard: "" });
});
