import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import {
  PoolSettingsModel,
  type SettingsFault,
  type SettingsMistake,
  type SettingsModelOptions,
} from "./pool_settings_model.ts";

const faults: SettingsFault[] = ["lost reply", "crash", "expires"];
const two = { settings: ["a", "b"], faults, faultsMax: 2 } as const;
const three = { settings: ["a", "b", "a"], faults, faultsMax: isFullDose ? 2 : 1 } as const;

const check = (name: string, options: SettingsModelOptions) => exploreAndPrint(name, new PoolSettingsModel(options));

describe("jobs of one kind of settings run at a time", () => {
  const models: Record<string, SettingsModelOptions> = {
    "two runs, two faults": two,
    "three runs of two settings": three,
    "three runs of three settings": { ...three, settings: ["a", "b", "c"] },
    "where the counter sticks": { ...three, sticks: true },
  };
  for (const [name, options] of Object.entries(models)) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 300_000);
  }
});

describe("the checker finds a run that", () => {
  const atOnce = /run at once/;
  const mistakes: [SettingsMistake, RegExp, Partial<SettingsModelOptions>?][] = [
    ["looks before it shows its settings", atOnce, { faultsMax: 0 }],
    ["takes whoever is about to step back for gone", atOnce, { ...three, faultsMax: 0 }],
    ["steps back before whoever comes later", /All have stepped back/, { faultsMax: 0 }],
    ["takes its settings back before its jobs have ended", atOnce, { faultsMax: 0 }],
    ["shows its settings in a session of their own", atOnce, { faults: ["expires"] }],
    ["does not settle its writes after a lost reply", /left its settings/],
  ];
  test.each(mistakes)("%s", (mistake, found, more = {}) => {
    expect(check(mistake, { ...two, ...more, mistakes: [mistake] }).violation?.what ?? "nothing").toMatch(found);
  });
});
