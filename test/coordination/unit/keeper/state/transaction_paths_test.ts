import { expect, test } from "bun:test";
import {
  checkNodePath,
  isServerNodePath,
  parentNodePath,
} from "../../../../../src/coordination/keeper/state/transaction.ts";
import { KeeperOperationError } from "../../../../../src/coordination/keeper/state/operation_error.ts";

test.each(["/", "/a", "/a/b", "/é", "/a b", "/...", "/.a", "/a./b", "/~"])("%j is a path", (path) => {
  expect(() => checkNodePath(path)).not.toThrow();
});

test.each([
  "",
  "a",
  "/a/",
  "//",
  "/a//b",
  "/.",
  "/..",
  "/a/./b",
  "/a/../b",
  "/\u0000",
  "/\u001f",
  "/\u007f",
  "/😀",
  "/\ue000",
  "/\uffff",
])(
  "%j is none",
  (path) => expect(() => checkNodePath(path)).toThrow(KeeperOperationError),
);

test("the parent of a path is what stands before its last slash", () => {
  expect(["/a/b", "/a", "/a/"].map(parentNodePath)).toEqual(["/a", "", "/a"]);
  for (const path of ["", "a", "/a\0"]) expect(() => parentNodePath(path)).toThrow(KeeperOperationError);
});

test("the server's own nodes are special, those below them are not", () => {
  expect(["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"].every(isServerNodePath)).toBe(true);
  expect(isServerNodePath("/zookeeper/quota/a")).toBe(false);
});
