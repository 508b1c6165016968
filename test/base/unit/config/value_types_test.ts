import { expect, test } from "bun:test";
import fc from "fast-check";
import * as types from "../../../../src/base/config/value_types.ts";

test("a duration reads back as written", () => {
  const type = types.durationType();
  fc.assert(fc.property(fc.nat(1_000_000_000), (ms) => expect(type.parse(type.format(ms))).toBe(ms)));
});

test("a size reads back as written", () => {
  const type = types.sizeType();
  fc.assert(fc.property(fc.nat(2 ** 31 - 1), (bytes) => expect(type.parse(type.format(bytes))).toBe(bytes)));
  expect(type.parse("64KiB")).toBe(65536);
});

test("a wrong value is quoted, with what was wanted", () => {
  const wrong: [() => unknown, RegExp][] = [
    [() => types.durationType().parse("1min"), /"1min" is not a duration/],
    [() => types.durationType({ minMs: 2000 }).parse("1s"), /"1s" is not a duration of at least 2s/],
    [() => types.sessionTimeoutType({ minMs: 2000 }).parse("30d"), /"30d" is not a duration of at most 576h/],
    [() => types.sizeType().parse("64K"), /"64K" is not a size/],
    [() => types.sizeType({ minBytes: 2048 }).parse("1KiB"), /"1KiB" is not a size of at least 2KiB/],
    [() => types.integerType("n", { min: 1, max: 9 }).parse("10"), /"10" is not a whole number from 1 to 9/],
    [() => types.integerType("n", { min: 1, max: 9 }).parse("1e0"), /"1e0" is not/],
    [() => types.choiceType(["user", "machine"]).parse("Machine"), /"Machine" is not one of user, machine/],
    [() => types.toggleType().parse("maybe"), /"maybe" is not true or false/],
    [() => types.textType("file").parse(""), /^the value is empty; expected file$/],
    [() => types.absolutePathType().parse("a/b"), /"a\/b" is not an absolute path/],
    [() => types.signalNameType().parse("FOO"), /"FOO" is not one of HUP/],
    [() => types.priorityType().parse("1000"), /"1000" is not foreground, background/],
    [() => types.priorityType().parse("toString"), /"toString" is not foreground, background/],
  ];
  for (const [parse, message] of wrong) expect(parse).toThrow(message);
});

test("named priorities and signals are what the design says", () => {
  expect(types.priorityType().parse("foreground")).toBe(100);
  expect(types.priorityType().parse("background")).toBe(200);
  expect(types.priorityType().parse("007")).toBe(7);
  expect(types.priorityType().format(200)).toBe("background");
  expect(types.signalNameType().parse("SIGINT")).toBe("SIGINT");
  expect(types.signalNameType().parse("INT")).toBe("SIGINT");
});

test("a list drops empty parts and spaces, and has something in it", () => {
  expect(types.listType("x").parse("a, b,,c")).toEqual(["a", "b", "c"]);
  for (const written of ["", " , "]) {
    expect(() => types.listType("x").parse(written)).toThrow(/is not a list with at least one x/);
  }
});
