/** docs/tutorial.md, and the snippets of the README: they run as a reader types them, and show what the page shows. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { blocksOfPage, commandsOf } from "../../support/page_blocks.ts";
import { PageShell } from "../../support/page_shell.ts";

setDefaultTimeout(180_000);

test("the tutorial, from its first to its last command", async () => {
  await using shell = new PageShell("docs/tutorial.md");
  await shell.runAll();
});

test("the three uses of the README are those of the cookbook, where they run", () => {
  const readme = blocksOfPage("README.md");
  const lines = (page: string, language: string) =>
    blocksOfPage(page).filter((block) => block.language === language).flatMap(({ text }) => text.split("\n"));
  expect(lines("README.md", "crontab")).toEqual(lines("docs/cookbook/cron.md", "crontab"));
  const [unit = ""] = lines("README.md", "ini");
  expect(lines("docs/cookbook/systemd_leader.md", "ini")).toContain(unit);
  const recipe = commandsOf(blocksOfPage("docs/cookbook/log_lines.md")).join("\n");
  const uses = commandsOf(readme);
  expect(uses).toHaveLength(3);
  for (const line of uses) expect(recipe).toContain(line.replace(/ &$/, ""));
});
