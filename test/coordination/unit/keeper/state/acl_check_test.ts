import { describe, expect, test } from "bun:test";
import {
  digestIdentityId,
  isPermittedByAcl,
  maskAclDigests,
  resolveAcl,
} from "../../../../../src/coordination/keeper/state/acl_check.ts";
import { KeeperOperationError } from "../../../../../src/coordination/keeper/state/operation_error.ts";
import { aclPermission } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Acl } from "../../../../../src/protocols/zookeeper/jute/zookeeper_records.ts";

const acl = (scheme: string, id: string, perms: number = aclPermission.all): Acl => ({ perms, id: { scheme, id } });

test("a digest id is the one the real server makes", () => {
  expect(digestIdentityId("u:p")).toBe("u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=");
  expect(digestIdentityId("nobody")).toStartWith("nobody:");
});

test("`auth` stands for the digests of the connection, each once", () => {
  const own = [{ scheme: "ip", id: "127.0.0.1" }, { scheme: "digest", id: "u:x" }];
  expect(resolveAcl([acl("auth", ""), acl("digest", "u:x")], own)).toEqual([acl("digest", "u:x")]);
});

test.each([[[]], [null], [[acl("world", "x")]], [[acl("auth", "")]], [[acl("sasl", "x")]], [[acl("digest", "u")]], [[
  acl("ip", "300.1.1.1"),
]]])(
  "%j names nobody",
  (list) => expect(() => resolveAcl(list, [])).toThrow(KeeperOperationError),
);

describe("permission", () => {
  test("is given to the identity it names", () => {
    const list = [acl("digest", "u:x", aclPermission.read), acl("ip", "10.0.0.0/8", aclPermission.write)];
    const user = [{ scheme: "digest", id: "u:x" }];
    expect(isPermittedByAcl(list, aclPermission.read, user)).toBe(true);
    expect(isPermittedByAcl(list, aclPermission.write, user)).toBe(false);
    expect(isPermittedByAcl(list, aclPermission.write, [{ scheme: "ip", id: "10.200.3.4" }])).toBe(true);
    expect(isPermittedByAcl(list, aclPermission.write, [{ scheme: "ip", id: "11.0.0.1" }])).toBe(false);
    expect(isPermittedByAcl(list, aclPermission.admin, [{ scheme: "super", id: "" }])).toBe(true);
  });
});

test("a digest is hidden from whoever may not change it", () => {
  expect(maskAclDigests([acl("digest", "u:secret")])).toEqual([acl("digest", "u:x")]);
});
