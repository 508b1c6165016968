/**
 * Defines the settings and arguments of `baton pubsub client`. The client ID stands before the operation, or comes from
 * --id.
 */
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { progressSettings } from "../../src/base/terminal/progress.ts";
import { choiceType, durationType, integerType, textType } from "../../src/base/config/value_types.ts";
import type { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import type { CommandCall } from "../command.ts";
import { BatonError } from "../../src/base/errors.ts";
import { didYouMean, nearestWord } from "../../src/base/support/did_you_mean.ts";
import { findMisplacedFlag, type OperationsOfFlag } from "./misplaced_flag.ts";
import { clientConnectionSettings } from "./open_client.ts";

export const pubsubClientCommandSettings = {
  count: flagSetting("-n, --count", integerType("count", { min: 1, max: 1_000_000_000 }), {
    help: "get, peek: maximum number of messages",
    unset: "1; no limit with --follow and --until-empty",
  }),
  wait: flagSetting("-w, --wait", durationType(), { help: "get: wait this long for a message", default: 0 }),
  follow: toggleSetting("-f, --follow", { help: "get: continue until a signal" }),
  untilEmpty: toggleSetting("--until-empty", {
    help: "get: get all waiting messages, then stop",
  }),
  outDir: flagSetting("--out-dir", textType("folder"), {
    once: true,
    help: "get: write each message to a file named after its ID, exactly once even if baton is killed",
  }),
  exec: flagSetting("--exec", textType("line"), {
    once: true,
    help: "get: run this shell command for each message, with the message as stdin; exit 0 acknowledges it",
  }),
  ack: flagSetting("--ack", choiceType(["auto", "manual"]), {
    help: "get: manual: deliver a message again until `ack TOPIC ID` acknowledges it",
    default: "auto",
  }),
  lines: toggleSetting("--lines", {
    basic: true,
    help:
      "put: put each line of stdin or PATH as a message; get: a newline follows each message, also a single one, and " +
      "on the stdin of --exec",
  }),
  null: toggleSetting("-0, --null", {
    help: "put: split messages at NUL; get: NUL follows each message, also on the stdin of --exec",
  }),
  files: toggleSetting("--files", {
    help: "put: put each PATH as one message",
  }),
  msgId: flagSetting("--msg-id", textType("key"), {
    help: "put: your own message ID; a message with the same ID and content is stored once",
  }),
  resume: toggleSetting("--resume", {
    help:
      "put: first send the messages with an unknown outcome again, then continue the input where it was interrupted, " +
      "over rotations (65 if a part is missing); a last line that has no newline yet is left to a later call",
  }),
  json: toggleSetting("--json", {
    help: "print the result as JSON; get: one line for each message; put: also whether the topic has subscribers",
  }),
  ...progressSettings,
  ...clientConnectionSettings,
} satisfies SettingTable;

export type PubsubClientCall = CommandCall<typeof pubsubClientCommandSettings>;

/** The operations of a client, and their arguments. */
const operationWords = {
  subscribe: ["TOPIC"],
  unsubscribe: ["TOPIC"],
  get: ["TOPIC"],
  put: ["TOPIC", "[PATH]…"],
  ack: ["TOPIC", "MESSAGE-ID"],
  pending: ["TOPIC"],
  peek: ["TOPIC"],
  seek: ["TOPIC", "start|end|MESSAGE-ID"],
  topics: [],
  info: ["TOPIC"],
} as const;

export type ClientOperationName = keyof typeof operationWords;

export const pubsubClientOperations = Object.keys(operationWords) as readonly ClientOperationName[];

export interface PubsubClientArguments {
  readonly id: string;
  readonly operation: ClientOperationName;
  /** The topic of the operation; empty for `topics`, which needs none. */
  readonly topic: string;
  readonly rest: readonly string[];
}

/** Flags that only some operations have, by setting name. */
const flagOperations: Readonly<Record<string, OperationsOfFlag & { readonly of: readonly ClientOperationName[] }>> = {
  count: { flag: "-n", of: ["get", "peek"] },
  wait: { flag: "--wait", of: ["get", "peek"] },
  follow: { flag: "--follow", of: ["get"] },
  untilEmpty: { flag: "--until-empty", of: ["get"] },
  outDir: { flag: "--out-dir", of: ["get"] },
  exec: { flag: "--exec", of: ["get"] },
  ack: { flag: "--ack", of: ["get"] },
  lines: { flag: "--lines", of: ["put", "get", "peek"] },
  null: { flag: "--null", of: ["put", "get", "peek"] },
  files: { flag: "--files", of: ["put"] },
  msgId: { flag: "--msg-id", of: ["put"] },
  resume: { flag: "--resume", of: ["put"] },
  progress: { flag: "--progress", of: ["put", "get"] },
  json: { flag: "--json", of: ["put", "get", "peek", "pending", "info", "topics"] },
};

/**
 * Checks the flags of an operation. Throws USAGE for a flag that has no effect. `given` contains the settings that were
 * given as flags.
 */
export function checkPubsubClientFlags(operation: ClientOperationName, given: ReadonlyMap<string, unknown>): void {
  const use = findMisplacedFlag(flagOperations, operation, given);
  if (use === null) return;
  throw new BatonError("USAGE", `${operation}: ${use.flag} is only for ${use.of.join(", ")}`);
}

/**
 * Parses the arguments. `named` is the client ID from --id, or, if `isTyped` is false, from the environment or a file.
 * An ID among the arguments takes precedence over the environment and files. Throws USAGE.
 */
export function parsePubsubClientArguments(
  words: readonly string[],
  named: string | undefined,
  { isTyped = true }: { readonly isTyped?: boolean } = {},
): PubsubClientArguments {
  const [first, second] = words;
  if (isOperation(second) && (named === undefined || !isOperation(first))) {
    if (named !== undefined && named !== first && isTyped) {
      throw new BatonError("USAGE", `the client ID is given twice: "${first}", and "${named}" by --id`);
    }
    return checkOperationArguments(first ?? "", second, words.slice(2));
  }
  if (isOperation(first)) {
    if (named === undefined) {
      throw new BatonError(
        "USAGE",
        `missing client ID: baton pubsub client ID ${first} …`,
      );
    }
    return checkOperationArguments(named, first, words.slice(1));
  }
  const wrong = named === undefined ? second : first;
  if (wrong === undefined) {
    throw new BatonError("USAGE", `missing operation, one of ${pubsubClientOperations.join(", ")}`);
  }
  const later = words.find((word) => isOperation(word));
  const order = later === undefined ? suggestOperation(first, wrong) : `; the order is: ID ${later} TOPIC`;
  throw new BatonError("USAGE", `unknown operation "${wrong}"${order}`);
}

/**
 * Suggests the operation that the user may have meant: its name may be mistyped, or may be given where the client ID
 * belongs.
 */
function suggestOperation(first: string | undefined, wrong: string): string {
  const meant = first === undefined || wrong === first ? null : nearestWord(first, pubsubClientOperations);
  const nearest = didYouMean(wrong, [...pubsubClientOperations]);
  return nearest !== "" || meant === null ? nearest : `; "${first}" is read as the client ID, as in: ID ${meant} TOPIC`;
}

function checkOperationArguments(
  id: string,
  operation: ClientOperationName,
  behind: readonly string[],
): PubsubClientArguments {
  const wanted = operationWords[operation];
  const needed = wanted.filter((word) => !word.startsWith("["));
  const max = needed.length === wanted.length ? wanted.length : Infinity;
  if (behind.length < needed.length || behind.length > max) {
    const given = behind.length < needed.length
      ? `${needed[behind.length]} is missing`
      : `"${behind[wanted.length]}" is an unexpected argument`;
    throw new BatonError(
      "USAGE",
      `${operation}: ${given}; usage: baton pubsub client ${["ID", operation, ...wanted].join(" ")}`,
    );
  }
  if (id === "" || behind[0] === "") throw new BatonError("USAGE", "the client ID and the topic must not be empty");
  return { id, operation, topic: behind[0] ?? "", rest: behind.slice(1) };
}

function isOperation(word: string | undefined): word is ClientOperationName {
  return word !== undefined && Object.hasOwn(operationWords, word);
}

export interface PubsubClientRun {
  readonly call: PubsubClientCall;
  readonly target: PubsubClientArguments;
  readonly client: PubsubClientSession;
  readonly signal: AbortSignal;
}
