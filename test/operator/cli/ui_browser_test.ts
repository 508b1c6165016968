/**
 * The page of `baton ui` in a real browser, on the keeper and on ZooKeeper, with many rows. Makes the picture of an
 * action for docs/guides/alerts.md.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Browser, Page } from "playwright-core";
import { lockPath } from "../../../src/coordination/nodes/node_paths.ts";
import { parseHolderNodeInfo } from "../../../src/coordination/nodes/holder_info.ts";
import { countText } from "../../../src/base/rows/row_texts.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { deadCount, lockCount, seedLocks, seedPage, topicCount } from "../../support/ui_rows_seed.ts";
import { mistakesOf, type ServedPage, servePage, startBrowser } from "../../support/ui_page.ts";

setDefaultTimeout(60_000);

const pictures = join(import.meta.dirname, "../../../docs/picture");

describeWithPeer("chromium", "baton ui in a browser", () => {
  let browser: Browser;
  beforeAll(async () => void (browser = await startBrowser()));
  afterAll(() => browser?.close());

  for (const backend of backends) {
    describeBackend(backend, () => {
      let servers: RunningBackend;
      let session: BatonSession;
      let zk: ZooKeeper;
      let served: ServedPage;
      let page: Page;
      let mistakes: string[];
      let ids: Map<string, string>;

      beforeAll(async () => {
        servers = await backend.start({ sessionTimeoutMaxMs: 60_000 });
        session = new BatonSession({ BATON_SERVERS: servers.servers });
        zk = await connectToZooKeeper({ servers: parseZooKeeperServers(servers.servers), sessionTimeoutMs: 60_000 });
        ids = await seedPage(zk, session.path("store"));
        served = await servePage(session, "--allow-actions");
        page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
        mistakes = mistakesOf(page);
      });
      afterAll(async () => {
        await page?.close();
        await zk?.close();
        await session?.[Symbol.asyncDispose]();
        await servers?.close();
      });

      const view = async (name: string) => {
        await page.locator(`nav a[href="#${name}"]`).click();
        await page.locator(`nav a[href="#${name}"][aria-current="page"]`).waitFor();
      };
      const count = (text: string) => page.locator("p.count", { hasText: text }).waitFor();

      test("the link opens the page, keeps the token out of the address, and shows everything", async () => {
        await page.goto(served.link);
        await page.locator("p.live", { hasText: "live" }).waitFor();
        expect(page.url()).not.toContain("token");
        const item = (text: string) => page.locator(".attention li", { hasText: text });
        await item(`Store default: it has ${countText(deadCount)} dead letters`).waitFor();
        await item("Server server1: it is offline").waitFor();
        await view("topics");
        await count(`${topicCount} rows`);
        await view("retry");
        await page.locator("td", { hasText: "10,000" }).waitFor();
        await view("locks");
        await count("1,000 rows");
        expect(await page.locator("tbody tr").count()).toBe(200);
      });

      test("a name with markup and direction characters is text", async () => {
        await page.locator("#filter").fill("eve");
        await count("1 of 1,000 row");
        expect(await page.locator("a.name").textContent()).toBe("<img src=x>\\u{202e}&amp;");
        expect(await page.locator("main img").count()).toBe(0);
        await page.locator("#filter").fill("");
      });

      test("a lock that is taken, waited for and released appears and goes by itself", async () => {
        await page.locator("#filter").fill("fresh");
        await count("0 of 1,000 rows");
        await seedLocks(zk, [{ name: "fresh", waiters: 2, reason: "new" }]);
        await page.locator("a.name", { hasText: "fresh" }).waitFor();
        // The lock may be seen before its queue.
        await page.locator("td[data-head=Waiting]", { hasText: /^2: / }).waitFor();
        await page.locator("a.name").click();
        await page.locator("dialog[open] caption", { hasText: "Queue, in its order (2)" }).waitFor();
        const { holders, queue } = lockPath("fresh");
        for (const folder of [queue, holders]) {
          const { children } = await zk.getChildren(folder);
          for (const child of children) await zk.delete(`${folder}/${child}`, -1);
        }
        await page.getByText("It is no longer there.").waitFor();
        await page.keyboard.press("Escape");
        await count("0 of 1,000 rows");
        await page.locator("#filter").fill("");
      });

      test("keys alone lead from the filter to the details of a row and back", async () => {
        await page.locator("h1").click();
        await page.keyboard.press("/");
        await page.keyboard.type("nightly");
        await count("1 of 1,000 row");
        await page.keyboard.press("Escape");
        expect(await page.locator("#filter").inputValue()).toBe("nightly");
        await page.keyboard.press("j");
        await page.keyboard.press("Enter");
        await page.locator("dialog[open] h2", { hasText: "Lock nightly" }).waitFor();
        await page.locator("dialog[open] td", { hasText: "full backup" }).first().waitFor();
        // The link for reading offers no action.
        expect(await page.locator("dialog[open] button", { hasText: "…" }).count()).toBe(0);
        await page.keyboard.press("Escape");
        await page.locator("dialog[open]").waitFor({ state: "hidden" });
        expect(await page.evaluate("document.activeElement.dataset.row")).toBe("nightly");
        await page.keyboard.press("?");
        await page.locator("dialog[open] h2", { hasText: "Keys" }).waitFor();
        await page.keyboard.press("Escape");
        await page.locator("dialog[open]").waitFor({ state: "hidden" });
        await page.locator("#filter").fill("");
      });

      test("a narrow screen shows rows as cards, and nothing is wider than the screen", async () => {
        await page.setViewportSize({ width: 390, height: 844 });
        await page.locator("a.name").first().waitFor();
        const width = await page.evaluate("document.documentElement.scrollWidth");
        expect(width).toBeLessThanOrEqual(390);
        await page.setViewportSize({ width: 1200, height: 800 });
      });

      /** The holder of "nightly" as its baton would be: releases the lock when it is asked. */
      const releaseWhenAsked = async () => {
        const { holders } = lockPath("nightly");
        const [child = ""] = (await zk.getChildren(holders)).children;
        const node = `${holders}/${child}`;
        return new Promise<string>((resolve, reject) => {
          const watch = () => {
            zk.getData(node).then(async ({ data }) => {
              await zk.delete(node, -1);
              resolve(parseHolderNodeInfo(data).revoke?.by ?? "");
            }).catch(reject);
          };
          zk.getData(node, { watch }).catch(reject);
        });
      };
      const nightlyHolders = async () => (await zk.getChildren(lockPath("nightly").holders)).children;
      const dialog = (text: string | RegExp) => page.locator("dialog.action[open]", { hasText: text });

      test("a stale page does not break the next holder's lock; a current one asks its holder", async () => {
        await page.goto("about:blank");
        await page.goto(served.actLink);
        await page.locator("p.mode", { hasText: "can change things" }).waitFor();
        await view("locks");
        await page.locator("#filter").fill("nightly");
        await page.locator("a.name", { hasText: "nightly" }).click();
        await page.getByRole("button", { name: "Ask to release…" }).click();
        await dialog("root@db1:812 backup.sh holds").waitFor();
        if (process.env["BATON_WRITE_GOLDEN"] === "1" && backend.kind === "keeper") {
          await page.screenshot({ path: join(pictures, "ui_action.png") });
        }
        // Another holder takes the lock while the dialog is open.
        const [old = ""] = await nightlyHolders();
        const next = `x-${newGuid()}`;
        const data = (await zk.getData(`${lockPath("nightly").holders}/${old}`)).data;
        await zk.delete(`${lockPath("nightly").holders}/${old}`, -1);
        await zk.create(`${lockPath("nightly").holders}/${next}`, data, { mode: "ephemeral" });
        await dialog("").getByRole("button", { name: "Ask to release" }).click();
        await dialog("The page is old").waitFor();
        expect(await nightlyHolders()).toEqual([next]);
        expect(parseHolderNodeInfo((await zk.getData(`${lockPath("nightly").holders}/${next}`)).data).revoke)
          .toBeNull();
        await page.keyboard.press("Escape");
        const askedBy = releaseWhenAsked();
        // By keyboard alone, when the row has the next holder: the button, the reason, the name of the button.
        const stat = await zk.exists(`${lockPath("nightly").holders}/${next}`);
        await page.locator("dialog[open] td[data-head=Token]", { hasText: String(stat?.czxid) }).waitFor();
        await page.getByRole("button", { name: "Ask to release…" }).focus();
        await page.keyboard.press("Enter");
        await dialog("").locator("input[name=reason]").focus();
        await page.keyboard.type("upgrade");
        await page.keyboard.press("Enter");
        await dialog("has released it").waitFor();
        await page.keyboard.press("Escape");
        expect(await askedBy).toContain("via baton ui");
        await page.keyboard.press("Escape");
        await view("overview");
        await page.locator("td", { hasText: 'break lock "nightly"' }).first().waitFor();
      });

      test("force needs the name typed; without it nothing is sent", async () => {
        await view("locks");
        await page.locator("#filter").fill("eve");
        await page.locator("a.name").first().click();
        await page.getByRole("button", { name: "Take by force…" }).click();
        await dialog("").locator("input[name=typed]").fill("eve");
        await dialog("").getByRole("button", { name: "Take by force" }).click();
        await dialog("Nothing was sent").waitFor();
        await page.keyboard.press("Escape");
        await page.keyboard.press("Escape");
        await page.locator("#filter").fill("");
      });

      test("dead letters are shown by 100 and by filter, redriven, and dropped after the name is typed", async () => {
        await view("retry");
        await page.locator("a.name", { hasText: "default" }).click();
        const rows = page.locator("table.letters tbody tr");
        await rows.nth(99).waitFor();
        expect(await rows.count()).toBe(100);
        const first = await rows.first().locator("th").textContent();
        await page.getByRole("button", { name: "Next 100" }).click();
        await page.locator("caption", { hasText: "Page 2" }).waitFor();
        await eventually(async () => await rows.first().locator("th").textContent() !== first);
        await page.locator("#dead-filter").fill("no such error");
        await page.getByRole("button", { name: "Show", exact: true }).click();
        await page.getByText("None.", { exact: true }).waitFor();
        await page.locator("#dead-filter").fill("exited");
        await page.getByRole("button", { name: "Show", exact: true }).click();
        await rows.first().getByRole("button", { name: "Redrive…" }).click();
        await dialog("").getByRole("button", { name: "Redrive" }).click();
        await dialog("1 dead letter redriven").waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("button", { name: "Drop these 100…" }).click();
        await dialog("").locator("input[name=typed]").fill("default");
        await dialog("").getByRole("button", { name: "Drop" }).click();
        await dialog(/dead letters? dropped/).waitFor();
        await page.keyboard.press("Escape");
        await page.setViewportSize({ width: 390, height: 844 });
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
        await page.setViewportSize({ width: 1200, height: 800 });
        await page.keyboard.press("Escape");
        await page.locator("td", { hasText: /9,(899|900)/ }).first().waitFor();
      });

      if (backend.kind === "keeper") {
        test("a page of another origin cannot act, by a form or by a script", async () => {
          const target = new URL(served.link).origin;
          const html =
            `<form action="${target}/actions/break" method="post" enctype="text/plain"><input name='{"name":"a"' value='}'></form>`;
          using other = Bun.serve({
            port: 0,
            fetch: () => new Response(html, { headers: { "content-type": "text/html" } }),
          });
          const evil = await browser.newPage();
          await evil.goto(`http://localhost:${other.port}/`);
          const [response] = await Promise.all([
            evil.waitForResponse((one) => one.url().startsWith(target)),
            evil.waitForURL(`${target}/**`),
            evil.evaluate("document.forms[0].submit()"),
          ]);
          expect([403, 415]).toContain(response.status());
          await evil.goto(`http://localhost:${other.port}/`);
          const token = new URL(served.actLink).hash.slice("#token=".length);
          const options = JSON.stringify({
            method: "POST",
            headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
            body: "{}",
          });
          const seen = await evil.evaluate(
            `fetch("${target}/actions/break", ${options}).then(() => "sent", () => "refused by the browser")`,
          );
          expect(seen).toBe("refused by the browser");
          await evil.close();
        });

        test("axe finds no problem in the details of a store, and in the dialog of an action", async () => {
          const axe = readFileSync(join(import.meta.dirname, "../../../node_modules/axe-core/axe.min.js"), "utf8");
          // The content security policy refuses the script as a part of the page: it runs in a context without the
          // policy.
          const checked = await browser.newContext({ bypassCSP: true });
          const other = await checked.newPage();
          await other.goto(served.actLink);
          await other.locator("p.live", { hasText: "live" }).waitFor();
          await other.evaluate(axe);
          const options = `{ resultTypes: ["violations"] }`;
          await other.locator('nav a[href="#retry"]').click();
          await other.locator("a.name").first().click();
          await other.locator("table.letters").waitFor();
          expect(problemsOf(await other.evaluate(`axe.run("dialog[open]", ${options})`), "dead letters")).toEqual([]);
          await other.getByRole("button", { name: /Drop these/ }).click();
          await other.locator("dialog.action[open]").waitFor();
          expect(problemsOf(await other.evaluate(`axe.run("dialog.action", ${options})`), "action")).toEqual([]);
          await checked.close();
        });
      }

      test("the page recovers by itself when the servers start again", async () => {
        await view("locks");
        await page.locator("#filter").fill("");
        await servers.kill();
        await page.locator("h1", { hasText: "No coordination server responds" }).waitFor();
        await servers.restart();
        await page.locator("p.live", { hasText: /^live$/ }).waitFor();
        await count("1,000 rows");
        expect(ids.size).toBe(lockCount);
      });

      test("no script error, and no violation of the content security policy", () => {
        expect(mistakes).toEqual([]);
      });
    });
  }
});

interface AxeViolation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

function problemsOf(found: unknown, where: string): string[] {
  return (found as { violations: AxeViolation[] }).violations.map(({ id, nodes }) =>
    `${where} ${id}: ${nodes[0]?.html}`
  );
}
