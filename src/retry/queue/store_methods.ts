/** Everything that can be asked of an open store, each inside a transaction: the same by a thread and without one. */
import { canBeTried, countDamaged, type Order } from "./due_messages.ts";
import { LetterBook } from "./dead_letter_index.ts";
import type { RetryDatabase } from "./retry_database.ts";
import { RetryEngine, type StoreRules } from "./retry_engine.ts";
import { RetryOperator } from "./retry_admin.ts";
import { SourceBook } from "./ingest_offsets.ts";

/** The methods of the engine and of the operator's part, by their names. */
export function storeMethods(database: RetryDatabase, rules: StoreRules, random?: () => number) {
  const engine = new RetryEngine(database, rules, random);
  const operator = new RetryOperator(database, engine);
  const letters = new LetterBook(database, engine);
  const topics = new SourceBook(database, engine);
  return {
    accept: engine.accept.bind(engine),
    acceptFrom: topics.acceptFrom.bind(topics),
    sourceBegins: topics.sourceBegins.bind(topics),
    register: engine.register.bind(engine),
    renew: engine.renew.bind(engine),
    leave: engine.leave.bind(engine),
    reclaim: engine.reclaim.bind(engine),
    claim: engine.claim.bind(engine),
    finish: engine.finish.bind(engine),
    totals: () => engine.totals.all(),
    whyFull: engine.room.whyFull.bind(engine.room),
    letterThere: engine.letterThere.bind(engine),
    storeName: () => engine.storeName,
    list: operator.list.bind(operator),
    show: operator.show.bind(operator),
    change: operator.change.bind(operator),
    beginRedrive: operator.beginRedrive.bind(operator),
    redrive: operator.redrive.bind(operator),
    redrivable: operator.redrivable.bind(operator),
    purge: operator.purge.bind(operator),
    setPaused: operator.setPaused.bind(operator),
    isPaused: operator.isPaused.bind(operator),
    outlook: operator.outlook.bind(operator),
    forget: operator.forget.bind(operator),
    owedLetters: letters.owedLetters.bind(letters),
    lettersOwed: letters.lettersOwed.bind(letters),
    letterBegun: letters.letterBegun.bind(letters),
    wakeLetters: letters.wakeLetters.bind(letters),
    letterTrouble: letters.letterTrouble.bind(letters),
    reserveLog: () => database.reserveLog(),
    disk: () => database.disk(),
    damages: () => database.damage.count,
    canBeTried: (order: Order) => canBeTried(database, order),
    countDamaged: () => countDamaged(database),
  };
}

export type StoreMethods = ReturnType<typeof storeMethods>;
export type StoreMethod = keyof StoreMethods;

export interface StoreCall {
  readonly id: number;
  readonly method: StoreMethod;
  readonly values: readonly unknown[];
}

/** To the store's thread. A message to a thread costs as much as a message in the store: one takes all that is asked in a turn. */
export type StoreRequest =
  | { readonly kind: "open"; readonly folder: string; readonly rules: StoreRules; readonly mustExist: boolean }
  | { readonly kind: "calls"; readonly calls: readonly StoreCall[] }
  /** Whether another process has written since the last time. */
  | { readonly kind: "look" }
  | { readonly kind: "close" };

export type StoreAnswer =
  | { readonly kind: "returned"; readonly id: number; readonly value: unknown }
  | { readonly kind: "refused"; readonly id: number; readonly code: string; readonly message: string };

/** From it; the answers of one transaction together. */
export type StoreReply =
  | { readonly kind: "opened" | "changed" | "closed" }
  | { readonly kind: "damage"; readonly sentence: string }
  | { readonly kind: "answers"; readonly answers: readonly StoreAnswer[] }
  | { readonly kind: "broken"; readonly code: string; readonly message: string };

/** The store, by a thread or without one. */
export interface AskStore {
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>>;
}
