import { describe, expect, test } from "bun:test";
import { drawPicture } from "../../../../scripts/picture/draw_picture.ts";
import { comparableTranscript, readTranscript } from "../../../../scripts/picture/lock_session.ts";
import { TerminalScreen } from "../../../../scripts/picture/terminal_screen.ts";

function screenOf(...outputs: [atMs: number, text: string][]): TerminalScreen {
  const screen = new TerminalScreen(20, 3);
  for (const [atMs, text] of outputs) screen.write({ atMs, text });
  return screen;
}

describe("a recorded screen", () => {
  test("text that arrives at different times is different runs", () => {
    const runs = screenOf([0, "$ "], [10, "l"], [20, "s"], [30, "\r\nfile\r\n"]).runs();
    expect(runs.map(({ row, column, text, sinceMs }) => [row, column, text, sinceMs])).toEqual([
      [0, 0, "$ ", 0],
      [0, 2, "l", 10],
      [0, 3, "s", 20],
      [1, 0, "file", 30],
    ]);
  });

  test("text that is overwritten or erased ends at that time", () => {
    const screen = screenOf([0, "waiting"], [5, "\rworking"], [9, "\r\x1b[Kdone"]);
    expect(screen.runs().map(({ text, sinceMs, untilMs }) => [text, sinceMs, untilMs])).toEqual([
      ["waiting", 0, 5],
      ["working", 5, 9],
      ["done", 9, Infinity],
    ]);
    expect(screen.lines()).toEqual(["done"]);
  });

  test("colors and bold are styles; other escape codes are nothing", () => {
    const runs = screenOf([0, "\x1b[?2004h\x1b]0;title\x07\x1b[1;32mok\x1b[0m no"]).runs();
    expect(runs.map(({ text, style }) => [text, style.bold, style.color])).toEqual([["ok", true, 2], [
      " no",
      false,
      null,
    ]]);
  });

  test("a long line continues in the next row; what does not fit is an error", () => {
    expect(screenOf([0, "a".repeat(25)]).lines()).toEqual(["a".repeat(20), "aaaaa"]);
    expect(() => screenOf([0, "a\r\nb\r\nc\r\nd"])).toThrow("3 rows");
  });
});

describe("the picture", () => {
  const screen = screenOf([0, "waiting"], [500, "\r\x1b[Ka < b & c"]);
  const svg = drawPicture({
    title: "two & three",
    description: "$ a < b & c",
    columns: 20,
    terminals: [{ title: "terminal", rows: 3, runs: screen.runs() }],
    lengthMs: 1_000,
    restMs: 1_000,
  });

  test("is XML, with the text and a description for readers that do not see it", () => {
    expect(svg).toContain("<title>two &amp; three</title>");
    expect(svg).toContain(">a &lt; b &amp; c</text>");
    expect(readTranscript(svg)).toBe("$ a < b & c");
  });

  test("shows text from the time at which it was written, and without animation the end", () => {
    expect(svg).toContain("@keyframes t0{0%{visibility:hidden}0%{visibility:visible}25%{visibility:hidden}}");
    expect(svg).toContain("@keyframes t1{0%{visibility:hidden}25%{visibility:visible}}");
    expect(svg).toMatch(/class="t0 gone"[^>]*>waiting</);
    expect(svg).toMatch(/class="t1"[^>]*>a &lt; b/);
  });

  test("process IDs and times are not compared", () => {
    const one = "busy: held for 2.9 s by ops@db1 (pid 4961)";
    expect(comparableTranscript(one)).toBe(comparableTranscript("busy: held for 612 ms by ops@db1 (pid 31)"));
    expect(comparableTranscript(one)).not.toBe(comparableTranscript("busy: held by ops@db1 (pid 4961)"));
  });
});
