/** The page of `baton ui` with rows of a sample, and checks of what a browser draws. */
import { pageHtml, pageScript, pageStyle } from "../../src/operator/ui/page_files.ts";
import { sampleNowMs, type SamplePage } from "./ui_sample_rows.ts";

const files: Readonly<Record<string, { readonly type: string; readonly text: string }>> = {
  "/": { type: "text/html", text: pageHtml },
  "/page.js": { type: "text/javascript", text: pageScript },
  "/page.css": { type: "text/css", text: pageStyle },
};

/** Serves the files of the page, and the rows of a sample as its stream, which stays open. */
export function serveSample({ tables, hour, answers = {} }: SamplePage): Bun.Server<undefined> {
  const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const hello = { nowMs: sampleNowMs, mayAct: true, showsBodies: false };
  return Bun.serve({
    port: 0,
    idleTimeout: 0,
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      const file = files[pathname];
      if (file !== undefined) return new Response(file.text, { headers: { "content-type": file.type } });
      if (pathname === "/series") return Response.json(hour);
      if (Object.hasOwn(answers, pathname)) return Response.json(answers[pathname]);
      if (pathname !== "/stream") return new Response("not in the sample\n", { status: 404 });
      const rows = new TextEncoder().encode(event("hello", hello) + event("tables", tables));
      return new Response(new ReadableStream({ start: (stream) => stream.enqueue(rows) }));
    },
  });
}

/** Returns the elements that reach over the right edge of the screen, unless a parent hides that part. */
export const widerThanScreen = `[...document.querySelectorAll("main *, dialog[open] *")].filter((one) => {
  const hides = one.closest("svg, .unseen, .place, .feed, thead");
  return hides === null && one.getBoundingClientRect().right > innerWidth + 1;
}).map((one) => one.outerHTML.slice(0, 100))`;

/** Returns words that are drawn on two lines. Names and commands may be broken. */
export const brokenWords = `(() => {
  const broken = [];
  const texts = document.createTreeWalker(document.querySelector("dialog[open]") ?? document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    if (node.parentElement.closest("code, .name, .what, svg, .unseen, dd.mono") !== null) continue;
    for (const { index, 0: word } of node.data.matchAll(/[\\p{L}\\p{N}]{2,30}/gu)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (lines.size > 1) broken.push(word);
    }
  }
  return broken;
})()`;
