/** A first word that is no command: what was probably meant. */
import { expect, test } from "bun:test";
import { complaintAboutFirst } from "../../../commands/unknown_word.ts";

test("a word that nobody knows, a slip, a wrong order", () => {
  const cases: [words: string, says: string][] = [
    ["whoo", 'There is no command "whoo", did you mean "who"?'],
    ["--hepl", 'There is no option "--hepl", did you mean "--help"?'],
    ["-q who x", "The command comes first and its options behind it, as in: baton who -q …"],
    ["--json", 'There is no option "--json"'],
    ["nightly who", 'There is no command "nightly"; the command comes first, as in: baton who nightly'],
    ["nightly", 'There is no command "nightly"'],
  ];
  for (const [words, says] of cases) expect(complaintAboutFirst(words.split(" "), ["who", "lock"])).toBe(says);
});
