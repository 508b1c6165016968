/** The message for a first argument that is no command. */
import { expect, test } from "bun:test";
import { unknownCommandMessage } from "../../../../commands/command_line.ts";

test("an unknown word, a typing error, a wrong order", () => {
  const cases: [words: string, says: string][] = [
    ["whoo", 'There is no command "whoo", did you mean "who"?'],
    ["--hepl", 'There is no option "--hepl", did you mean "--help"?'],
    ["-n lock x", "-n is an option of single commands, which follows the command, as in: baton lock -n …"],
    ["--force", 'There is no option "--force"'],
    ["nightly who", 'There is no command "nightly"; the command comes first, as in: baton who nightly'],
    ["nightly", 'There is no command "nightly"'],
  ];
  for (const [words, says] of cases) expect(unknownCommandMessage(words.split(" "), ["who", "lock"])).toBe(says);
});
