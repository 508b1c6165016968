/** What errors of SQLite mean for a store. */
import { expect, test } from "bun:test";
import { BatonError } from "../../../../src/base/errors.ts";
import { isDiskFullError } from "../../../../src/base/storage/storage_error.ts";

const sqlite = (message: string, errcode: number) => Object.assign(new Error(message), { errcode });

test.each([
  ["a write that found no space", sqlite("database or disk is full", 13), true],
  ["a log whose shared memory found none", sqlite("disk I/O error", 4874), true],
  ["a flush that failed", sqlite("disk I/O error", 1034), false],
  ["a path with these words", Object.assign(new Error("open '/database or disk is full'"), { syscall: "open" }), false],
  ["the system's own", Object.assign(new Error("no space left"), { code: "ENOSPC", syscall: "write" }), true],
  ["a sentence of baton", new BatonError("IO", "database or disk is full"), false],
])("the disk is full: %s: %#", (_, error, expected) => expect(isDiskFullError(error)).toBe(expected));
