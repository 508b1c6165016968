import { expect, test } from "bun:test";
import { mayWarnOfUnconfirmedCommit } from "../../../../src/base/postgres/primary_connection.ts";

test("a cancelled wait for the standby, and each warning that is not known, leaves a commit unconfirmed", () => {
  for (const routine of ["SyncRepWaitForLSN", "exec_stmt_raise", undefined]) {
    expect([routine, mayWarnOfUnconfirmedCommit({ code: "01000", routine })]).toEqual([routine, true]);
  }
});

test("a database whose numbers of transactions run out confirms its commits, and so do notices of other kinds", () => {
  for (const routine of ["GetNewTransactionId", "GetNewMultiXactId"]) {
    expect([routine, mayWarnOfUnconfirmedCommit({ code: "01000", routine })]).toEqual([routine, false]);
  }
  expect(mayWarnOfUnconfirmedCommit({ code: "00000", routine: "DefineRelation" })).toBe(false);
});
