import { expect, test } from "bun:test";
import { readProcessConnectionsMax } from "../../../../../src/coordination/keeper/lifecycle/start_keeper.ts";

const limits = (soft: string) =>
  `Limit                     Soft Limit           Hard Limit           Units     
Max processes             94879                94879                processes 
Max open files            ${soft.padEnd(20)} 524288               files     
`;

test("some descriptors are kept back, and one connection is always possible", () => {
  expect([limits("1024"), limits("64"), limits("unlimited"), ""].map(readProcessConnectionsMax)).toEqual([
    924,
    1,
    Infinity,
    Infinity,
  ]);
  expect(readProcessConnectionsMax()).toBeGreaterThan(0);
});
