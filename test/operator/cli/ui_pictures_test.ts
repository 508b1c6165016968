/**
 * Every view of the page of `baton ui` in a real browser, with rows of a sample: light, dark and on a phone; without
 * rows, without servers and with thousands of rows.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { Browser, Page } from "playwright-core";
import { brokenWords, serveSample, widerThanScreen } from "../../support/served_sample.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { mistakesOf, startBrowser } from "../../support/ui_page.ts";
import {
  emptyPage,
  fullPage,
  loadingPage,
  lostPage,
  sampleNowMs,
  type SamplePage,
  samplePage,
} from "../../support/ui_sample_rows.ts";

setDefaultTimeout(60_000);

/** Rows whose details are looked at, too. */
const details = [
  "locks/nightly-backup",
  "topics/orders",
  "retry/%2Fvar%2Flib%2Fbaton%2Fwebhooks",
  "ticks/invoice-export",
];
const views = [
  "overview",
  "locks",
  "elections",
  "barriers",
  "pools",
  "ticks",
  "topics",
  "retry",
  "servers",
  ...details,
];
/** Where pictures of all views are written; nowhere if it is not set. */
const folder = process.env["BATON_UI_PICTURES"];

/** The pictures of docs/guides/alerts.md, and their views. They are written with BATON_WRITE_GOLDEN=1. */
const docsPictures = {
  ui_overview: "overview",
  ui_schedules: "ticks",
  ui_lock: "locks/nightly-backup",
  ui_dead_letters: "retry",
} as const;
const docsFolder = join(import.meta.dirname, "../../../docs/picture");

const sizes = {
  light: { width: 1440, height: 1000, colorScheme: "light" },
  dark: { width: 1440, height: 1000, colorScheme: "dark" },
  phone: { width: 390, height: 844, colorScheme: "light" },
  docs: { width: 1200, height: 760, colorScheme: "light" },
} as const;
type Size = keyof typeof sizes;

const axe = readFileSync(join(import.meta.dirname, "../../../node_modules/axe-core/axe.min.js"), "utf8");

describeWithPeer("chromium", "pictures of the page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
    if (folder !== undefined) mkdirSync(folder, { recursive: true });
  });
  afterAll(() => browser?.close());

  const withSample = async (sample: SamplePage, size: Size, look: (page: Page) => Promise<void>) => {
    const { width, height, colorScheme } = sizes[size];
    using server = serveSample(sample);
    const context = await browser.newContext({ viewport: { width, height }, colorScheme, bypassCSP: true });
    const page = await context.newPage();
    const mistakes = mistakesOf(page);
    await page.goto(`http://127.0.0.1:${server.port}/#token=sample`);
    await page.locator("main h1").first().waitFor();
    await look(page);
    expect(mistakes).toEqual([]);
    await context.close();
  };
  const picture = async (page: Page, name: string) => {
    if (folder !== undefined) {
      await page.screenshot({ path: join(folder, `${name}.png`), fullPage: name.startsWith("overview") });
    }
  };
  /** The light theme is checked by all rules, the dark one by its contrast. A phone has the light theme. */
  const axeMistakes = async (page: Page, size: Size, view: string): Promise<string[]> => {
    if (size === "phone") return [];
    const rules = size === "dark" ? `, runOnly: ["color-contrast"]` : "";
    const found = await page.evaluate(`axe.run(document, { resultTypes: ["violations"]${rules} })`);
    const { violations } = found as { violations: { id: string; nodes: { html: string }[] }[] };
    return violations.map(({ id, nodes }) => `${view} ${id}: ${nodes[0]?.html}`);
  };
  const open = async (page: Page, view: string) => {
    await page.evaluate(`location.hash = "${view}"`);
    await page.locator(details.includes(view) ? "dialog[open] tbody th" : "main h1").first().waitFor();
  };

  for (const size of ["light", "dark", "phone"] as const) {
    test(`every view fits the screen, breaks no word, and axe finds no problem: ${size}`, async () => {
      await withSample(samplePage(sampleNowMs), size, async (page) => {
        await page.locator(".attention li").first().waitFor();
        await page.evaluate(axe);
        for (const view of views) {
          await open(page, view);
          await picture(page, `${view.replaceAll(/\W+/g, "_")}_${size}`);
          expect(await page.evaluate(widerThanScreen)).toEqual([]);
          expect(await page.evaluate(brokenWords)).toEqual([]);
          expect(await axeMistakes(page, size, view)).toEqual([]);
        }
      });
    });
  }

  test("docs/guides/alerts.md has its pictures", async () => {
    if (process.env["BATON_WRITE_GOLDEN"] === "1") {
      await withSample(samplePage(sampleNowMs), "docs", async (page) => {
        await page.locator(".feed li").first().waitFor();
        for (const [name, view] of Object.entries(docsPictures)) {
          await open(page, view);
          if (view === "retry") await page.locator("table.groups").waitFor();
          await page.screenshot({ path: join(docsFolder, `${name}.png`) });
        }
      });
    }
    const guide = readFileSync(join(docsFolder, "../guides/alerts.md"), "utf8");
    for (const name of [...Object.keys(docsPictures), "ui_action"]) {
      expect(guide).toContain(`(../picture/${name}.png)`);
      expect(existsSync(join(docsFolder, `${name}.png`))).toBe(true);
    }
  });

  test("the page names who waits, who is behind, and which server is offline, with the command", async () => {
    await withSample(samplePage(sampleNowMs), "light", async (page) => {
      const firstRow = (head: string) => page.locator(`tbody tr:first-child td[data-head="${head}"]`);
      await page.locator('nav a[href="#topics"] .state b', { hasText: /^3$/ }).waitFor();
      await page.locator(".attention code", { hasText: /^baton pubsub server --id ps2 --data-dir FOLDER$/ }).waitFor();
      expect(await page.getByRole("button", { name: "Copy command" }).count()).toBe(8);
      await open(page, "locks");
      await firstRow("Waiting").getByText(/^3: backup@db2 2 h 4 m, \+2$/).waitFor();
      await firstRow("For").getByText("11x usual").waitFor();
      await open(page, "topics");
      await page.locator("td .state.warn", { hasText: "billing, 41,200 behind" }).waitFor();
      await open(page, "servers");
      await page.locator(".head", { hasText: "ps2 is offline for 14 m: topics search, sessions." }).waitFor();
      await page.locator(".head code", { hasText: "baton pubsub server --id ps2" }).waitFor();
    });
  });

  test("without a reading the page shows no number, and nothing is green", async () => {
    for (const [title, sample] of [["Reading", loadingPage], ["No coordination server responds", lostPage]] as const) {
      await withSample(sample(sampleNowMs), "light", async (page) => {
        await page.locator("h1", { hasText: title }).waitFor();
        await picture(page, sample.name);
        expect(await page.locator("svg.mark.good").count()).toBe(0);
        expect(await page.locator(".tile .big").count()).toBe(0);
      });
    }
  });

  test("with nothing in use the page shows the first steps", async () => {
    await withSample(emptyPage(sampleNowMs), "light", async (page) => {
      await page.locator("h1", { hasText: "Nothing is in use yet" }).waitFor();
      await picture(page, "empty");
    });
  });

  test("5,000 locks, 1,000 topics and 500 schedules: the page says how many rows are missing", async () => {
    await withSample(fullPage(sampleNowMs), "light", async (page) => {
      await page.locator(".tile .big", { hasText: "5,000" }).waitFor();
      await open(page, "locks");
      await page.getByText("Show 200 more rows").waitFor();
      await open(page, "ticks");
      await page.getByText("300 more are not shown").waitFor();
    });
  });
});
