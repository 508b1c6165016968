import { expect, test } from "bun:test";
import { PoolBook } from "../../../../src/coordination/pool/work_list.ts";

function bookOf(...items: string[]): PoolBook {
  const book = new PoolBook();
  book.read(items);
  return book;
}

test("items are tried in the order of the list", () => {
  const book = bookOf("a", "b", "c");
  expect(book.next(2)).toEqual(["a", "b"]);
  book.take("a");
  book.busy("b");
  expect(book.next(9)).toEqual(["c"]);
});

test("an item has one turn in a run, however often it is listed", () => {
  const book = bookOf("a", "b");
  book.take("a");
  book.read(["a", "b"]);
  expect(book.next(9)).toEqual(["b"]); // a runs
  book.begun();
  book.ended("a", "failed");
  book.read(["a", "b", "c"]);
  expect(book.next(9)).toEqual(["b", "c"]);
});

test("what a list names no more is not tried, and has another turn when it is named again", () => {
  const book = bookOf("a", "b");
  book.take("a");
  book.begun();
  book.ended("a", "done");
  book.read([]);
  expect(book.isDry()).toBe(true);
  book.read(["a"]);
  expect(book.next(9)).toEqual(["a"]);
});

test("what was busy is tried once more when asked for, and on the next list", () => {
  const book = bookOf("a", "b");
  book.busy("a");
  book.known("b");
  expect(book.isDry()).toBe(true);
  book.again();
  expect(book.next(9)).toEqual(["a"]);
  book.busy("a");
  book.read(["a", "b"]);
  expect(book.next(9)).toEqual(["a", "b"]);
});

test("what is given back is the next again", () => {
  const book = bookOf("a", "b", "c");
  book.take("a");
  book.giveBack("a");
  expect(book.next(2)).toEqual(["a", "b"]);
});

test("counts say what became of the items, one that was not begun not counted", () => {
  const book = bookOf("a", "b", "c", "d", "e");
  book.known("e");
  book.busy("d");
  for (const item of ["a", "b", "c"]) {
    book.take(item);
    book.begun();
  }
  book.ended("a", "done");
  book.ended("b", "failed");
  book.unbegun("c");
  expect(book.counts()).toEqual({ taken: 2, done: 1, failed: 1, busy: 1, known: 1, left: 1 });
});

test("what is deferred is tried after all others", () => {
  const book = bookOf("a", "b", "c");
  book.defer(["a", "nothing", "b"]);
  expect(book.next(9)).toEqual(["c", "a", "b"]);
});
