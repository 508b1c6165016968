/** The policy that follows from the settings: the defaults of each name, and what a user's own values change. */
import { expect, test } from "bun:test";
import { retryPolicySettings } from "../../../../src/retry/settings/retry_settings.ts";
import { type ConfigFile, resolveSettings } from "../../../../src/base/config/resolve_settings.ts";
import { readRetryPolicy } from "../../../../src/retry/processor/retry_rules.ts";
import { computeSchedule } from "../../../../src/retry/queue/retry_policy.ts";

const minute = 60_000;
const hour = 60 * minute;

/** `flags`: by the name of the setting; `file`: by the key. */
function policy(flags: Record<string, string>, file: Record<string, string> = {}) {
  const written: ConfigFile = { path: "/etc/x.toml", values: new Map(Object.entries(file)), lineOf: () => null };
  const sources = { flags: new Map(Object.entries(flags)), env: {}, files: [written] };
  return readRetryPolicy(resolveSettings(retryPolicySettings, sources), sources);
}

test("by default a message is tried for about a day: 25 retries, first after at most 15 s, last every 2 h", () => {
  const { delays, triesMax, minTotalMs, maxTotalMs } = computeSchedule(policy({}), 100);
  expect(triesMax).toBe(26);
  expect(delays[1]).toEqual({ minMs: 7500, maxMs: 15_000 });
  expect(delays).toHaveLength(26);
  expect(delays.at(-1)).toEqual({ minMs: hour, maxMs: 2 * hour });
  expect(minTotalMs).toBeWithin(17 * hour, 18 * hour);
  expect(maxTotalMs).toBeWithin(34 * hour, 35 * hour);
});

test("the article's policy is fixed, from the command line and from a file", () => {
  const article = { maxRetries: 10, intervalMs: 3000, backoff: "fixed", jitter: "none" } as const;
  expect(policy({ retryPolicy: "wso2" })).toMatchObject(article);
  expect(policy({}, { "retry.policy": "wso2" })).toMatchObject(article);
  expect(computeSchedule(policy({ retryPolicy: "wso2" }), 100)).toMatchObject({ triesMax: 11, maxTotalMs: 30_000 });
  expect(policy({ retryPolicy: "wso2", retryMaxRetries: "4" })).toMatchObject({ ...article, maxRetries: 4 });
  expect(policy({ retryPolicy: "standard" }, { "retry.policy": "wso2" }).maxRetries).toBe(25);
});

test("a time that the user writes is kept exactly", () => {
  expect(policy({ retryInterval: "1s" })).toMatchObject({ backoff: "fixed", intervalMs: 1000, jitter: "none" });
  expect(policy({}, { "retry.interval": "1s" })).toMatchObject({ backoff: "fixed", jitter: "none" });
  expect(policy({ retryDelays: "1s,1m,6h" })).toMatchObject({ backoff: "list", jitter: "none", maxDelayMs: 6 * hour });
  expect(policy({ retryInterval: "6h" })).toMatchObject({ intervalMs: 6 * hour, maxDelayMs: 6 * hour });
  expect(policy({ retryInterval: "6h", retryMaxDelay: "1h" }).maxDelayMs).toBe(hour);
  expect(policy({ retryInterval: "1s", retryBackoff: "exponential" })).toMatchObject({ jitter: "equal" });
  expect(policy({ retryBackoff: "exponential", retryJitter: "none" })).toMatchObject({ jitter: "none" });
  expect(policy({ retryBackoff: "linear" })).toMatchObject({ intervalMs: 15_000, jitter: "none" });
});

test("a list needs delays, and delays need a list", () => {
  expect(() => policy({ retryBackoff: "list" })).toThrow("list needs --delays");
  expect(() => policy({ retryDelays: "1s", retryBackoff: "fixed" })).toThrow("but the backoff is fixed");
  expect(() => policy({ retryDelays: "1s", retryBackoff: "exponential" })).toThrow("but the backoff is exponential");
  expect(() => policy({ retryDelays: "1s" }, { "retry.backoff": "linear" })).toThrow("but the backoff is linear");
  expect(policy({ retryDelays: "1s" }, { "retry.backoff": "fixed" }).backoff).toBe("list");
  // The command line overrides a list in the configuration file.
  expect(policy({ retryBackoff: "linear" }, { "retry.delays": "1s,2s" }).backoff).toBe("linear");
});
