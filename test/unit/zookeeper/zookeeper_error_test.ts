import { expect, test } from "bun:test";
import { localError, responseError } from "../../../src/zookeeper/zookeeper_error.ts";

test("a change whose answer never came may have been done; a read has done nothing", () => {
  expect(localError({ action: "create", path: "/a" }, "CONNECTIONLOSS")).toMatchObject({ code: "OUTCOME_UNKNOWN" });
  const read = localError({ action: "read", path: "/a", reads: true }, "CONNECTIONLOSS");
  expect(read).toMatchObject({ code: "UNREACHABLE", reason: "CONNECTIONLOSS", path: "/a" });
});

test("a refusal by an ACL names the permission, and whose ACL it is", () => {
  const said = (action: string, path: string, index?: number) => responseError({ action, path }, -102, index).message;
  expect(said("create", "/a/b")).toBe(
    'Cannot create "/a/b": the server answered NOAUTH: it takes c (create), which the ACL of "/a" does not give to this ' +
      "session; credentials that have it are named with auth.file",
  );
  expect(said("delete", "/a", 1)).toContain(
    '(operation 2 of its transaction): the server answered NOAUTH: it takes d (delete), which the ACL of "/"',
  );
  expect(said("read", "/a/b")).toContain('it takes r (read), which the ACL of "/a/b"');
  expect(said("setData", "/a/b")).toContain('it takes w (write), which the ACL of "/a/b"');
  expect(said("do", "/a/b")).toContain("NOAUTH: the node's ACL does not allow it");
});
