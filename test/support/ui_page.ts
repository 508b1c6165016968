/** The page of `baton ui` in Debian's Chromium: the program as a process, and a browser with a page. */
import { type Browser, chromium, type Page } from "playwright-core";
import type { BatonSession, Running } from "./baton_session.ts";
import { eventually } from "./eventually.ts";

export const chromiumPath = "/usr/bin/chromium";

export interface ServedPage {
  readonly running: Running;
  /** The link that the program printed, with its token. */
  readonly link: string;
  /** The link for actions; empty without --allow-actions. */
  readonly actLink: string;
}

/** Starts `baton ui` on a free port. `options`: further words of its command line. */
export async function servePage(session: BatonSession, options = ""): Promise<ServedPage> {
  const running = session.start(`exec "$baton" ui --listen 127.0.0.1:0 --store "$dir/store" ${options}`);
  const link = await eventually(() => /^https?:\/\/\S+$/m.exec(running.stdout())?.[0] ?? null, {
    what: `a link of baton ui; it printed ${running.stderr()}`,
    withinMs: 15_000,
  });
  const actLink = options.includes("--allow-actions")
    ? await eventually(() => /^with actions: (\S+)$/m.exec(running.stdout())?.[1] ?? null, { what: "the second link" })
    : "";
  return { running, link, actLink };
}

/** Its own sandbox needs rights that root of a container does not have. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
}

/** Collects what a page must not have: errors of its script, and violations of the content security policy. */
export function mistakesOf(page: Page): string[] {
  const mistakes: string[] = [];
  page.on("pageerror", (error) => mistakes.push(error.message));
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) mistakes.push(message.text());
  });
  return mistakes;
}
