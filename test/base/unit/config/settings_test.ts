import { retryLimitSettings } from "../../../../src/retry/settings/retry_settings.ts";
import { bodyBytesMax } from "../../../../src/retry/queue/retry_store_limits.ts";
import { expect, test } from "bun:test";
import { lockCommandVariables, messageCommandVariables } from "../../../../src/base/config/child_variables.ts";
import { type Setting, settingVariableName } from "../../../../src/base/config/setting.ts";
import {
  pubsubClientSettings,
  pubsubKeySettings,
  pubsubProxySettings,
  pubsubServerSettings,
  pubsubServiceSettings,
  pubsubStoreSettings,
} from "../../../../src/pubsub/settings/pubsub_settings.ts";
import { keeperSettings, poolSettings } from "../../../../src/coordination/settings/command_settings.ts";
import { keeperTimingDefaults } from "../../../../src/coordination/keeper/state/keeper_limits.ts";
import { retrySettings } from "../../../../src/retry/settings/retry_settings.ts";
import { loadProductSettings } from "../../../../commands/products.ts";
import {
  connectionSecretVariables,
  connectionSettings,
  historySettings,
  lockSettings,
} from "../../../../src/coordination/settings/coordination_settings.ts";

const { all: allSettings } = await loadProductSettings();

const settings: Setting<unknown>[] = Object.values(allSettings);
const variables = settings.flatMap(({ key }) => key === undefined ? [] : [settingVariableName(key)]);

test("no setting reads a variable that baton gives to a child, except where the lock is", () => {
  const given = new Set(Object.keys({ ...lockCommandVariables, ...messageCommandVariables }));
  expect(variables.filter((variable) => given.has(variable))).toEqual(["BATON_SERVERS", "BATON_ROOT"]);
});

test("no two settings share a name, a key or a variable", () => {
  const keys = settings.flatMap(({ key }) => key ?? []);
  expect(new Set(keys).size).toBe(keys.length);
  expect(new Set(variables).size).toBe(variables.length);
  const pubsub = [
    pubsubServerSettings,
    pubsubStoreSettings,
    pubsubProxySettings,
    pubsubKeySettings,
    pubsubServiceSettings,
    pubsubClientSettings,
  ];
  expect(Object.keys(allSettings).length).toBe(
    [
      connectionSettings,
      lockSettings,
      historySettings,
      poolSettings,
      keeperSettings,
      ...pubsub,
      retrySettings,
    ].flatMap((
      table,
    ) => Object.keys(table))
      .length,
  );
});

test("no key is the section of another", () => {
  const keys = settings.flatMap(({ key }) => key ?? []);
  for (const key of keys) expect(keys.filter((other) => other.startsWith(`${key}.`))).toEqual([]);
});

test("the variables that a command does not inherit are those of all secrets", () => {
  const secrets = settings.flatMap(({ key, secret }) =>
    secret === true && key !== undefined ? [settingVariableName(key)] : []
  );
  expect(connectionSecretVariables()).toEqual(secrets);
});

test("a secret has no flag", () => {
  const secrets = settings.filter(({ secret }) => secret === true);
  expect(secrets.length).toBeGreaterThan(0);
  for (const { flag } of secrets) expect(flag).toBeUndefined();
});

test("a default is a value its own type accepts", () => {
  for (const { type, default: value } of settings) {
    if (value !== undefined && value !== null) expect(type.parse(type.format(value))).toEqual(value);
  }
});

test("the defaults and bounds of commands are those of what they set", () => {
  expect(keeperSettings.keeperSessionTimeoutMax.default).toBe(keeperTimingDefaults.sessionTimeoutMaxMs);
});

test("--max-body is at most what a message store takes: more is refused, not lowered", () => {
  const { type } = retryLimitSettings.retryMaxBody;
  expect(type.parse(type.format(bodyBytesMax))).toBe(bodyBytesMax);
  expect(() => type.parse(type.format(bodyBytesMax + 1024))).toThrow("is not a size of at most 256MiB");
});
