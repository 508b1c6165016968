/** The page of `baton ui` in a real browser, on the keeper and on ZooKeeper, with many rows. Makes the pictures of docs/ui.md. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Browser, Page } from "playwright-core";
import { DirectStore, readOnlyRules } from "../../src/retry/queue/direct_store.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { assignedNode } from "../../src/pubsub/ownership/topic_node.ts";
import { TopicNodes } from "../../src/pubsub/ownership/topic_nodes.ts";
import { lockPath } from "../../src/coordination/lock/lock_path.ts";
import { parseServers } from "../../src/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import { backends, describeBackend, type RunningBackend } from "../support/backends.ts";
import { BatonSession } from "../support/baton_session.ts";
import { describeWithPeer } from "../support/peers.ts";
import { makeParents, seedLocks } from "../support/ui_rows_seed.ts";
import { mistakesOf, type ServedPage, servePage, startBrowser } from "../support/ui_page.ts";

setDefaultTimeout(60_000);

const lockCount = 1000;
const topicCount = 200;
const deadCount = 10_000;
const pictures = join(import.meta.dirname, "../../docs/picture");

async function seed(zk: ZooKeeper, storeFolder: string): Promise<Map<string, string>> {
  const name = (index: number) => `job/${String(index).padStart(4, "0")}`;
  const jobs = Array.from({ length: lockCount - 2 }, (_, index) => ({ name: name(index) }));
  const ids = await seedLocks(zk, [
    { name: "nightly", waiters: 3, reason: "full backup" },
    { name: "<img src=x>\u202e&amp;", user: "eve" },
    ...jobs,
  ]);
  // Nodes of other programs, and of another version, must not hide the others.
  await makeParents(zk, "/baton/locks/not%00baton");
  await makeParents(zk, "/baton/locks/other/child");
  await makeParents(zk, "/baton/ticks/other/id");
  const path = new PubsubPath("/baton");
  await makeParents(zk, path.topics);
  const nodes = new TopicNodes(zk, path);
  for (let index = 0; index < topicCount; index++) {
    await nodes.create(`topic${String(index).padStart(3, "0")}`, assignedNode("server1", "one"));
  }
  const rules = { ...readOnlyRules, maxBytes: 1 << 30, maxMessages: 1_000_000 };
  using store = new DirectStore(storeFolder, rules, { mustExist: false });
  const tried = { outcome: "final", retryAfterMs: null, error: "exited with 64" } as const;
  const head = { kind: "command", argv: null, cwd: null } as const;
  const message = { head, body: new Uint8Array(10), key: null, tried };
  for (let made = 0; made < deadCount; made += 1000) {
    store.call("accept", Array.from({ length: 1000 }, () => message), Date.now());
  }
  return ids;
}

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
        zk = await connect({ servers: parseServers(servers.servers), sessionTimeoutMs: 60_000 });
        ids = await seed(zk, session.path("store"));
        served = await servePage(session);
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
      const picture = (name: string) => {
        if (process.env["BATON_WRITE_GOLDEN"] !== "1" || backend.kind !== "keeper") return;
        return page.screenshot({ path: join(pictures, `${name}.png`) });
      };

      test("the link opens the page, keeps the token out of the address, and shows everything", async () => {
        await page.goto(served.link);
        await page.locator("p.live", { hasText: "live" }).waitFor();
        expect(page.url()).not.toContain("token");
        await page.getByText(`Store default: ${deadCount.toLocaleString("en")} dead letters`).waitFor();
        await page.getByText("Server server1 is offline").waitFor();
        await picture("ui_overview");
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
        expect(await page.locator("button.name").textContent()).toBe("<img src=x>\\u{202e}&amp;");
        expect(await page.locator("main img").count()).toBe(0);
        await page.locator("#filter").fill("");
      });

      test("a lock that is taken, waited for and released appears and goes by itself", async () => {
        await page.locator("#filter").fill("fresh");
        await count("0 of 1,000 rows");
        await seedLocks(zk, [{ name: "fresh", waiters: 2, reason: "new" }]);
        await page.locator("button.name", { hasText: "fresh" }).waitFor();
        await page.locator("td[data-head=Waiting]", { hasText: /^2$/ }).waitFor(); // the lock may be seen before its queue
        await page.locator("button.name").click();
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
        await picture("ui_lock");
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
        await page.locator("button.name").first().waitFor();
        const width = await page.evaluate("document.documentElement.scrollWidth");
        expect(width).toBeLessThanOrEqual(390);
        await picture("ui_phone");
        await page.setViewportSize({ width: 1200, height: 800 });
      });

      if (backend.kind === "keeper") {
        test("axe finds no problem in any view, light and dark", async () => {
          const axe = readFileSync(join(import.meta.dirname, "../../node_modules/axe-core/axe.min.js"), "utf8");
          // The content security policy refuses the script as a part of the page: it runs in a context without the policy.
          const checked = await browser.newContext({ bypassCSP: true });
          const other = await checked.newPage();
          await other.goto(served.link);
          await other.locator("p.live", { hasText: "live" }).waitFor();
          await other.evaluate(axe);
          const options = `{ resultTypes: ["violations"] }`;
          for (const colorScheme of ["light", "dark"] as const) {
            await other.emulateMedia({ colorScheme });
            for (const name of ["overview", "locks", "topics", "retry", "servers", "ticks"]) {
              await other.locator(`nav a[href="#${name}"]`).click();
              await other.locator("#filter").fill(name === "locks" ? "nightly" : "");
              const found = await other.evaluate(`axe.run(document, ${options})`) as { violations: AxeViolation[] };
              const problems = found.violations.map(({ id, nodes }) =>
                `${name} ${colorScheme} ${id}: ${nodes[0]?.html}`
              );
              expect(problems).toEqual([]);
            }
          }
          await checked.close();
        });
      }

      test("the page recovers by itself when the servers start again", async () => {
        await view("locks");
        await page.locator("#filter").fill("");
        await servers.kill();
        await page.getByText("no coordination server responds").waitFor();
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

describe("pictures", () => {
  test("docs/ui.md has the pictures that the tests above make", () => {
    for (const name of ["ui_overview", "ui_lock", "ui_phone"]) {
      expect(existsSync(join(pictures, `${name}.png`))).toBe(true);
    }
  });
});
