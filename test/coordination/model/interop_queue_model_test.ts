import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import {
  type InteropQueueFault,
  type InteropQueueMistake,
  InteropQueueModel,
  type InteropQueueOptions,
} from "./interop_queue_model.ts";

const everyFault: InteropQueueFault[] = ["lost reply", "crash", "gives up", "node deleted"];
const [reader, writer] = [true, false];

const check = (name: string, options: InteropQueueOptions) => exploreAndPrint(name, new InteropQueueModel(options));

describe("a line with others holds", () => {
  const models: Record<string, InteropQueueOptions> = {
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
  const mistakes: [InteropQueueMistake, RegExp, Partial<InteropQueueOptions>?][] = [
    ["decides by a list from before it joined the queue", /hold at once/, { faultsMax: 0 }],
    ["takes the end of its predecessor for its turn", /hold at once/, {
      readers: [writer, writer, writer],
      faults: ["gives up"],
      faultsMax: 1,
    }],
    ["does not settle its writes after a lost reply", orphan],
    ["joins the queue again after a lost reply", orphan],
    ["leaves without settling its writes", orphan],
    ["a writer does not wait for readers", /hold at once/, { readers: [reader, writer], faultsMax: 0 }],
  ];
  test.each(mistakes)("%s", (mistake, found, more = {}) => {
    const options = { readers: [writer, writer], faults: everyFault, faultsMax: 2, mistakes: [mistake], ...more };
    expect(check(mistake, options).violation?.what ?? "nothing").toMatch(found);
  });
});
