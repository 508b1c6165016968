/** The command of an item; in a shell command it is one literal text, whatever quotes stand around its place. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import {
  commandForItem,
  insertItemIntoCommand,
  isProgramNamedByItem,
} from "../../../../src/coordination/pool/item_command.ts";

const items = [
  "a b",
  "$(echo ran)",
  "`echo ran`",
  "it's",
  'say "x"',
  "; echo ran #",
  "' ; echo ran; '",
  '" ; echo ran; "',
  "\\",
  "a\\'b",
  "$HOME",
  "{}",
  "*",
  "!x",
];

/** Shell commands that print the item between < and >. */
const lines = [
  `printf '<%s>' {}`,
  `printf '<%s>' "{}"`,
  `printf '<%s>' '{}'`,
  `printf '%s' "<{item}>"`,
  `printf '%s' '<{}>'`,
  `printf '<%s>' "$(printf '%s' {})"`,
  `printf '<%s>' "$(printf '%s' "{}")"`,
  `printf '%s' "<$empty{}$empty>"`,
  `# don't "{}\nprintf '<%s>' "{}" # it's {}`,
  `(printf '<%s>' "{}")`,
  `printf '<%s%s>' {} "$((1-1))" | sed 's/0>$/>/'`,
  `: \\"; printf '<%s>' "{}"`,
  `: "\\""; printf '<%s>' "{}"`,
  '`: "it\'s"`; printf \'<%s>\' "{}"',
  `x=$(date); case "{}" in ?*) printf '<%s>' "{}";; esac`,
  `: a\\ #'
printf "<%s>" "{}"'
printf '<%s>' "{}"`,
];

test("the item is one literal text: bare, in both kinds of quotes, in $(…), after comments and escaped quotes", () => {
  for (const line of lines) {
    for (const item of items) {
      const ended = spawnSync("/bin/sh", ["-c", insertItemIntoCommand(line, item)], { encoding: "utf8" });
      expect([line, item, ended.stdout, ended.stderr]).toEqual([line, item, `<${item}>`, ""]);
    }
  }
});

test("a place in which no quoting is safe is refused, with what to write", () => {
  for (
    const line of ["echo `basename {}`", 'x="`cat {}`"', "cat <<E\n{}\nE", "echo $'{}'", "echo ${}", 'echo "${x:-{}}"']
  ) {
    expect(() => insertItemIntoCommand(line, "a")).toThrow(/^\{\} cannot be used in .* write "\$1" in place of \{\}$/);
  }
  expect(() => insertItemIntoCommand('echo "$(echo $(echo); case x in x) echo {};; esac)"', "a")).toThrow(
    /case inside of/,
  );
});

test("a line without a place stays as it is, and so do an escaped place and one in a comment", () => {
  for (const line of ["cat <<E\n$1\nE", "echo `date`", "echo \\{}", "# {}\necho"]) {
    expect(insertItemIntoCommand(line, "a")).toBe(line);
  }
});

test("the item stands for {} and {item} wherever they are in the command's words", () => {
  expect(commandForItem(["./w", "in/{}", "{item}:{item}", "{x}", "$1"], "a$&b")).toEqual([
    "./w",
    "in/a$&b",
    "a$&b:a$&b",
    "{x}",
    "$1",
  ]);
  expect([isProgramNamedByItem(["./{}.sh"]), isProgramNamedByItem(["./w", "{}"])]).toEqual([true, false]);
});

test("a command without a place for the item gets it as its last argument, unless it reads the variable", () => {
  expect(commandForItem(["./w", "-x"], "a b")).toEqual(["./w", "-x", "a b"]);
  expect(commandForItem(["sh", "-c", 'echo "$BATON_ITEM"'], "a")).toEqual(["sh", "-c", 'echo "$BATON_ITEM"']);
  // Nothing is appended to a shell command: after a semicolon the item would be a command.
  expect(commandForItem(["/bin/sh", "-c", "./w; "], "a'b", true)).toEqual(["/bin/sh", "-c", "./w; ", "sh", "a'b"]);
  expect(commandForItem(["/bin/sh", "-c", "./w {}"], "a'b", true)).toEqual([
    "/bin/sh",
    "-c",
    "./w 'a'\\''b'",
    "sh",
    "a'b",
  ]);
});
