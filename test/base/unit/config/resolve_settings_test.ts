import { describe, expect, test } from "bun:test";
import { BatonError } from "../../../../src/base/errors.ts";
import { parseConfigFile } from "../../../support/parse_config_file.ts";
import { resolveSetting, resolveSettings } from "../../../../src/base/config/resolve_settings.ts";
import { setting, type SettingTable } from "../../../../src/base/config/setting.ts";
import { durationType, textType } from "../../../../src/base/config/value_types.ts";

const settings = {
  wait: setting(durationType(), { flag: "-w, --wait", key: "lock.wait", help: "", default: 1000 }),
  only: setting(textType("word"), { flag: "--only", help: "" }),
  hidden: setting(textType("word"), { key: "auth.hidden", help: "", secret: true }),
} satisfies SettingTable;

const user = parseConfigFile(settings, { path: "/user.toml", source: '[lock]\nwait = "3s"\n' });
const system = parseConfigFile(settings, { path: "/system.toml", source: 'lock.wait = "2s"\n' });

describe("flag > variable > user's file > system's file > default", () => {
  const everything = {
    flags: new Map([["wait", "5s"]]),
    env: { BATON_LOCK_WAIT: "4s" },
    files: [user, system],
  };
  const nothing = { flags: new Map<string, string>(), env: {}, files: [] };
  const ladder = [
    [everything, 5000, { kind: "flag", name: "--wait" }],
    [{ ...everything, flags: nothing.flags }, 4000, { kind: "environment", name: "BATON_LOCK_WAIT" }],
    [{ ...nothing, files: [user, system] }, 3000, { kind: "file", name: "/user.toml", line: 2 }],
    [{ ...nothing, files: [system] }, 2000, { kind: "file", name: "/system.toml", line: 1 }],
    [nothing, 1000, { kind: "default" }],
  ] as const;
  for (const [sources, value, origin] of ladder) {
    test(`${origin.kind} gives ${value}`, () => {
      expect(resolveSettings(settings, sources).wait).toBe(value);
      expect(resolveSetting("wait", settings.wait, sources).origin()).toEqual(origin);
    });
  }

  test("an empty variable counts as not set", () => {
    expect(resolveSettings(settings, { ...nothing, env: { BATON_LOCK_WAIT: "" } }).wait).toBe(1000);
  });

  test("a setting without a key is not read from the environment", () => {
    expect(resolveSettings(settings, { ...nothing, env: { BATON_ONLY: "x" } }).only).toBeUndefined();
  });

  test("a bad flag is the caller's mistake, a bad variable the configuration's, and each is named", () => {
    const flag = thrownBy(() => resolveSettings(settings, { ...nothing, flags: new Map([["wait", "5 s"]]) }));
    expect(flag.code).toBe("USAGE");
    expect(flag.message).toStartWith('--wait: "5 s" is not a duration');
    const variable = thrownBy(() => resolveSettings(settings, { ...nothing, env: { BATON_LOCK_WAIT: "5 s" } }));
    expect(variable.code).toBe("CONFIG");
    expect(variable.message).toStartWith('BATON_LOCK_WAIT: "5 s" is not a duration');
  });
});

function thrownBy(run: () => unknown): BatonError {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof BatonError) return thrown;
    throw thrown;
  }
  throw new Error("nothing was thrown");
}
