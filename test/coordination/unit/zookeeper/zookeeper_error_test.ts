import { expect, test } from "bun:test";
import { givenUpOperationError, operationResponseError } from "../../../../src/protocols/zookeeper/zookeeper_error.ts";

test("a change whose answer never came may have been done; a read has done nothing", () => {
  expect(givenUpOperationError({ action: "create", path: "/a" }, "CONNECTIONLOSS")).toMatchObject({
    code: "OUTCOME_UNKNOWN",
  });
  const read = givenUpOperationError({ action: "read", path: "/a", reads: true }, "CONNECTIONLOSS");
  expect(read).toMatchObject({ code: "UNREACHABLE", reason: "CONNECTIONLOSS", path: "/a" });
});

test("a refusal by an ACL names the permission, and whose ACL it is", () => {
  const said = (action: string, path: string, index?: number) =>
    operationResponseError({ action, path }, -102, index).message;
  expect(said("create", "/a/b")).toBe(
    'Cannot create "/a/b": the server returned NOAUTH: the ACL of "/a" does not give this session ' +
      "permission c (create); set auth.file to credentials that have it",
  );
  expect(said("delete", "/a", 1)).toContain(
    "(operation 2 of the transaction): the server returned NOAUTH: " +
      'the ACL of "/" does not give this session permission d (delete)',
  );
  expect(said("read", "/a/b")).toContain('the ACL of "/a/b" does not give this session permission r (read)');
  expect(said("setData", "/a/b")).toContain('the ACL of "/a/b" does not give this session permission w (write)');
  expect(said("do", "/a/b")).toContain("NOAUTH: the node's ACL does not allow it");
});
