/** Text of settings and commands for help pages and for the generated documentation. */
import { isPerName, type Setting, type SettingTable, variableOf } from "../src/config/setting.ts";
import { type Command, commonSettings } from "./command.ts";

/** The width of help pages, in columns. */
const columns = 100;

export function commandHelp(command: Command): string {
  const lines = [...usageLines(command), ""];
  for (const paragraph of command.details) lines.push(...wrap(paragraph, columns), "");
  lines.push("Options:", ...optionLines({ ...command.settings, ...commonSettings }), "", "Examples:");
  for (const [line, does] of command.examples) lines.push(`  ${line}`, `      ${does}`);
  return lines.join("\n") + "\n";
}

/** One line; or one line for each form if a single line would be too long. */
function usageLines({ name, usage }: Pick<Command, "name" | "usage">): string[] {
  const line = `baton ${name} ${usage}`.trimEnd();
  return line.length <= columns ? [line] : usage.split(" | ").map((form) => `baton ${name} ${form}`);
}

/** The flag with its value: `-w, --wait <duration>`; null for a setting without a flag. */
export function flagForm(setting: Setting<unknown>): string | null {
  if (setting.flag === undefined) return null;
  const { placeholder } = setting.type;
  return placeholder === "" ? setting.flag : `${setting.flag} <${placeholder}>`;
}

/** The meaning of a setting, and the other forms of its flag. */
export function meaningOf({ help, aliases }: Setting<unknown>): string {
  return aliases === undefined ? help : `${help} (also ${aliases})`;
}

/** The default of a setting; empty for switches and for settings without a documented default. */
export function defaultForm(setting: Setting<unknown>): string {
  if (setting.default !== undefined) return setting.type.placeholder === "" ? "" : setting.type.format(setting.default);
  return setting.unset ?? "";
}

function optionLines(settings: SettingTable): string[] {
  const lines: string[] = [];
  for (const setting of Object.values(settings)) {
    const form = flagForm(setting);
    if (form === null) continue;
    const short = form.startsWith("--") ? `    ${form}` : form;
    const ending = defaultForm(setting);
    const variable = setting.key === undefined || isPerName(setting.key) ? "" : ` [${variableOf(setting.key)}]`;
    const help = `${meaningOf(setting)}${ending === "" ? "" : ` (default: ${ending})`}${variable}`;
    const [first = "", ...more] = wrap(help, columns - 34);
    if (short.length > 30) lines.push(`  ${short}`, `${" ".repeat(34)}${first}`);
    else lines.push(`  ${short.padEnd(32)}${first}`);
    lines.push(...more.map((line) => " ".repeat(34) + line));
  }
  return lines;
}

/** Wraps text at `width`; only a longer word gives a longer line. */
export function wrap(paragraph: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
