import { describe, expect, test } from "bun:test";
import { validateNodePath } from "../../../../src/protocols/zookeeper/node_path.ts";
import { Chroot } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";

const good = [
  "/",
  "/a",
  "/a/b",
  "/zookeeper/config",
  "/.a",
  "/a.",
  "/...",
  "/a..b",
  "/é",
  "/日本",
  "/a b",
  "/\uf900x",
  "/\uffefx",
];
const bad = [
  "",
  "a",
  "//",
  "/a/",
  "/a//b",
  "/.",
  "/..",
  "/a/.",
  "/a/../b",
  "/a/./b",
  "/\u0000",
  "/\u001f",
  "/\u007f",
  "/\u009f",
  "/😀",
  "/\ue000",
  "/\uf8ff",
  "/\ufff0",
  "/\uffff",
];

describe("a path", () => {
  test.each(good)("%p is one", (path) => validateNodePath(path));
  test.each(bad)("%p is none", (path) => {
    expect(() => validateNodePath(path)).toThrow(expect.objectContaining({ reason: "BADARGUMENTS", code: "BAD_DATA" }));
  });
  test("of a sequential node may end with a slash, for the number is its name", () => {
    validateNodePath("/a/", true);
    validateNodePath("/", true);
    expect(() => validateNodePath("/a//", true)).toThrow("a name in it is empty");
  });
});

describe("a chroot", () => {
  const chroot = new Chroot("/app/x");
  test("goes before every path and comes off again", () => {
    for (const path of ["/", "/a", "/a/b"]) expect(chroot.toClient(chroot.toServer(path))).toBe(path);
    expect(chroot.toServer("/")).toBe("/app/x");
    expect(chroot.toServer("/", true)).toBe("/app/x/");
    expect(chroot.toServer("/a")).toBe("/app/x/a");
  });
  test("of the root is none", () => {
    expect(new Chroot("/").toServer("/a")).toBe("/a");
    expect(new Chroot("").toClient("/a")).toBe("/a");
  });
});
