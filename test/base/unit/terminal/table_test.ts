import { describe, expect, test } from "bun:test";
import { formatTableLines } from "../../../../src/base/terminal/table.ts";
import { cutTerminalLine } from "../../../../src/base/terminal/terminal_lines.ts";
import { cutTextToWidth, shortenTextToWidth, textWidth } from "../../../../src/base/terminal/text_width.ts";

const plain = (_style: string, text: string) => text;

describe("the width of a text", () => {
  test("wide characters take two columns, combining marks none", () => {
    expect(textWidth("lock")).toBe(4);
    expect(textWidth("長い名前")).toBe(8);
    expect(textWidth("e\u0301")).toBe(1);
    expect(textWidth("ロック")).toBe(6);
    expect(textWidth("👩")).toBe(2);
  });

  test("a text is cut and shortened by its columns", () => {
    expect(cutTextToWidth("長い名前", 5)).toBe("長い");
    expect(shortenTextToWidth("長い名前", 8)).toBe("長い名前");
    expect(shortenTextToWidth("長い名前", 7)).toBe("長い名…");
    expect(cutTerminalLine("\x1b[1m長い\x1b[22mab", 3)).toBe("\x1b[1m長\x1b[22m");
  });
});

describe("a table", () => {
  const rows = [["NAME", "HOLD", "REASON"], ["長い", "1", "full"], ["ab", "22", ""]];

  test("columns are aligned under wide characters", () => {
    expect(formatTableLines(rows, plain)).toEqual(["NAME  HOLD  REASON", "長い  1     full", "ab    22"]);
  });

  test("a long text hides no other column where the width is limited", () => {
    const long = [...rows, ["x".repeat(200), "3", "y".repeat(300)]];
    const lines = formatTableLines(long, plain, 60);
    expect(lines.at(-1)).toBe(`${"x".repeat(25)}…  3     ${"y".repeat(25)}…`);
    expect(lines.every((line) => textWidth(line) <= 60)).toBe(true);
    expect(formatTableLines(long, plain).at(-1)).toContain("x".repeat(200));
  });

  test("a table that fits is not changed, and texts of 20 columns stay whole", () => {
    expect(formatTableLines(rows, plain, 18)).toEqual(formatTableLines(rows, plain));
    expect(formatTableLines([["x".repeat(50), "30122667432480123"]], plain, 30)).toEqual([
      `${"x".repeat(19)}…  30122667432480123`,
    ]);
  });
});
