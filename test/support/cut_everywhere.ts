/** Runs a scenario with a reply cut at every request/reply boundary. */
import type { Cut } from "./fake_zookeeper.ts";

/** More than are ever outstanding at once. */
const pipelineMax = 5;

/** Runs `scenario` uncut to learn how many requests there are, then once for each way to cut. */
export async function cutEverywhere(scenario: (cut?: Cut) => Promise<number>): Promise<void> {
  const requests = await scenario();
  let runs = 0;
  for (let answered = 0; answered < requests; answered++) {
    for (let executed = answered; executed <= answered + pipelineMax; executed++) {
      try {
        await scenario({ answered, executed });
      } catch (cause) {
        throw new Error(`Answered up to request ${answered}, executed up to ${executed}: ${cause}`, { cause });
      }
      runs++;
    }
  }
  console.log(`${runs} cuts in ${requests} requests`);
}
