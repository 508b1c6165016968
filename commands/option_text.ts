/** Formats options for help pages and the documentation. */
import { isPerSectionKey, type Setting, type SettingTable, settingVariableName } from "../src/base/config/setting.ts";
import type { HelpEntry } from "./help_page.ts";

/**
 * Returns the flag of a setting with the placeholder of its value, such as `-w, --wait <duration>`; null for a setting
 * without a flag.
 */
export function flagWithPlaceholder(setting: Setting<unknown>): string | null {
  if (setting.flag === undefined) return null;
  const { placeholder } = setting.type;
  return placeholder === "" ? setting.flag : `${setting.flag} <${placeholder}>`;
}

function meaningOf({ help, aliases }: Setting<unknown>): string {
  return aliases === undefined ? help : `${help} (also ${aliases})`;
}

/** Returns the default of a setting as text; empty for switches and for settings without a documented default. */
export function defaultValueText(setting: Setting<unknown>): string {
  if (setting.default !== undefined) return setting.type.placeholder === "" ? "" : setting.type.format(setting.default);
  return setting.unset ?? "";
}

/** Returns the help entry of a setting; null for a setting without a flag. */
export function optionHelpEntry(setting: Setting<unknown>): HelpEntry | null {
  const term = flagWithPlaceholder(setting);
  if (term === null) return null;
  const variable = setting.key === undefined || isPerSectionKey(setting.key) ? null : settingVariableName(setting.key);
  return { term, meaning: meaningOf(setting), standard: defaultValueText(setting), variable };
}

export function optionHelpEntries(settings: SettingTable): HelpEntry[] {
  return Object.values(settings).flatMap((setting) => optionHelpEntry(setting) ?? []);
}

/** Returns the help entries of all settings. A setting without a flag is listed under its key. */
export function settingHelpEntries(settings: SettingTable): HelpEntry[] {
  return Object.values<Setting<unknown>>(settings).map((setting) => ({
    term: flagWithPlaceholder(setting) ?? `${setting.key} = <${setting.type.placeholder}>`,
    meaning: setting.help,
    standard: defaultValueText(setting),
    variable: setting.key === undefined ? null : settingVariableName(setting.key),
  }));
}
