import { describe, expect, test } from "bun:test";
import { isFullDose } from "../support/dose.ts";
import { explore } from "./explore.ts";
import { InteropQueueModel, type LineFault, type LineMistake, type LineModelOptions } from "./interop_queue_model.ts";

const everyFault: LineFault[] = ["lost reply", "crash", "gives up", "node deleted"];
const [reader, writer] = [true, false];

function check(name: string, options: LineModelOptions) {
  const result = explore(new InteropQueueModel(options));
  console.log(`model: ${name}: ${result.states} states, ${result.transitions} transitions`);
  return result;
}

describe("a line with others holds", () => {
  const models: Record<string, LineModelOptions> = {
    "two writers, two faults": { readers: [writer, writer], faults: everyFault, faultsMax: 2 },
    "a reader and a writer, two faults": { readers: [reader, writer], faults: everyFault, faultsMax: 2 },
    "three writers": { readers: [writer, writer, writer], faults: everyFault, faultsMax: isFullDose ? 2 : 1 },
    "two readers and a writer": {
      readers: [reader, writer, reader],
      faults: everyFault,
      faultsMax: isFullDose ? 2 : 1,
    },
  };
  for (const [name, options] of Object.entries(models)) {
    test(name, () => {
      const { violation } = check(name, options);
      expect(violation).toBeNull();
    }, 300_000);
  }
});

describe("the checker finds a contender that", () => {
  const orphan = /orphan|waits for what nobody holds|come to an end/;
  const mistakes: [LineMistake, RegExp, Partial<LineModelOptions>?][] = [
    ["decides by a list from before it stood in line", /hold at once/, { faultsMax: 0 }],
    ["takes the end of its predecessor for its turn", /hold at once/, {
      readers: [writer, writer, writer],
      faults: ["gives up"],
      faultsMax: 1,
    }],
    ["does not sync after a lost reply", orphan],
    ["stands in line again after a lost reply", orphan],
    ["leaves without a sync", orphan],
    ["a writer does not wait for readers", /hold at once/, { readers: [reader, writer], faultsMax: 0 }],
  ];
  test.each(mistakes)("%s", (mistake, found, more = {}) => {
    const options = { readers: [writer, writer], faults: everyFault, faultsMax: 2, mistakes: [mistake], ...more };
    expect(check(mistake, options).violation?.what ?? "nothing").toMatch(found);
  });
});
