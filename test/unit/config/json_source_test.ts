import { expect, test } from "bun:test";
import fc from "fast-check";
import { JsonSyntaxError, parseJsonSource } from "../../../src/config/json_source.ts";

test("any JSON text has the value that JSON.parse gives it", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, "\t"), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(parseJsonSource(text).value).toEqual(JSON.parse(text));
    }),
  );
});

test("any other text is refused with a line of it, and with nothing else", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(), fc.constantFrom("", ",", "}", "\n]", '"', "x", "\\"), (value, at, insert) => {
      const whole = JSON.stringify(value, null, 1);
      const cut = at % (whole.length + 1);
      const text = insert === "" ? whole.slice(0, cut) : whole.slice(0, cut) + insert + whole.slice(cut);
      if (accepts(text)) return;
      try {
        parseJsonSource(text);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(JsonSyntaxError);
        const { line } = thrown as JsonSyntaxError;
        expect(line >= 1 && line <= text.split("\n").length).toBe(true);
        return;
      }
      throw new Error(`accepted: ${text}`);
    }),
    { numRuns: 500 },
  );
});

function accepts(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
