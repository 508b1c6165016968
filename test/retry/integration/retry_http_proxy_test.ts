/** What a client of `serve` is told when its request cannot be stored, by the reason. */
import { expect, test } from "bun:test";
import { BatonError, type ErrorCode } from "../../../src/base/errors.ts";
import { HttpClient } from "../../../src/base/http/http_client.ts";
import { RetryHttpProxy } from "../../../src/retry/http_proxy/retry_http_proxy.ts";
import { systemClock } from "../../../src/base/support/clock.ts";

/** The response of a proxy that may not ask its backend, and whose store fails with this code. */
async function responseWhenStoreFails(code: ErrorCode): Promise<{ status: number; text: string }> {
  using client = new HttpClient({ clock: systemClock(), env: {} });
  const proxy = new RetryHttpProxy({
    client,
    backend: { origin: "http://127.0.0.1:1", path: "/" },
    follow: false,
    store: { call: () => Promise.reject(new BatonError(code, "the disk")) },
    ...{ rules: { retryOn: [], noRetryOn: [] }, timeoutMs: 1000, bodyBytesMax: 1000, bodyTimeoutMs: 10_000 },
    ...{ memoryBytes: 2000, callsMax: 0, connectionsMax: 10, storedStatus: null, clock: systemClock() },
    onStored: () => {},
    onFailure: () => {},
    onCut: () => {},
  });
  const address = await proxy.listen({ kind: "tcp", host: "127.0.0.1", port: 0 });
  if (address.kind !== "tcp") throw new Error("no port");
  try {
    const response = await fetch(`http://127.0.0.1:${address.port}/`, { method: "POST", body: "order" });
    return { status: response.status, text: await response.text() };
  } finally {
    await proxy.close(AbortSignal.abort());
  }
}

test.each(
  [
    ["STORE_FULL", "NOT STORED", "nothing was written"],
    ["LOCK_BUSY", "NOT STORED", "nothing was written"],
    ["IO", "MAY BE STORED", "the disk may have what was written before it failed"],
    ["OUTCOME_UNKNOWN", "MAY BE STORED", "a database may have executed what it did not answer"],
  ] as const,
)("a store that fails with %s: %s, because %s", async (code, told) => {
  const { status, text } = await responseWhenStoreFails(code);
  expect({ status, text }).toEqual({ status: 503, text: expect.stringContaining(told) });
});
