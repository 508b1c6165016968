import { expect, test } from "bun:test";
import {
  formatHolderNodeInfo,
  type HolderNodeInfo,
  parseHolderNodeInfo,
  unknownHolder,
} from "../../../../src/coordination/nodes/holder_info.ts";

const parse = (text: string) => parseHolderNodeInfo(new TextEncoder().encode(text));
const unknown: HolderNodeInfo = { ...unknownHolder, sinceMs: 0, sessionTimeoutMs: 0, revoke: null };

test("what was written is read again", () => {
  const info = {
    host: "db1",
    pid: 812,
    user: "root",
    argv0: "backup.sh",
    reason: "nightly",
    sinceMs: 1_700_000_000_000,
    sessionTimeoutMs: 10_000,
    revoke: { by: "ann", reason: "" },
  };
  expect(parseHolderNodeInfo(formatHolderNodeInfo(info))).toEqual(info);
});

test("what cannot be understood is left empty, whoever wrote it: it is shown, and printed as a date", () => {
  for (const text of ["", "x", "[]", "null", '"a"', "7"]) expect(parse(text)).toEqual(unknown);
  for (const sinceMs of ["1e300", "-1", '"now"', "3e14", "null"]) {
    expect(parse(`{"sinceMs":${sinceMs},"pid":-5,"sessionTimeoutMs":1.5,"host":5,"revoke":7}`)).toEqual(unknown);
  }
});
