import { expect, test } from "bun:test";
import { execInsteadOfShell } from "../../../../commands/pubsub/message_command.ts";

test.each([
  "./handle",
  "./handle --fast $BATON_MESSAGE_ID",
  " /opt/app/bin/handle 'a b' \"$x\" <in >>out\n",
  "~/bin/handle",
  '"$HOME/bin/handle" x',
  "${dir}/handle",
  "bin/handle # for now",
])("the shell becomes the program: %j", (line) => expect(execInsteadOfShell(line)).toBe(`exec ${line.trim()}`));

test.each([
  "handle", // may be a word of the shell
  "cd /tmp",
  "A=/tmp ./handle",
  "./a; ./b",
  "./a\n./b",
  "./a && ./b",
  "./a | ./b",
  "./a &",
  "./a 2>&1",
  "./a $(./b)",
  "./a `./b`",
  "! ./a",
  "(./a)",
  "{ ./a; }",
  "if ./a; then ./b; fi",
  "while ./a\ndo ./b\ndone",
  "exec ./a",
  "",
])("the shell stays: %j", (line) => expect(execInsteadOfShell(line)).toBe(line));
