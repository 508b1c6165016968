/** Puts every defect back and lets the judge look; and at the same scenes without it. */
import { errorMessage } from "../../../../../src/base/errors.ts";
import { startKeeperProcess } from "../../../../support/keeper_server.ts";
import { verdictText } from "../judge.ts";
import { DefectiveSource } from "./defective_source.ts";
import { defects, slowDefect } from "./defects.ts";
import { measurePutCost } from "./put_cost.ts";
import { Stage } from "./stage.ts";

export interface DefectResult {
  readonly number: number;
  readonly what: string;
  /** What was seen of the defect; null: it was not caught. */
  readonly caught: string | null;
  /** What was seen without it, and is not to be seen; null: nothing, or nobody looked. */
  readonly alarm: string | null;
}

/** How much dearer a put may be on a full topic: the program's is not, the defect's is by far. */
const dearer = { factor: 4, ms: 100 };

type Open = (command?: readonly string[]) => Promise<Stage>;

/** `controls`: each scene without the defect, too. `parallel`: so many at a time. */
export async function runDefects({ controls, parallel }: {
  readonly controls: boolean;
  readonly parallel: number;
}): Promise<DefectResult[]> {
  const backend = await startKeeperProcess();
  let scenes = 0;
  const open: Open = (command) => Stage.open(backend.servers, `/scene-${++scenes}`, command);
  const works = [
    () => judgeCost(open),
    ...defects.map((defect) => () => judgeDefect(defect, open, controls)),
  ];
  const results: DefectResult[] = [];
  const lane = async () => {
    for (let work = works.shift(); work !== undefined; work = works.shift()) results.push(await work());
  };
  try {
    await Promise.all(Array.from({ length: parallel }, lane));
  } finally {
    await backend.close();
  }
  return results.sort((a, b) => a.number - b.number);
}

async function judgeDefect(defect: typeof defects[number], open: Open, controls: boolean): Promise<DefectResult> {
  const { number, what, changes, scene, breaks } = defect;
  try {
    using source = new DefectiveSource(changes);
    await using defective = await open(source.command);
    const { violations } = defective.judge(await scene(defective) ?? undefined);
    const caught = violations.find(({ invariant }) => breaks.includes(invariant));
    const alarm = controls ? await alarmIn(defect, open) : null;
    return { number, what, caught: caught === undefined ? null : `${caught.invariant}: ${caught.first}`, alarm };
  } catch (thrown) {
    return { number, what, caught: null, alarm: `the scene could not be played: ${errorMessage(thrown)}` };
  }
}

async function alarmIn({ scene }: typeof defects[number], open: Open): Promise<string | null> {
  await using sound = await open();
  const verdict = sound.judge(await scene(sound) ?? undefined);
  return verdict.violations.length === 0 ? null : verdictText(verdict);
}

async function judgeCost(open: Open): Promise<DefectResult> {
  const { number, what, changes } = slowDefect;
  using source = new DefectiveSource(changes);
  await using defective = await open(source.command);
  await using sound = await open();
  const [slow, fast] = [await measurePutCost(defective), await measurePutCost(sound)];
  const isDear = ({ emptyMs, fullMs }: typeof slow) => fullMs > emptyMs * dearer.factor + dearer.ms;
  const text = ({ emptyMs, fullMs }: typeof slow) => `the same puts cost ${emptyMs} ms, and later ${fullMs} ms`;
  return { number, what, caught: isDear(slow) ? text(slow) : null, alarm: isDear(fast) ? text(fast) : null };
}
