import { describe, expect, test } from "bun:test";
import {
  applyTopKey,
  initialTopUi,
  parseTerminalKeys,
  type TopUiState,
} from "../../../../commands/operator/top_keys.ts";

describe("keys", () => {
  test("characters, and the sequences of terminals in both modes", () => {
    expect(parseTerminalKeys("q/é")).toEqual(["q", "/", "é"]);
    expect(parseTerminalKeys("\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~")).toEqual([
      "up",
      "down",
      "pageup",
      "pagedown",
      "home",
      "end",
    ]);
    expect(parseTerminalKeys("\r\x7f\x03\x1a")).toEqual(["enter", "backspace", "^C", "^Z"]);
  });

  test("a single escape is the key, an unknown sequence is no key", () => {
    expect(parseTerminalKeys("\x1b")).toEqual(["escape"]);
    expect(parseTerminalKeys("\x1b[<64;10;5Mq")).toEqual(["q"]);
    expect(parseTerminalKeys("\x00q")).toEqual(["q"]);
  });
});

const size = { lines: 100, room: 20 };

function press(keys: readonly string[], from: TopUiState = initialTopUi): TopUiState {
  return keys.reduce((ui, key) => applyTopKey(ui, key, size).ui, from);
}

test("scrolling stays within the lines", () => {
  expect(press(["down", "down", "up"]).offset).toBe(1);
  expect(press(["up"]).offset).toBe(0);
  expect(press(["pagedown"]).offset).toBe(19);
  expect(press(["end"]).offset).toBe(80);
  expect(press(["end", "down", "pageup"]).offset).toBe(61);
  expect(press(["end", "home"]).offset).toBe(0);
  expect(applyTopKey(initialTopUi, "end", { lines: 3, room: 20 }).ui.offset).toBe(0);
});

test("s goes through the orders and back to the first, r reverses", () => {
  const orders = [1, 2, 3, 4, 5].map((times) => press(Array.from({ length: times }, () => "s")).sort);
  expect(orders).toEqual(["name", "hold", "wait", "age", "kind"]);
  expect(press(["r"]).isReversed).toBe(true);
});

test("a filter is typed with all characters, also with those that are keys; enter keeps it, escape ends it", () => {
  const typed = press(["end", "/", "q", "s", " ", "x", "backspace"]);
  expect(typed).toMatchObject({ filter: "qs ", isTyping: true, offset: 0, sort: "kind" });
  expect(press(["enter"], typed)).toMatchObject({ filter: "qs ", isTyping: false });
  expect(press(["enter", "escape"], typed)).toMatchObject({ filter: "", isTyping: false });
  expect(press(["^U"], typed).filter).toBe("");
  expect(applyTopKey(typed, "^C", size).action).toBe("interrupt");
});

test("keys that the program acts on", () => {
  const actions = ["q", "^C", "^Z", " ", "x", "^D"].map((key) => applyTopKey(initialTopUi, key, size).action);
  expect(actions).toEqual(["quit", "interrupt", "suspend", "refresh", null, "quit"]);
  expect(press(["?"]).isHelp).toBe(true);
  expect(press(["?", "x"]).isHelp).toBe(false);
});
