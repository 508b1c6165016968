import { describe, expect, test } from "bun:test";
import {
  findInteropRecipe,
  interopNodeNaming,
  type InteropRecipe,
  interopRecipes,
  parseInteropNode,
  readInteropNodeGuid,
} from "../../../../src/coordination/nodes/interop_node_names.ts";
import {
  interopQueueHolders,
  interopQueuePosition,
  parseInteropQueue,
} from "../../../../src/coordination/interop/interop_queue_position.ts";

const guid = (digit: string) => digit.repeat(32);
const name = (recipe: InteropRecipe, digit: string, sequence: number, isShared = false) => {
  const { prefix } = interopNodeNaming(recipe);
  const front = isShared ? prefix.shared?.(guid(digit)) : prefix.exclusive(guid(digit));
  return `${front}${String(sequence).padStart(10, "0")}`;
};
const position = (recipe: InteropRecipe, children: string[], digit: string) =>
  interopQueuePosition({ recipe, path: "/p", children }, guid(digit));

test("names are those that Curator and kazoo write", () => {
  expect(name("curator", "a", 7)).toBe("_c_aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa-lock-0000000007");
  expect(name("curator-rw", "a", 7, true)).toBe("_c_aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa-__READ__0000000007");
  expect(name("curator-rw", "a", 7)).toBe("_c_aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa-__WRIT__0000000007");
  expect(name("kazoo", "a", 7)).toBe(`${guid("a")}__lock__0000000007`);
  expect(name("kazoo", "a", 7, true)).toBe(`${guid("a")}__rlock__0000000007`);
});

test.each(interopRecipes)("%s: a name is read as it was written, by its own recipe only", (recipe) => {
  for (const isShared of [false, true]) {
    if (isShared && interopNodeNaming(recipe).prefix.shared === null) continue;
    const written = name(recipe, "b", 42, isShared);
    expect(parseInteropNode(recipe, written)).toEqual({ name: written, isShared, sequence: 42, guid: guid("b") });
    expect(findInteropRecipe(written)).toBe(recipe);
    expect(readInteropNodeGuid(written)).toBe(guid("b"));
  }
});

test("of others' names the sequence counts, whatever stands before it", () => {
  expect(parseInteropNode("curator", "lock-0000000003")).toMatchObject({ sequence: 3, guid: "" });
  expect(parseInteropNode("curator", `_c_${guid("d")}-lock-0000000003`)).toMatchObject({
    sequence: 3,
    guid: guid("d"),
  });
  expect(parseInteropNode("kazoo", "x__lock__0000000003")).toMatchObject({ sequence: 3, guid: "" });
  for (const stranger of ["locks", "leases", "_c_x-latch-0000000001", "x-123-0000000001", "lock-1", "q", "h"]) {
    expect(findInteropRecipe(stranger)).toBeNull();
  }
});

describe("the position", () => {
  test("the lowest sequence holds, and each waits for the one before", () => {
    const children = [name("curator", "c", 12), name("curator", "a", 3), name("curator", "b", 9)];
    expect(position("curator", children, "a")).toEqual({ kind: "held", node: name("curator", "a", 3) });
    expect(position("curator", children, "c")).toMatchObject({
      kind: "queued",
      watch: name("curator", "b", 9),
      ahead: 2,
    });
    expect(position("curator", children, "e")).toEqual({ kind: "gone" });
  });

  test.each(["curator-rw", "kazoo"] as const)(
    "%s: readers hold together, and wait for the writer before them",
    (recipe) => {
      const children = [
        name(recipe, "a", 1, true),
        name(recipe, "b", 2, true),
        name(recipe, "c", 3),
        name(recipe, "d", 4, true),
      ];
      expect(position(recipe, children, "b").kind).toBe("held");
      expect(position(recipe, children, "c")).toMatchObject({ watch: name(recipe, "b", 2, true) });
      expect(position(recipe, children, "d")).toMatchObject({ watch: name(recipe, "c", 3) });
      const line = parseInteropQueue({ recipe, path: "/p", children });
      expect(interopQueueHolders(line).map(({ sequence }) => sequence)).toEqual([1, 2]);
      expect(interopQueueHolders(line.slice(2)).map(({ sequence }) => sequence)).toEqual([3]);
    },
  );

  test.each(
    [
      ["a stranger", "curator", "x-123-0000000001", "has no name of this recipe"],
      ["kazoo's among Curator's", "curator", name("kazoo", "b", 1), "--recipe kazoo"],
      ["Curator's among kazoo's", "kazoo", name("curator", "b", 1), "--recipe curator"],
      ["a reader among mutexes", "curator", name("curator-rw", "b", 1, true), "--recipe curator-rw"],
    ] as const,
  )("%s is refused: one of the two would not wait", (_, recipe, child, why) => {
    const children = [name(recipe, "a", 0), child];
    const refused = expect(() => position(recipe, children, "a"));
    refused.toThrow(expect.objectContaining({ code: "CONFIG", message: expect.stringContaining(why) }));
  });

  test.each(["2147483647", "-000000001", "-2147483648"])("a counter at its end is refused: %s", (digits) => {
    const children = [name("curator", "a", 5), `lock-${digits}`];
    expect(() => position("curator", children, "a")).toThrow("counter has reached the end");
  });
});
