import { expect, test } from "bun:test";
import { tablePatchesKeptMax, tableRowsMax, UiTableModel } from "../../../../src/operator/ui/table_model.ts";
import type { RatedTopicRow } from "../../../../src/operator/ui/ui_rows.ts";

const topic = (name: string, epoch = 1): RatedTopicRow => {
  return { topic: name, server: "s1", there: true, served: true, epoch, state: "stored", reading: null };
};
const parse = (patch: { text: string } | null) => patch === null ? null : JSON.parse(patch.text) as unknown;

test("a patch has the changed rows only, and a row that was set to the same value is not one", () => {
  const model = new UiTableModel();
  model.set("topics", "a", topic("a"));
  model.set("topics", "b", topic("b"));
  expect(parse(model.takePatch())).toEqual({ topics: { a: topic("a"), b: topic("b") } });
  model.set("topics", "a", topic("a"));
  expect(model.takePatch()).toBeNull();
  model.set("topics", "a", topic("a", 2));
  expect(parse(model.takePatch())).toEqual({ topics: { a: topic("a", 2) } });
});

test("a table that is replaced loses the rows that are missing, and sends the others only if they changed", () => {
  const model = new UiTableModel();
  model.replace("topics", new Map([["a", topic("a")], ["b", topic("b")]]));
  model.takePatch();
  model.replace("topics", new Map([["b", topic("b")], ["c", topic("c")]]));
  expect(parse(model.takePatch())).toEqual({ topics: { a: null, c: topic("c") } });
  expect(model.keys("topics")).toEqual(["b", "c"]);
  expect(model.row("topics", "a")).toBeNull();
});

test("a page that applies the snapshot and all patches after it has the rows of the model", () => {
  const model = new UiTableModel();
  model.set("topics", "__proto__", topic("__proto__"));
  model.takePatch();
  const page = new Map(Object.entries((parse(model.snapshot()) as { topics: object }).topics));
  const { number } = model.snapshot();
  model.set("topics", "a", topic("a"));
  model.takePatch();
  model.set("topics", "__proto__", null);
  model.takePatch();
  for (const patch of model.patchesAfter(number) ?? []) {
    for (const [key, row] of Object.entries((parse(patch) as { topics: object }).topics)) {
      if (row === null) page.delete(key);
      else page.set(key, row);
    }
  }
  expect([...page.keys()]).toEqual([...model.keys("topics")]);
});

test("a page that was away longer than patches are kept needs a snapshot, as does an unknown number", () => {
  const model = new UiTableModel();
  for (let epoch = 1; epoch <= tablePatchesKeptMax + 10; epoch++) {
    model.set("topics", "a", topic("a", epoch));
    model.takePatch();
  }
  expect(model.patchesAfter(model.number)).toEqual([]);
  expect(model.patchesAfter(10)).toHaveLength(tablePatchesKeptMax);
  expect(model.patchesAfter(9)).toBeNull();
  expect(model.patchesAfter(model.number + 1)).toBeNull();
  expect(model.patchesAfter(-1)).toBeNull();
  expect(model.patchesAfter(NaN)).toBeNull();
});

test("the kept patches have a total size, so that large ones do not fill the memory", () => {
  const model = new UiTableModel();
  for (let epoch = 1; epoch <= 10; epoch++) {
    model.set("topics", "a", { ...topic("a", epoch), server: "x".repeat(1 << 20) });
    model.takePatch();
  }
  expect(model.patchesAfter(1)).toBeNull();
  expect(model.patchesAfter(8)).toHaveLength(2);
});

test("a full table refuses further rows, and takes changes and removals of its own", () => {
  const model = new UiTableModel();
  for (let index = 0; index < tableRowsMax; index++) model.set("topics", `t${index}`, topic(`t${index}`));
  expect(model.set("topics", "one more", topic("one more"))).toBe(false);
  expect(model.set("topics", "t0", topic("t0", 2))).toBe(true);
  expect(model.set("topics", "t1", null)).toBe(true);
  expect(model.set("topics", "one more", topic("one more"))).toBe(true);
});
