/** The page of `baton ui` in Firefox, with rows of a sample. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../../support/eventually.ts";
import { FirefoxPage } from "../../support/firefox.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { brokenWords, serveSample, widerThanScreen } from "../../support/served_sample.ts";
import { sampleNowMs, samplePage } from "../../support/ui_sample_rows.ts";

setDefaultTimeout(60_000);

const titles = {
  overview: "6 problems2 warnings",
  locks: "Locks",
  elections: "Elections",
  barriers: "Barriers",
  pools: "Pools",
  ticks: "Schedules",
  topics: "Topics",
  retry: "Retry",
  servers: "Servers",
};

describeWithPeer("firefox", "the page in Firefox", () => {
  for (const viewport of [{ width: 1440, height: 1000 }, { width: 390, height: 844 }]) {
    test(`every view is drawn, fits the screen and breaks no word: ${viewport.width} px`, async () => {
      using server = serveSample(samplePage(sampleNowMs));
      await using page = await FirefoxPage.start();
      await page.open(`http://127.0.0.1:${server.port}/#token=sample`, viewport);
      for (const [view, title] of Object.entries(titles)) {
        await page.evaluate(`location.hash = "${view}"`);
        const shown = `document.querySelector("main h1")?.textContent ?? ""`;
        await eventually(async () => await page.evaluate(shown) === title, { what: `the title of ${view}` });
        expect(await page.evaluate(widerThanScreen)).toEqual([]);
        expect(await page.evaluate(brokenWords)).toEqual([]);
      }
      await page.evaluate(`location.hash = "locks/nightly-backup"`);
      const queue = `document.querySelectorAll("dialog[open] tbody tr").length`;
      await eventually(async () => Number(await page.evaluate(queue)) > 3, { what: "the details of a lock" });
      expect(page.errors).toEqual([]);
    });
  }
});
