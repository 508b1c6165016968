/**
 * Loaded before each file of tests that shares a process with others: a file that has supervised a command has made the
 * process adopt orphans (PR_SET_CHILD_SUBREAPER), and those of later files would stay as zombies.
 */
import { dlopen } from "bun:ffi";
import process from "node:process";

const setChildSubreaper = 36;

if (process.platform === "linux") {
  const { symbols, close } = dlopen("libc.so.6", {
    prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  });
  symbols.prctl(setChildSubreaper, 0, 0, 0, 0);
  close();
}
