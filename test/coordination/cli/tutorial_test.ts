/** docs/tutorial.md: its commands run as a reader types them, and show what the page shows. */
import { setDefaultTimeout, test } from "bun:test";
import { PageShell } from "../../support/page_shell.ts";

setDefaultTimeout(180_000);

test("the tutorial, from its first to its last command", async () => {
  await using shell = new PageShell("docs/tutorial.md");
  await shell.runAll();
});
