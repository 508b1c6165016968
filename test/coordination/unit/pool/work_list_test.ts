import { expect, test } from "bun:test";
import { PoolWorkList } from "../../../../src/coordination/pool/work_list.ts";

function bookOf(...items: string[]): PoolWorkList {
  const book = new PoolWorkList();
  book.update(items);
  return book;
}

test("items are tried in the order of the list", () => {
  const book = bookOf("a", "b", "c");
  expect(book.nextWaitingItems(2)).toEqual(["a", "b"]);
  book.markClaimed("a");
  book.markBusy("b");
  expect(book.nextWaitingItems(9)).toEqual(["c"]);
});

test("what waits or runs is not finished; what is busy elsewhere is not this run's", () => {
  const book = bookOf("a", "b", "c", "d");
  book.markClaimed("a");
  book.markBusy("b");
  book.markSkipped("c");
  expect(book.unfinishedCount()).toBe(2);
  book.markStarted();
  book.markEnded("a", "done");
  expect(book.unfinishedCount()).toBe(1);
  book.retryBusy();
  expect(book.unfinishedCount()).toBe(2);
});

test("an item has one turn in a run, however often it is listed", () => {
  const book = bookOf("a", "b");
  book.markClaimed("a");
  book.update(["a", "b"]);
  expect(book.nextWaitingItems(9)).toEqual(["b"]); // a runs
  book.markStarted();
  book.markEnded("a", "failed");
  book.update(["a", "b", "c"]);
  expect(book.nextWaitingItems(9)).toEqual(["b", "c"]);
});

test("what a list names no more is not tried, and has another turn when it is named again", () => {
  const book = bookOf("a", "b");
  book.markClaimed("a");
  book.markStarted();
  book.markEnded("a", "done");
  book.update([]);
  expect(book.isEmpty()).toBe(true);
  book.update(["a"]);
  expect(book.nextWaitingItems(9)).toEqual(["a"]);
});

test("what was busy is tried once more when asked for, and on the next list", () => {
  const book = bookOf("a", "b");
  book.markBusy("a");
  book.markSkipped("b");
  expect(book.isEmpty()).toBe(true);
  book.retryBusy();
  expect(book.nextWaitingItems(9)).toEqual(["a"]);
  book.markBusy("a");
  book.update(["a", "b"]);
  expect(book.nextWaitingItems(9)).toEqual(["a", "b"]);
});

test("what is given back is the next again", () => {
  const book = bookOf("a", "b", "c");
  book.markClaimed("a");
  book.putBack("a");
  expect(book.nextWaitingItems(2)).toEqual(["a", "b"]);
});

test("counts say what became of the items, one that was not begun not counted", () => {
  const book = bookOf("a", "b", "c", "d", "e");
  book.markSkipped("e");
  book.markBusy("d");
  for (const item of ["a", "b", "c"]) {
    book.markClaimed(item);
    book.markStarted();
  }
  book.markEnded("a", "done");
  book.markEnded("b", "failed");
  book.markNotStarted("c");
  expect(book.counts()).toEqual({ claimed: 2, done: 1, failed: 1, busy: 1, skipped: 1, remaining: 1 });
});

test("what is deferred is tried after all others", () => {
  const book = bookOf("a", "b", "c");
  book.defer(["a", "nothing", "b"]);
  expect(book.nextWaitingItems(9)).toEqual(["c", "a", "b"]);
});
