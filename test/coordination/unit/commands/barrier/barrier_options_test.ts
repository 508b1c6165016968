import { describe, expect, test } from "bun:test";
import {
  type BarrierCommandOptions,
  barrierCommandSettings,
  type GateCommandOptions,
  readBarrierOptions,
} from "../../../../../commands/coordination/barrier/barrier_options.ts";
import { fakeIo } from "../../../../support/fake_io.ts";
import { callOf } from "../../../../program/unit/commands/call_of.ts";

async function optionsOf(...words: string[]): Promise<BarrierCommandOptions | GateCommandOptions> {
  return readBarrierOptions(await callOf(barrierCommandSettings, words, fakeIo({ env: { HOME: "/nonexistent" } })));
}

describe("what a command line comes to", () => {
  test("a barrier of so many, broken by a loss, waited at for as long as it takes", async () => {
    expect(await optionsOf("agents", "-N", "8", "--", "./agent.sh", "-w")).toMatchObject({
      name: "agents",
      parties: 8,
      command: ["./agent.sh", "-w"],
      values: { onMemberLost: "fail", within: undefined, killAfter: 5000, signal: "SIGTERM" },
    });
    const { values } = await optionsOf(
      "agents",
      "-N3",
      "-w10s",
      "--on-member-lost=wait",
      "--",
      "x",
    ) as BarrierCommandOptions;
    expect([values.within, values.onMemberLost]).toEqual([10_000, "wait"]);
  });

  test("without a command it is a rendezvous", async () => {
    expect(await optionsOf("built", "-N", "4", "-w", "10m", "--status-file", "f")).toMatchObject({
      name: "built",
      parties: 4,
      command: null,
    });
  });

  test("a gate has a name and no command", async () => {
    for (const gate of ["set", "lift", "wait"] as const) {
      expect(await optionsOf("g", `--${gate}`)).toEqual({ name: "g", do: gate });
    }
  });
});

describe("is refused, with a sentence that says what to write", () => {
  const wrong: [words: string[], message: string][] = [
    [["-N", "2", "--", "true"], "needs one name, but none was given"],
    [["a", "b", "-N", "2", "--", "true"], 'needs one name, but "a", "b" were given'],
    [["a", "--", "true"], "needs -N"],
    [["a", "-N", "2", "--"], "has no command after --"],
    [["a", "-N", "2", "--max-hold", "1s"], "--max-hold is for a barrier with a command"],
    [["a", "-N", "2", "--kill-after", "1s"], "--kill-after is for a barrier with a command"],
    [["a", "-N", "1001", "--", "true"], "1000"],
    [["a", "-N", "2", "--wait", "10s", "--", "true"], 'needs one name, but "a", "10s" were given'],
    [["a", "-N", "2", "--wait", "--", "true"], "--wait and -N"],
    [["a", "--set", "--lift"], "--set and --lift cannot be used together"],
    [["a", "--lift", "-w", "1s"], "--lift and -w cannot be used together"],
    [["a", "--set", "--", "true"], "--set and a command cannot be used together"],
    [["a", "--wait", "--reason", "x"], "--wait and --reason cannot be used together"],
    [["a", "--lift", "--kill-after", "1s"], "--lift and --kill-after cannot be used together"],
    [["a", "--wait", "--status-file", "x"], "--wait and --status-file cannot be used together"],
    [["a", "-N", "2", "--json", "--", "true"], "--json is for a gate"],
    [["a", "-N", "2", "--priority", "1", "--", "true"], "There is no option --priority"],
  ];
  for (const [words, message] of wrong) {
    test(words.join(" "), async () => {
      const failure = await optionsOf(...words).then(() => null, (error) => error);
      expect([failure?.code, failure?.message]).toEqual(["USAGE", expect.stringContaining(message)]);
    });
  }
});
