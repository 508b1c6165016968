import { expect, test } from "bun:test";
import { ProxyRequestAdmission } from "../../../../src/pubsub/proxy/request_forwarder.ts";
import { proxyLimitsDefault } from "../../../../src/pubsub/proxy/proxy_limits.ts";
import type { ProxyRequestClient } from "../../../../src/pubsub/proxy/proxy_request.ts";
import { bodyBytesMax } from "../../../../src/pubsub/wire/message_limits.ts";

const client = (): ProxyRequestClient => ({ identity: new Uint8Array([1]), requests: 0, bytes: 0 });

test("what was admitted and given back leaves nothing behind", () => {
  const admission = new ProxyRequestAdmission(proxyLimitsDefault);
  const clients = [client(), client()] as const;
  for (let n = 0; n < 100; n++) expect(admission.admit(clients[n % 2 as 0 | 1], `t${n % 7}`, n)).toBe(null);
  expect([admission.requests, admission.bytes]).toEqual([100, 4950]);
  for (let n = 0; n < 100; n++) admission.release(clients[n % 2 as 0 | 1], `t${n % 7}`, n);
  expect([admission.requests, admission.bytes, ...clients.flatMap((it) => [it.requests, it.bytes])])
    .toEqual(
      [0, 0, 0, 0, 0, 0],
    );
});

test("what is refused is not counted", () => {
  const admission = new ProxyRequestAdmission({ ...proxyLimitsDefault, requestsPerClient: 1 });
  const one = client();
  expect(admission.admit(one, "t", 10)).toBe(null);
  expect(admission.admit(one, "t", 10)).toContain("this connection has 1");
  expect([admission.requests, admission.bytes, one.requests, one.bytes]).toEqual([1, 10, 1, 10]);
});

test("bytes are limited for one connection and for all, but the largest message always has room alone", () => {
  const admission = new ProxyRequestAdmission({ ...proxyLimitsDefault, bytesPerClient: 100, bytesInAll: 150 });
  const one = client();
  const two = client();
  expect(admission.admit(one, "t", bodyBytesMax)).toBe(null);
  expect(admission.admit(one, "t", 1)).toContain("this connection");
  expect(admission.admit(two, "t", 1)).toContain("this proxy");
  admission.release(one, "t", bodyBytesMax);
  expect(admission.admit(two, "t", 100)).toBe(null);
  expect(admission.admit(one, "t", 51)).toContain("this proxy");
  expect(admission.admit(one, "t", 50)).toBe(null);
});
