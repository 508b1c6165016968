/** The last lines of a job's output, for on-failure. */
import { expect, test } from "bun:test";
import { OutputTail } from "../../../../src/coordination/cron/output_tail.ts";

test("a short output is kept whole; of a long one the last whole lines; of a long line its end", () => {
  const tailOf = (...chunks: string[]) => {
    const tail = new OutputTail();
    for (const chunk of chunks) tail.add(new TextEncoder().encode(chunk));
    return tail.text();
  };
  expect(tailOf()).toBe("");
  expect(tailOf("a\nb", "c\0\n")).toBe("a\nbc\n");
  expect(tailOf("a".repeat(4095), "\n")).toBe(`${"a".repeat(4095)}\n`);
  const line = `${"b".repeat(99)}\n`;
  expect(tailOf(...Array<string>(100).fill(line))).toBe(line.repeat(40));
  expect(tailOf("c".repeat(10_000))).toBe("c".repeat(4096));
});
