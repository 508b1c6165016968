/**
 * Actions in the page of `baton ui` on real processes, in a real browser: a leader, servers of topics. Others are in
 * ui_browser_test.ts.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { BatonSession, untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { mistakesOf, servePage, startBrowser } from "../../support/ui_page.ts";

setDefaultTimeout(60_000);

interface ListedServer {
  readonly server: string;
  readonly draining: boolean;
  readonly topics: readonly { readonly topic: string }[];
}

describeWithPeer("chromium", "actions of the page in a browser", () => {
  let browser: Browser;
  let session: BatonSession;
  let page: Page;
  let mistakes: string[];
  beforeAll(async () => {
    browser = await startBrowser();
    session = new BatonSession({ BATON_SERVERS: "embedded" });
    const { actLink } = await servePage(session, "--allow-actions");
    page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
    page.setDefaultTimeout(15_000);
    mistakes = mistakesOf(page);
    await page.goto(actLink);
    await page.locator("p.mode", { hasText: "can change things" }).waitFor();
  });
  afterAll(async () => {
    expect(mistakes).toEqual([]);
    await browser?.close();
    await session?.[Symbol.asyncDispose]();
  });

  /** Opens the details of a row, which has its buttons. */
  const open = async (view: string, name: string) => {
    await page.locator(`nav a[href="#${view}"]`).click();
    await page.locator("a.name", { hasText: name }).click();
  };
  const dialog = () => page.locator("dialog.action[open]");
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
  /** Sends the action of the open dialog, and waits for its result. */
  const send = async (name: string, result: string | RegExp) => {
    await dialog().getByRole("button", { name, exact: true }).click();
    await dialog().getByText(result).waitFor();
    await page.keyboard.press("Escape");
  };
  const close = () => page.keyboard.press("Escape");
  const servers = async (): Promise<readonly ListedServer[]> => {
    const { stdout } = await session.run('"$baton" pubsub server ls --json');
    return (JSON.parse(stdout || '{"servers":[]}') as { readonly servers: readonly ListedServer[] }).servers;
  };

  test("a leader is asked to step down, with the reason that was typed, and the next candidate leads", async () => {
    const elect = (value: string) =>
      session.start(`exec "$baton" elect boss --value ${value} --restart never -- sh -c '${untilMade("never")}'`);
    const leads = (value: string) => async () => (await session.run('"$baton" leader boss')).stdout.includes(value);
    const first = elect("one");
    await eventually(leads("one"), { what: "the first leader" });
    const second = elect("two");
    await open("elections", "boss");
    await press("Ask to step down…");
    await dialog().getByText('leads "boss"').waitFor();
    await dialog().locator("input[name=reason]").fill("upgrade");
    await send("Ask to step down", "has released leadership");
    const ended = await first.ended;
    expect(ended.code).toBe(80);
    expect(ended.stderr).toContain("upgrade");
    await eventually(leads("two"), { what: "the next leader" });
    await page.locator("dialog[open] td", { hasText: "two" }).first().waitFor();
    await close();
    second.child.kill("SIGTERM");
    await second.ended;
  });

  test("a topic is moved to the server that was chosen; a server is drained, and the drain is ended", async () => {
    for (const id of ["s1", "s2"]) {
      session.start(`exec "$baton" pubsub server --id ${id} --data-dir "$dir/${id}" --listen tcp://127.0.0.1:0`);
    }
    session.start('exec "$baton" pubsub proxy --id p --listen tcp://127.0.0.1:0');
    await eventually(async () => (await servers()).length === 2, { what: "two servers", withinMs: 20_000 });
    const put = 'echo hello | "$baton" pubsub client writer put news -';
    await eventually(async () => (await session.run(put)).code === 0, { what: "a put", withinMs: 20_000 });
    const owner = async () => (await servers()).find(({ topics }) => topics.length > 0)?.server ?? "";
    const from = await owner();
    const to = from === "s1" ? "s2" : "s1";

    await open("topics", "news");
    await press("Move…");
    expect(await dialog().locator("option").allTextContents()).toEqual([to]);
    await send("Move", `it is at "${to}"`);
    expect(await owner()).toBe(to);
    await close();

    await open("servers", to);
    await press("Drain…");
    await dialog().getByText("gets no new topics").waitFor();
    await send("Drain", "1 topic moved to other servers");
    expect(await owner()).toBe(from);
    expect((await servers()).find(({ server }) => server === to)?.draining).toBe(true);
    await press("End the drain…");
    await send("End the drain", "it takes new topics again");
    expect((await servers()).find(({ server }) => server === to)?.draining).toBe(false);
    await close();
    await page.locator('nav a[href="#overview"]').click();
    for (const what of ['move topic "news"', `drain server "${to}"`, 'ask the leader of "boss" to step down']) {
      await page.locator("td", { hasText: what }).first().waitFor();
    }
  });
});
