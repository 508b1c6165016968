import { expect, test } from "bun:test";
import { parseKeeperLimits } from "../../../../../src/coordination/keeper/lifecycle/limits_flag.ts";

test("limits are named as in the keeper's table, sizes with a unit", () => {
  expect(parseKeeperLimits()).toEqual({});
  expect(parseKeeperLimits(["nodesMax=2000000", "dataBytesMax=1GiB", "frameBytesMax=4000000"])).toEqual({
    nodesMax: 2_000_000,
    dataBytesMax: 2 ** 30,
    frameBytesMax: 4_000_000,
  });
});

test("times are set by the names of startKeeper", () => {
  expect(parseKeeperLimits(["tickTimeMs=100", "containerCheckMs=200"])).toEqual({
    tickTimeMs: 100,
    containerCheckMs: 200,
  });
});

test.each([
  ["sessionTimeoutMaxMs=1", 'there is no limit "sessionTimeoutMaxMs"'],
  ["nodeMax=1", 'there is no limit "nodeMax", did you mean "nodesMax"?'],
  ["toString=1", 'there is no limit "toString"'],
  ["nodesMax", '"nodesMax=" is not a number above 0; example: --limit nodesMax=1000'],
  ["nodesMax=0", "is not a number above 0"],
  ["nodesMax=-1", "is not a number above 0"],
  ["nodesMax=1KiB", "is not a number above 0"],
  ["dataBytesMax=1GB", "example: --limit dataBytesMax=64MiB"],
  ["dataBytesMax=9999999999999", "is not a number above 0"],
])("%s is a mistake", (written, says) => {
  expect(() => parseKeeperLimits([written])).toThrow(says);
});
