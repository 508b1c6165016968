import { expect, test } from "bun:test";
import { hostname } from "node:os";
import process from "node:process";
import { defaultProxyId, identifyProxyEndpoints } from "../../../../commands/pubsub/proxy.ts";

test("a proxy's id is made of the address that others dial", () => {
  const own = hostname();
  const ids = {
    "tcp://px1:5001": "px1-5001",
    "tcp://172.17.0.2:5001": `${own}-172.17.0.2-5001`,
    "tcp://[fd00::2]:5001": `${own}-fd00::2-5001`,
    "tcp://127.0.0.1:5001": `${own}-5001`,
    "tcp://localhost:5001": `${own}-5001`,
    "tcp://[::1]:5001": `${own}-5001`,
    "tcp://127.0.0.1:0": `${own}-${process.pid}`,
    "ipc:///run/baton/pubsub": `${own}-pubsub`,
  };
  expect(Object.fromEntries(Object.keys(ids).map((endpoint) => [endpoint, defaultProxyId(endpoint)]))).toEqual(ids);
});

test("its place is the same at the next start, and another one at other endpoints", () => {
  expect(identifyProxyEndpoints(["tcp://px1:5001"])).toBe(identifyProxyEndpoints(["tcp://px1:5001"]));
  expect(identifyProxyEndpoints(["tcp://px1:5001"])).not.toBe(identifyProxyEndpoints(["tcp://px1:5002"]));
});
