/** The message for a first argument that is no command. */
import { expect, test } from "bun:test";
import { unknownCommandMessage } from "../../../../commands/program/unknown_command.ts";

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

test("words of other programs, and the second words of commands, name the commands that are sought", () => {
  const names = [
    "lock",
    "release",
    "retry-processor dlq",
    "retry-processor run",
    "retry-processor serve",
    "pubsub serve",
  ];
  const says = (words: string) => unknownCommandMessage(words.split(" "), names);
  for (const word of ["mutex", "semaphore", "unlock", "run", "status", "queue", "put", "get", "redrive"]) {
    expect(says(word)).toMatch(new RegExp(`^There is no command "${word}"; did you mean: baton \\w+`));
  }
  expect(says("dlq ls")).toBe('There is no command "dlq"; did you mean: baton retry-processor dlq');
  expect(says("serve")).toBe(
    'There is no command "serve"; did you mean: baton retry-processor serve or baton pubsub serve',
  );
});
