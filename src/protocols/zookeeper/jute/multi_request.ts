/**
 * Encodes and decodes the bodies of the operations multi and multiRead: a header and a record for each inner operation,
 * then an end header. Source: MultiOperationRecord, MultiResponse.
 */
import { type ByteReader, type ByteWriter, protocolError } from "../../../base/wire/bytes.ts";
import {
  type AnyJuteCodec,
  emptyJuteRecordCodec,
  type JuteCodec,
  type JuteCodecValue,
} from "../../../base/wire/record_codec.ts";
import { checkOperationCode, zooKeeperOperations } from "./zookeeper_operations.ts";
import * as records from "./zookeeper_records.ts";

const errorType = -1;
const endMark = { type: errorType, done: true, err: -1 };

const { create, delete: remove, getData, setData, getChildren, create2, createContainer, createTtl } =
  zooKeeperOperations;

/** The operations that a multi or multiRead may contain. */
export const multiOperations = {
  create,
  delete: remove,
  getData,
  setData,
  getChildren,
  create2,
  createContainer,
  createTtl,
  check: { code: checkOperationCode, request: records.CheckVersionRequest, response: emptyJuteRecordCodec },
} as const satisfies Record<string, { code: number; request: AnyJuteCodec; response: AnyJuteCodec }>;

export type MultiOperationName = keyof typeof multiOperations;
/** An operation, such as `{ type: "delete", path: "/a", version: -1 }`. */
export type MultiRequest = {
  [Name in MultiOperationName]: { type: Name } & JuteCodecValue<(typeof multiOperations)[Name]["request"]>;
}[MultiOperationName];
/** The result of an operation, or its error code. */
export type MultiResult =
  | { [Name in MultiOperationName]: { type: Name } & JuteCodecValue<(typeof multiOperations)[Name]["response"]> }[
    MultiOperationName
  ]
  | { type: "error"; err: number };

interface MultiOperationRow {
  readonly code: number;
  readonly request: JuteCodec<object>;
  readonly response: JuteCodec<object>;
}
const operationRow = (name: MultiOperationName): MultiOperationRow =>
  multiOperations[name] as unknown as MultiOperationRow;
const namesByCode = new Map<number, MultiOperationName>(
  Object.entries(multiOperations).map(([name, row]) => [row.code, name as MultiOperationName]),
);

export const multiRequestCodec: JuteCodec<MultiRequest[]> = {
  bytesMin: 9,
  read: (reader) =>
    readItems(reader, (name) => ({ type: name, ...operationRow(name).request.read(reader) }) as MultiRequest, () => {
      throw protocolError("A multi request contains an error record");
    }),
  write(writer, requests) {
    for (const request of requests) {
      const row = operationRow(request.type);
      records.MultiHeader.write(writer, { type: row.code, done: false, err: -1 });
      row.request.write(writer, request);
    }
    records.MultiHeader.write(writer, endMark);
  },
};

export const multiResponseCodec: JuteCodec<MultiResult[]> = {
  bytesMin: 9,
  read: (reader) =>
    readItems<MultiResult>(
      reader,
      (name) => ({ type: name, ...operationRow(name).response.read(reader) }) as MultiResult,
      () => ({ type: "error", err: records.ErrorResponse.read(reader).err }),
    ),
  write(writer, results) {
    for (const result of results) writeResult(writer, result);
    records.MultiHeader.write(writer, endMark);
  },
};

function writeResult(writer: ByteWriter, result: MultiResult): void {
  if (result.type === "error") {
    records.MultiHeader.write(writer, { type: errorType, done: false, err: result.err });
    records.ErrorResponse.write(writer, { err: result.err });
    return;
  }
  const row = operationRow(result.type);
  records.MultiHeader.write(writer, { type: row.code, done: false, err: 0 });
  row.response.write(writer, result);
}

function readItems<T>(reader: ByteReader, operation: (name: MultiOperationName) => T, error: () => T): T[] {
  const items: T[] = [];
  for (;;) {
    const header = records.MultiHeader.read(reader);
    if (header.done) return items;
    if (header.type === errorType) {
      items.push(error());
      continue;
    }
    const name = namesByCode.get(header.type);
    if (name === undefined) throw protocolError(`Operation ${header.type} is not allowed in a multi`);
    items.push(operation(name));
  }
}
