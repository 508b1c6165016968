import { expect, test } from "bun:test";
import { decidePoolAdmission, poolRunNodePrefix } from "../../../../src/coordination/pool/pool_admission.ts";
import { newGuid } from "../../../../src/base/support/guid.ts";

const x = "0123456789abcdef";
const y = "fedcba9876543210";
let sequence = 0;

/** Shown after all before it. */
function run(mark: string, digits = String(sequence++).padStart(10, "0")) {
  const guid = newGuid();
  return { guid, name: poolRunNodePrefix(mark, guid) + digits };
}

const namesOf = (...runs: readonly { readonly name: string }[]) => runs.map(({ name }) => name).reverse();

test("all who have the same settings are admitted, and whatever else lies there is nobody", () => {
  const one = run(x);
  const two = run(x);
  const three = run(x);
  const names = [...namesOf(one, two, three), "q", "h", "", `${y}-${newGuid()}`, `${y}--0000000000`];
  for (const { guid } of [one, two, three]) expect(decidePoolAdmission(names, guid)).toEqual({ kind: "admitted" });
});

test("of two with different settings the later one is refused", () => {
  const one = run(x);
  const two = run(y);
  const three = run(y);
  const names = namesOf(one, two, three);
  expect(decidePoolAdmission(names, one.guid)).toEqual({ kind: "admitted" });
  expect(decidePoolAdmission(names, two.guid)).toEqual({ kind: "refused", by: one.name });
  expect(decidePoolAdmission(names, three.guid)).toEqual({ kind: "refused", by: one.name });
});

test("who is about to step back refuses nobody, and is waited for", () => {
  const one = run(x);
  const wrong = run(y);
  const two = run(x);
  const wrongToo = run(y);
  const names = namesOf(one, wrong, two, wrongToo);
  expect(decidePoolAdmission(names, two.guid)).toEqual({ kind: "waiting", by: wrong.name });
  expect(decidePoolAdmission(names, wrongToo.guid)).toEqual({ kind: "refused", by: one.name });
  expect(decidePoolAdmission(namesOf(one, two, wrongToo), two.guid)).toEqual({ kind: "admitted" });
  // It has found nobody of other settings when it looked: now it stays.
  expect(decidePoolAdmission(namesOf(wrong, two), two.guid)).toEqual({ kind: "refused", by: wrong.name });
});

test("where the server's counter gives no order any more, both give way", () => {
  for (const digits of ["2147483647", "-2147483648"]) {
    const one = run(x, digits);
    const two = run(y, digits);
    for (const { guid } of [one, two]) {
      expect(decidePoolAdmission(namesOf(one, two), guid).kind).toBe("waiting");
      expect(decidePoolAdmission(namesOf(one, two, run(guid === one.guid ? y : x)), guid).kind).not.toBe("admitted");
    }
    expect(decidePoolAdmission(namesOf(one, run(x, digits)), one.guid)).toEqual({ kind: "admitted" });
  }
});

test("who is not there has to come again", () => {
  expect(decidePoolAdmission([], newGuid())).toEqual({ kind: "gone" });
  expect(decidePoolAdmission(namesOf(run(x)), newGuid())).toEqual({ kind: "gone" });
});
