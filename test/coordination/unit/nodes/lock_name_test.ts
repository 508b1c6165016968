import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { validateNodePath } from "../../../../src/protocols/zookeeper/node_path.ts";
import {
  decodeLockName,
  encodeLockName,
  lockNameBytesMax,
  lockPath,
} from "../../../../src/coordination/nodes/node_paths.ts";

describe("a lock's name", () => {
  test("is itself in the tree when ZooKeeper allows it", () => {
    expect(lockPath("nightly").lock).toBe("/baton/locks/nightly");
    expect(encodeLockName("Ärger über 9 °C")).toBe("Ärger über 9 °C");
  });

  test("is encoded where ZooKeeper would refuse it, or see a path", () => {
    expect(encodeLockName("db/nightly")).toBe("db%2Fnightly");
    expect(encodeLockName("a//./b.c/")).toBe("a%2F%2F.%2Fb.c%2F");
    expect(encodeLockName("100%")).toBe("100%25");
    expect(encodeLockName("..")).toBe("%2E%2E");
    expect(encodeLockName("🔒")).toBe("%F0%9F%94%92");
  });

  test("comes back as it was typed, and no two names are one", () => {
    const names = fc.string({ unit: "binary", minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(names, (name) => {
        let encoded: string;
        try {
          encoded = encodeLockName(name);
        } catch {
          return;
        }
        expect(decodeLockName(encoded)).toBe(name);
        validateNodePath(`/${encoded}`);
      }),
      { verbose: true },
    );
  });

  test("is refused with a reason when it cannot be one", () => {
    for (
      const [name, why] of [["", /empty/], ["a\nb", /control/], ["\ud800", /Unicode/], [
        "ü".repeat(128),
        /256 bytes/,
      ]] as const
    ) {
      expect(() => encodeLockName(name)).toThrow(why);
    }
    expect(encodeLockName("x".repeat(lockNameBytesMax))).toHaveLength(lockNameBytesMax);
  });
});

test("the node of another program has a name that can be listed, and is that of no other node", () => {
  const nodes = ["%00", "%zz", "%61", "%0a", "a\nb", "%2f", "a%2Fb", "\ud800", "x\u2028"];
  const names = nodes.map(decodeLockName);
  expect(names).toEqual(["%00", "%zz", "%61", "%0a", "a%0Ab", "%2f", "a/b", "\ufffd", "x%E2%80%A8"]);
  for (const name of names) expect(() => lockPath(name)).not.toThrow();
});
