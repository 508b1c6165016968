import { expect, setDefaultTimeout, test } from "bun:test";
import { explore } from "../../support/explore.ts";
import { mistakes, RegistrationModel } from "./registration_model.ts";

setDefaultTimeout(60_000);

test("a topic that forgets publishers stores nothing twice, whatever is killed, repeated, late or unheard", () => {
  const { states, transitions, violation } = explore(new RegistrationModel({ forgets: 3, faults: 3 }));
  console.log(`${states} states, ${transitions} transitions`);
  expect(violation).toBeNull();
  expect(states).toBeGreaterThan(1000);
});

for (const mistake of mistakes) {
  test(`the model finds a topic or a client that ${mistake}`, () => {
    const { violation } = explore(new RegistrationModel({ mistake, forgets: 2, faults: 2 }));
    expect(violation?.what).toMatch(/is stored twice/);
  });
}
