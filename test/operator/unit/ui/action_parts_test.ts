import { expect, test } from "bun:test";
import { actionParts } from "../../../../src/operator/ui/action_parts.ts";

test("the first command of an action is copied without the words around it", () => {
  const cases: [action: string, parts: ReturnType<typeof actionParts>][] = [
    ["stop that process", { words: "stop that process", command: null, more: "" }],
    ["baton doctor", { words: "", command: "baton doctor", more: "" }],
    ["see why: baton history a; then run it", {
      words: "see why: ",
      command: "baton history a",
      more: "; then run it",
    }],
    ["baton history 'a; it'\\''s'; x", { words: "", command: "baton history 'a; it'\\''s'", more: "; x" }],
  ];
  for (const [action, parts] of cases) expect(actionParts(action)).toEqual(parts);
});
