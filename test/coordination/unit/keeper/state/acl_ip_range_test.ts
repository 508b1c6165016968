import { expect, test } from "bun:test";
import { isAddressInRange, isAddressRange } from "../../../../../src/coordination/keeper/state/acl_check.ts";

test.each([
  ["10.1.2.3", "10.1.2.3", true],
  ["10.1.2.3", "10.1.2.4", false],
  ["10.1.2.3", "10.1.0.0/16", true],
  ["10.2.2.3", "10.1.0.0/15", false],
  ["10.1.2.3", "0.0.0.0/0", true],
  ["::ffff:10.1.2.3", "10.1.2.3", true],
  ["fd00::1", "fd00::/8", true],
  ["fe80::1", "fd00::/8", false],
  ["::1", "0:0:0:0:0:0:0:1", true],
  ["::1", "127.0.0.1", false],
])("%s in %s: %p", (address, range, expected) => expect(isAddressInRange(address, range)).toBe(expected));

test.each(["", "10.1.2", "10.1.2.300", "10.1.2.3/33", "10.1.2.3/x", "1::2::3", ":::", "fd00::/129", "host"])(
  "%p is no address",
  (range) => expect(isAddressRange(range)).toBe(false),
);
