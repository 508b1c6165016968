import { expect, test } from "bun:test";
import { BatonError } from "../../../../src/base/errors.ts";
import {
  parsePoolItems,
  poolItemsMax,
  poolPath,
  type PoolPathTemplates,
} from "../../../../src/coordination/pool/pool_path.ts";
import { lockPath } from "../../../../src/coordination/nodes/node_paths.ts";

const newspaper = { component: "/SBOI/{component}", item: "/{component}/{item}" };

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (thrown) {
    return thrown instanceof BatonError ? thrown.code : String(thrown);
  }
  return "nothing";
}

test("by default the locks are those that baton lock COMPONENT and COMPONENT/ITEM take", () => {
  const path = poolPath("import");
  expect(path.component).toEqual(lockPath("import"));
  expect(path.item("a b/ü")).toEqual(lockPath("import/a b/ü"));
  expect(poolPath("import", { root: "/" }).item("x")).toEqual(lockPath("import/x", "/"));
});

test("templates reproduce the paths of the newspaper's components", () => {
  const path = poolPath("SampleComponent", { templates: newspaper });
  expect(path.component.lock).toBe("/SBOI/SampleComponent");
  expect(path.item("B400022028241-RT1").lock).toBe("/SampleComponent/B400022028241-RT1");
  const words = poolPath("SampleComponent", { templates: { ...newspaper, item: "/{component}/B{1}-RT{2}" } });
  expect(words.item("400022028241 1").lock).toBe("/SampleComponent/B400022028241-RT1");
  expect(words.item("400022028241\t1 more").lock).toBe("/SampleComponent/B400022028241-RT1");
});

test("the items behind locks are found again where the template leaves a way back", () => {
  const found = (templates: typeof newspaper, child: string) => poolPath("c", { templates }).items?.itemOf(child);
  expect(poolPath("c").items?.parent).toBe("/baton/locks");
  expect(poolPath("c").items?.itemOf("c%2Fa%2Fb")).toBe("a/b");
  expect(poolPath("c").items?.itemOf("cc%2Fa")).toBeNull();
  expect(poolPath("c").items?.itemOf("c%2F")).toBeNull();
  expect(found(newspaper, "B1-RT2")).toBe("B1-RT2");
  expect(found({ ...newspaper, item: "/x/{item}.lock" }, "a.lock")).toBe("a");
  expect(poolPath("c", { templates: { ...newspaper, item: "/c/B{1}-RT{2}" } }).items).toBeNull();
});

test("a template that cannot be is a failure of the configuration, before anything is locked", () => {
  for (
    const item of [
      "/{component}",
      "/{component}/{batch}",
      "/{item}/{constructor}",
      "{component}/{item}",
      "/{component}//{item}",
    ]
  ) {
    expect(codeOf(() => poolPath("c", { templates: { ...newspaper, item } }).item("a"))).toBe("CONFIG");
  }
  expect(codeOf(() => poolPath("c", { templates: { ...newspaper, component: "/{item}" } }))).toBe("CONFIG");
});

test("what a template may not name is told with what it may", () => {
  const told = (templates: Partial<PoolPathTemplates>) => () =>
    poolPath("c", { templates: { ...newspaper, ...templates } });
  expect(told({ component: "/x/{item}" })).toThrow(
    'Invalid template "/x/{item}" for a component\'s path: {item} is not one of {root} and {component}',
  );
  expect(told({ item: "/x/{batch}" })).toThrow(
    'Invalid template "/x/{batch}" for an item\'s path: ' +
      "{batch} is not one of {root}, {component}, {item} and {1} to {9}",
  );
});

test("an item without the word that its path needs is bad data", () => {
  const path = poolPath("c", { templates: { ...newspaper, item: "/{component}/B{1}-RT{2}" } });
  expect(codeOf(() => path.item("400022028241"))).toBe("BAD_DATA");
});

test("values cannot leave their place in the tree", () => {
  expect(poolPath("c", { templates: newspaper }).item("../../zookeeper/q").lock).toBe("/c/..%2F..%2Fzookeeper%2Fq");
  expect(poolPath("c", { templates: newspaper }).item("..").lock).toBe("/c/%2E%2E");
});

test("one item in each line, in their order, without empty lines and repetitions", () => {
  const read = (text: string) =>
    parsePoolItems(text, { component: "c", path: poolPath("c"), source: "standard input" });
  expect(read("b\n\na\r\n  \nb\nc d\n")).toEqual(["b", "a", "c d"]);
  expect(read("a,b,,a".replaceAll(",", "\n"))).toEqual(["a", "b"]);
  expect(read("")).toEqual([]);
});

test("what cannot be an item is told with its line", () => {
  const refused = (text: string, path = poolPath("c"), more: { readonly unit?: "item" } = {}) => {
    try {
      parsePoolItems(text, { component: "c", path, source: "the list", ...more });
    } catch (thrown) {
      return thrown instanceof BatonError ? `${thrown.code}: ${thrown.message}` : String(thrown);
    }
    return "nothing";
  };
  expect(refused(`a\n${"x".repeat(254)}`)).toMatch(
    /^BAD_DATA: the list, line 2: .* it has 256 bytes, the maximum is 255$/,
  );
  const wordy = poolPath("c", { templates: { ...newspaper, item: "/{component}/B{1}-RT{2}" } });
  const told = 'Item "c" has no word 2, which the template /{component}/B{1}-RT{2} needs';
  expect(refused("a 1\n\nb 2\nc\n", wordy)).toBe(`BAD_DATA: the list, line 4: ${told}`);
  expect(refused("a 1\nc", wordy, { unit: "item" })).toBe(`BAD_DATA: the list, item 2: ${told}`);
  expect(refused("a\tb")).toMatch(/^BAD_DATA: the list, line 1: .*control character$/);
  expect(refused(Array.from({ length: poolItemsMax + 1 }, (_, index) => index).join("\n"))).toBe(
    `BAD_DATA: the list has more than ${poolItemsMax} items, the maximum of a pool`,
  );
});
