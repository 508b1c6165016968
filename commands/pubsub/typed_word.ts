/** A name as it has to be typed in the command that a sentence proposes. Pure. */
import { quoted } from "../../src/cli/hold/shell_lines.ts";

export function typedWord(name: string): string {
  return /^[\p{L}\p{N}_@%+:,./-]+$/u.test(name) ? name : quoted(name);
}
