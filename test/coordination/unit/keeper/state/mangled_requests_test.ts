/**
 * Requests whose bytes make little or no sense: each is answered or refused, and leaves a state that holds together.
 */
import { expect, test } from "bun:test";
import { ByteReader, ByteWriter } from "../../../../../src/base/wire/bytes.ts";
import { BatonError } from "../../../../../src/base/errors.ts";
import {
  createFlag,
  multiOperationCode,
  multiReadOperationCode,
  zooKeeperOperations,
} from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { openAcl } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { multiRequestCodec } from "../../../../../src/protocols/zookeeper/jute/multi_request.ts";
import { seededRandom, testSeed } from "../../../../support/random.ts";
import { StateDriver } from "./state_driver.ts";

const seed = testSeed();
const rounds = 20_000;

/** A body that some operation would understand. */
function sensible(random: () => number): Uint8Array {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const path = pick(["/", "", "/a", "/a/b", "/a/b/c", "/zookeeper", "x", "/\u0000", "/é", "//", "/a/"]);
  const writer = new ByteWriter();
  const create = { path, data: new Uint8Array(3), acl: [...openAcl], flags: pick(Object.values(createFlag)) };
  pick<() => void>([
    () => zooKeeperOperations.create.request.write(writer, create),
    () => zooKeeperOperations.createTtl.request.write(writer, { ...create, ttl: pick([0n, -1n, 5n, 1n << 50n]) }),
    () => zooKeeperOperations.setData.request.write(writer, { path, data: null, version: pick([-1, 0, 1]) }),
    () => zooKeeperOperations.setAcl.request.write(writer, { path, acl: pick([null, [], [...openAcl]]), version: -1 }),
    () => zooKeeperOperations.delete.request.write(writer, { path, version: -1 }),
    () => zooKeeperOperations.exists.request.write(writer, { path, watch: random() < 0.5 }),
    () => zooKeeperOperations.addWatch.request.write(writer, { path, mode: pick([0, 1, 2]) }),
    () => multiRequestCodec.write(writer, [{ type: "create", ...create }, { type: "check", path, version: 0 }]),
    () =>
      multiRequestCodec.write(writer, [{ type: "getData", path, watch: false }, {
        type: "getChildren",
        path,
        watch: true,
      }]),
  ])();
  return writer.finish().slice();
}

function mangled(bytes: Uint8Array, random: () => number): Uint8Array {
  const at = () => Math.floor(random() * bytes.byteLength);
  const dice = random();
  if (dice < 0.3) return bytes;
  if (dice < 0.5) return bytes.subarray(0, at());
  const changed = bytes.slice();
  for (let count = 1 + Math.floor(random() * 3); count > 0; count--) changed[at()] = Math.floor(random() * 256);
  return changed;
}

test(`whatever bytes come, the state stays whole [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  const driver = new StateDriver();
  const { session } = driver.client();
  const codes = [
    ...Object.values(zooKeeperOperations).map(({ code }) => code),
    multiOperationCode,
    multiReadOperationCode,
    13,
    16,
    20,
    102,
    999,
  ]
    .filter((code) => code !== zooKeeperOperations.closeSession.code);
  const { state } = driver;
  for (let round = 0; round < rounds; round++) {
    const code = codes[Math.floor(random() * codes.length)] as number;
    const before = state.zxid;
    try {
      const reader = new ByteReader(mangled(sensible(random), random));
      const answer = state.apply(code, reader, { session, identities: [], watcher: "w" });
      answer.write?.(new ByteWriter());
    } catch (thrown) {
      if (!(thrown instanceof BatonError && thrown.code === "PROTOCOL")) throw thrown;
    }
    expect(state.zxid - before).toBeLessThanOrEqual(1n);
  }
  const nodes = [...state.tree.nodes];
  for (const { path, children } of nodes) {
    if (path !== "/") expect(state.tree.get(path.slice(0, path.lastIndexOf("/")) || "/")).toBeDefined();
    for (const name of children ?? []) expect(state.tree.get(`${path === "/" ? "" : path}/${name}`)).toBeDefined();
  }
  expect(nodes.length).toBeGreaterThan(10);
});
