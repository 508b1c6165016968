/** A store of numbers for the test of storage threads: `together` undoes all additions of a transaction that fails. */
import process from "node:process";
import { BatonError } from "../../src/base/errors.ts";
import { storageError } from "../../src/base/storage/storage_error.ts";
import { StorageThreadCallRunner } from "../../src/base/storage/storage_thread.ts";

let numbers: number[] = [];
let transactions = 0;

const calls = {
  open: (refusal: "CONFIG" | null) => {
    if (refusal !== null) throw new BatonError(refusal, "another format");
    return "opened";
  },
  add: (number: number) => {
    if (number === 13) throw new BatonError("BAD_DATA", "13 is refused");
    if (number === 99) throw new Error("the disk failed");
    port.emit(number);
    return numbers.push(number);
  },
  /** The next transaction finds no room. */
  fillDisk: () => void (isFull = true),
  sum: () => ({ sum: numbers.reduce((sum, number) => sum + number, 0), transactions }),
  /** Ends when `isWaiting` is asked. */
  wait: (refusal: "CONFIG" | null) =>
    new Promise<number>((resolve, reject) => {
      endWait = () => refusal === null ? resolve(numbers.length) : reject(new BatonError(refusal, "refused late"));
    }),
  isWaiting: () => false,
  end: () => process.exit(0),
  close: () => {},
};
let isFull = false;
let endWait = () => {};

export type NumberCalls = typeof calls;

const port: StorageThreadCallRunner<NumberCalls, number> = new StorageThreadCallRunner({
  calls,
  errorOf: (error) => storageError("The store of numbers", error),
  answerWhileBusy: (method) => {
    if (method !== "isWaiting") return undefined;
    endWait();
    return true;
  },
  together: (work) => {
    const before = [...numbers];
    transactions++;
    const result = work();
    if (!isFull) return result;
    isFull = false;
    numbers = before;
    throw new BatonError("STORE_FULL", "the disk is full");
  },
});
