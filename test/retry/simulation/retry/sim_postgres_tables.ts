/**
 * The tables of a message store in a simulated PostgreSQL, and what each statement of the store does to them, by the
 * name of the statement. A statement is atomic; the functions of postgres_queue_tables.ts are as they are there.
 */
import type { PostgresRow, SqlParameter } from "../../../../src/base/postgres/primary_connection.ts";
import { sharedStoreFormatNumber } from "../../../../src/base/postgres/database_schema.ts";

interface QueueRow {
  readonly id: number;
  readonly key: string;
  readonly paused: boolean;
  readonly redrives: number;
  readonly next_seq: number;
  readonly forwarder: string;
  readonly forwarder_end: number;
  readonly forward_error: Buffer | null;
}

interface ProcessorRow {
  readonly id: number;
  readonly epoch: number;
  readonly lease_end: number;
  readonly ended: boolean;
}

export interface RetryRow extends PostgresRow {
  readonly seq: number;
  readonly state: number;
  readonly rev: number;
  readonly key: Buffer | null;
  readonly turn: boolean;
  readonly tries: number;
  readonly crashes: number;
  readonly fence: number;
  readonly owner: number | null;
  readonly next_ms: number;
  readonly since_ms: number;
  readonly last_ms: number | null;
  readonly ended_ms: number | null;
  readonly error: Buffer | null;
  readonly redriven: number;
  readonly forwarding: number;
  readonly failures: number;
  readonly delayed_until_ms: number;
  readonly forward_error: Buffer | null;
  readonly bytes: number;
  /** Its body, also when that is no longer stored. */
  readonly content: string;
  /** The fencing numbers of the tries whose processors have written a result, each followed by a comma. */
  readonly ended: string;
}

interface BodyRow extends PostgresRow {
  readonly crc: number;
  readonly head: Buffer;
  readonly body: Buffer;
}

/** Rows are replaced, never changed, so that a copy keeps what was there. */
export class SimTables {
  queue: QueueRow = {
    ...{ id: 1, key: "simstore", paused: false, redrives: 0, next_seq: 1 },
    ...{ forwarder: "", forwarder_end: 0, forward_error: null },
  };
  processors = new Map<number, ProcessorRow>();
  messages = new Map<number, RetryRow>();
  bodies = new Map<number, BodyRow>();
  batches = new Map<string, number>();
  processorsMade = 0;
  /** Changes that were made. */
  writes = 0;

  copy(): SimTables {
    const copy = new SimTables();
    Object.assign(copy, this);
    copy.processors = new Map(this.processors);
    copy.messages = new Map(this.messages);
    copy.bodies = new Map(this.bodies);
    copy.batches = new Map(this.batches);
    return copy;
  }

  setQueue(changes: Partial<QueueRow>): void {
    this.queue = { ...this.queue, ...changes };
    this.writes++;
  }

  setProcessor(id: number, changes: Partial<ProcessorRow>): void {
    this.processors.set(id, { ...this.processors.get(id) as ProcessorRow, ...changes });
    this.writes++;
  }

  setMessage(seq: number, changes: Partial<RetryRow>): void {
    this.messages.set(seq, { ...this.messages.get(seq), ...changes } as RetryRow);
    this.writes++;
  }

  /** By their numbers. */
  where(condition: (row: RetryRow) => boolean): RetryRow[] {
    return [...this.messages.values()].filter(condition).sort((one, other) => one.seq - other.seq);
  }
}

/** What a statement does; `redriving` is called for each message that is redriven. */
export interface StatementCall {
  readonly tables: SimTables;
  readonly values: readonly SqlParameter[];
  readonly nowMs: number;
  readonly redriving: (seq: number) => void;
}

type Statement = (call: StatementCall) => readonly PostgresRow[];

const isOpen = ({ state }: { readonly state: number }) => state < 2;
const isPending = ({ state, forwarding }: RetryRow) => state === 3 && (forwarding === 1 || forwarding === 2);
const isSame = (one: Buffer | null, other: Buffer | null) =>
  one !== null && other !== null && Buffer.compare(one, other) === 0;
const byDue = (one: RetryRow, other: RetryRow) => one.next_ms - other.next_ms || one.seq - other.seq;
const numbers = (value: SqlParameter | undefined) => value as readonly number[];
const withSink = (tables: SimTables, row: RetryRow): PostgresRow => ({
  ...row,
  sink_error: tables.queue.forward_error,
});

/** The statement of a name, which may end with what it is about, such as an order. */
export function runSimStatement(name: string, call: StatementCall): readonly PostgresRow[] {
  const found = statements[name] ?? statements[name.slice(0, name.lastIndexOf("_"))];
  if (found === undefined) throw new Error(`the simulated database has no statement ${name}`);
  return found(call);
}

const statements: Readonly<Record<string, Statement>> = {
  store_format: () => [{ id: "simulated", format: sharedStoreFormatNumber, system_id: "1" }],
  store_tables: () => [],
  check_system: () => [{ system: "1" }],
  check_settings: () => [],
  check_identity: ({ nowMs }) => [{ timeline: 1, now_ms: nowMs }],
  check_standbys: () => [],
  trial: () => [],

  queue_find: ({ tables: { queue }, nowMs }) => [{ id: queue.id, key: queue.key, now_ms: nowMs }],
  queue_next_seq: ({ tables: { queue } }) => [{ next_seq: queue.next_seq }],
  queue_paused: ({ tables: { queue } }) => [{ paused: queue.paused }],
  queue_pause({ tables, values: [, paused] }) {
    tables.setQueue({ paused: paused as boolean });
    return [{ id: 1 }];
  },
  queue_redrives({ tables }) {
    tables.setQueue({ redrives: tables.queue.redrives + 1 });
    return [{ redrives: tables.queue.redrives }];
  },
  queue_accept: acceptMessages,
  queue_claim: claimMessages,
  queue_write: writeMessages,
  queue_look: lookForWork,

  queue_register({ tables, values: [, , leaseMs], nowMs }) {
    const id = ++tables.processorsMade;
    tables.setProcessor(id, { id, epoch: 0, lease_end: nowMs + Number(leaseMs), ended: false });
    return [{ id }];
  },
  queue_renew({ tables, values: [id, leaseMs], nowMs }) {
    const row = tables.processors.get(Number(id));
    if (row === undefined || row.ended) return [];
    tables.setProcessor(row.id, { lease_end: nowMs + Number(leaseMs) });
    return [{ now_ms: nowMs }];
  },
  queue_leave({ tables, values: [id] }) {
    if (tables.processors.has(Number(id))) tables.setProcessor(Number(id), { ended: true });
    return [];
  },
  queue_over: ({ tables, values: [, graceMs], nowMs }) => overdue(tables, nowMs - Number(graceMs)),
  queue_end({ tables, values: [, graceMs], nowMs }) {
    const found = overdue(tables, nowMs - Number(graceMs));
    for (const { id } of found) tables.setProcessor(Number(id), { ended: true });
    return found;
  },
  queue_in_flight: ({ tables, values: [owners] }) =>
    tables.where(({ state, owner }) => state === 1 && numbers(owners).includes(owner ?? 0)),
  queue_remove({ tables, values: [ids] }) {
    for (const id of numbers(ids)) {
      const hasSome = tables.where(({ state, owner }) => state === 1 && owner === id).length > 0;
      if (!tables.processors.get(id)?.ended || hasSome) continue;
      tables.processors.delete(id);
      tables.writes++;
    }
    return [];
  },
  queue_fence({ tables, values: [id, epoch] }) {
    const row = tables.processors.get(Number(id));
    if (row === undefined || row.ended || row.epoch > Number(epoch)) return [];
    tables.setProcessor(row.id, { epoch: Number(epoch) });
    return [{ id: row.id }];
  },
  queue_compare({ tables, values: [, seqs] }) {
    tables.setQueue({});
    return tables.where(({ seq }) => numbers(seqs).includes(seq));
  },

  queue_totals: ({ tables }) =>
    [0, 1, 2, 3, 4, 5].map((state) => {
      const found = tables.where((row) => row.state === state);
      return { state, count: found.length, bytes: found.reduce((sum, { bytes }) => sum + bytes, 0) };
    }),
  queue_open: ({ tables }) => tables.where(isOpen).slice(0, 1).map(() => ({ found: 1 })),
  queue_row: ({ tables, values: [, seq] }) => tables.where((row) => row.seq === Number(seq)),
  queue_show: ({ tables, values: [, seqs] }) =>
    numbers(seqs).flatMap((seq) => {
      const row = tables.messages.get(seq);
      const none = { crc: null, head: null, body: null };
      return row === undefined ? [] : [{ ...withSink(tables, row), ...(tables.bodies.get(seq) ?? none) }];
    }),
  queue_list: ({ tables, values: [, states, , , , after, max, redrive] }) =>
    tables.where((row) =>
      numbers(states).includes(row.state) && row.seq > Number(after) &&
      (redrive === null || (row.redriven < Number(redrive) && row.forwarding < 3))
    ).slice(0, Number(max)).map((row) => withSink(tables, row)),
  queue_forget: () => [{ count: 0 }],
  queue_forget_batches: () => [],

  queue_letters_open({ tables }) {
    const open = tables.where(({ state, forwarding, reason }) =>
      state === 3 && forwarding === 0 && reason !== "damaged"
    );
    for (const { seq } of open) tables.setMessage(seq, { forwarding: 1 });
    return [];
  },
  queue_letters_fresh: ({ tables, values: [, max] }) =>
    tables.where((row) => isPending(row) && row.failures === 0).sort((one, other) => other.forwarding - one.forwarding)
      .slice(0, Number(max)),
  queue_letters_failed: ({ tables, values: [, max], nowMs }) =>
    tables.where((row) => isPending(row) && row.failures > 0 && row.delayed_until_ms <= nowMs).slice(0, Number(max)),
  queue_forwarder({ tables, values: [, token, roleMs], nowMs }) {
    if (tables.queue.forwarder !== token && tables.queue.forwarder_end >= nowMs) return [];
    tables.setQueue({ forwarder: String(token), forwarder_end: nowMs + Number(roleMs) });
    return [{ id: 1 }];
  },
  queue_forwarder_ends({ tables, values: [, token] }) {
    if (tables.queue.forwarder === token) tables.setQueue({ forwarder_end: 0 });
    return [];
  },
  queue_backlog: ({ tables }) => {
    const [failed] = tables.where(({ state, forward_error }) => state === 3 && forward_error !== null);
    const error = tables.queue.forward_error ?? failed?.forward_error ?? null;
    const forwarded = tables.where(({ state, forwarding }) => state === 3 && forwarding === 3).length;
    return [{ count: tables.where(isPending).length, forwarded, error }];
  },
  queue_delays: ({ tables }) => changePending(tables, () => true, () => ({ delayed_until_ms: 0 })),
  queue_letter_found: ({ tables, values: [, seq, fence] }) =>
    tables.where((row) => isPending(row) && row.seq === seq && row.fence === fence),
  queue_forwarding({ tables, values: [, seq, fence, offset] }) {
    const isSought = (row: RetryRow) => row.seq === seq && row.fence === fence;
    const done = tables.where((row) => isPending(row) && isSought(row)).length;
    changePending(tables, isSought, () => ({ forwarding: 2, forward_offset: Number(offset) }));
    return [{ done }];
  },
  queue_forwarded({ tables, values: [, seq, fence], nowMs }) {
    const isSought = (row: RetryRow) => row.seq === seq && row.fence === fence;
    const done = tables.where((row) => (isPending(row) || row.forwarding === 3) && isSought(row)).length;
    changePending(tables, isSought, ({ seq, rev }) => {
      tables.bodies.delete(seq);
      tables.setQueue({ forward_error: null });
      return { forwarding: 3, rev: rev + 1, ended_ms: nowMs, bytes: 0, failures: 0, forward_error: null };
    });
    return [{ done }];
  },
  queue_sink_failed({ tables, values: [, error] }) {
    tables.setQueue({ forward_error: error as Buffer });
    return [];
  },
  queue_letter_failed({ tables, values: [, seq, error], nowMs }) {
    tables.setQueue({ forward_error: null });
    return changePending(tables, (row) => row.seq === seq, ({ failures }) => ({
      ...{ failures: failures + 1, forward_error: error as Buffer },
      delayed_until_ms: nowMs + Math.min(300_000, 2000 * 2 ** failures),
    }));
  },
};

function overdue(tables: SimTables, beforeMs: number): { readonly id: number }[] {
  return [...tables.processors.values()].filter(({ ended, lease_end }) => ended || lease_end < beforeMs)
    .map(({ id }) => ({ id }));
}

function changePending(
  tables: SimTables,
  condition: (row: RetryRow) => boolean,
  change: (row: RetryRow) => Partial<RetryRow>,
): PostgresRow[] {
  for (const row of tables.where((row) => isPending(row) && condition(row))) tables.setMessage(row.seq, change(row));
  return [];
}

function acceptMessages({ tables, values, nowMs }: StatementCall): PostgresRow[] {
  const [, token, keys, states, tried, delays, reasons, errors, forwards, crcs, heads, bodies, content] =
    values as readonly [unknown, string, ...(readonly never[])[]];
  const known = tables.batches.get(token);
  if (known !== undefined) {
    tables.setQueue({}); // its row was locked for an update, so the commit waits for the standby
    return [{ seq: known }];
  }
  const start = tables.queue.next_seq;
  tables.batches.set(token, start);
  let place = 0;
  numbers(states).forEach((state, at) => {
    const seq = start + at;
    const key: Buffer | null = keys?.[at] ?? null;
    const isFirst = key === null || tables.where((row) => isOpen(row) && isSame(row.key, key)).length === 0;
    const [headBytes, bodyBytes] = [Number(heads?.[at]), Number(bodies?.[at])];
    const whole = content as unknown as Buffer;
    const head = whole.subarray(place, place += headBytes);
    const body = whole.subarray(place, place += bodyBytes);
    tables.setMessage(seq, {
      ...{ seq, state, rev: 0, key, turn: state < 2 && isFirst, tries: Number(tried?.[at]), crashes: 0, fence: 0 },
      ...{ owner: null, first_ms: nowMs, since_ms: nowMs, last_ms: Number(tried?.[at]) > 0 ? nowMs : null },
      ...{ next_ms: nowMs + Number(delays?.[at]), ended_ms: state < 2 || state === 3 ? null : nowMs },
      ...{
        reason: reasons?.[at] ?? null,
        error: errors?.[at] ?? null,
        redriven: 0,
        forwarding: Number(forwards?.[at]),
      },
      ...{ forward_offset: null, failures: 0, delayed_until_ms: 0, forward_error: null, bytes: bodyBytes },
      ...{ content: body.toString(), ended: "" },
    });
    if (state < 2 || state === 3) tables.bodies.set(seq, { crc: Number(crcs?.[at]), head, body });
  });
  tables.setQueue({ next_seq: start + numbers(states).length });
  return [{ seq: start }];
}

function lookForWork({ tables, values: [, owner, order], nowMs }: StatementCall): PostgresRow[] {
  const waiting = tables.where(({ state, turn }) => state === 0 && (order !== "key" || turn)).sort(byDue);
  const [oldest] = tables.where(isOpen);
  const first = order === "fifo" ? (oldest?.state === 0 ? oldest : undefined) : waiting[0];
  return [{
    ...{ now_ms: nowMs, paused: tables.queue.paused, held: tables.processors.get(Number(owner))?.ended === false },
    first_ms: first?.next_ms ?? null,
    next_ms: waiting.find(({ next_ms }) => next_ms > nowMs)?.next_ms ?? null,
  }];
}

function claimMessages({ tables, values, nowMs }: StatementCall): PostgresRow[] {
  const [, owner, epoch, order, most, age] = values;
  const processor = tables.processors.get(Number(owner));
  const isHeld = processor !== undefined && processor.epoch === epoch && !processor.ended &&
    processor.lease_end > nowMs;
  if (!isHeld) return [{ seq: null, state: null }];
  tables.writes++; // the row of the processor is locked
  if (tables.queue.paused) return [];
  const dueBy = nowMs - Number(age);
  const [oldest] = tables.where(isOpen);
  const due = order === "fifo"
    ? oldest === undefined || tables.where(({ state }) => state === 1).length > 0 ? [] : [oldest]
    : tables.where(({ state, turn }) => state === 0 && (order === "none" || turn)).sort(byDue);
  return due.filter(({ state, next_ms }) => state === 0 && next_ms <= dueBy).slice(0, Number(most)).map((row) => {
    tables.setMessage(row.seq, { state: 1, owner: Number(owner), fence: row.fence + 1, rev: row.rev + 1 });
    const none = { crc: null, head: null, body: null };
    return { ...tables.messages.get(row.seq), ...(tables.bodies.get(row.seq) ?? none) };
  });
}

function writeMessages({ tables, values, nowMs, redriving }: StatementCall): PostgresRow[] {
  const [, seqs, revs, states, tried, crashed, delays, reasons, errors, ended, forwards, redrives] =
    values as readonly (readonly never[])[];
  const order = numbers(seqs).map((seq, at) => ({ seq, at })).sort((one, other) => one.seq - other.seq);
  return order.flatMap(({ seq, at }) => {
    const before = tables.messages.get(seq);
    if (before === undefined || before.rev !== Number(revs?.[at])) return [];
    const state = Number(states?.[at]);
    const isResult = before.state === 1 && Number(crashed?.[at]) === before.crashes;
    let gets = before.turn && state < 2;
    if (state < 2 && before.state >= 2) {
      const [holder] = tables.where((row) => isOpen(row) && row.turn && isSame(row.key, before.key));
      const yields = holder?.state === 0 && holder.seq > seq;
      if (yields) tables.setMessage(holder.seq, { turn: false });
      gets = holder === undefined || yields;
      redriving(seq);
    }
    tables.setMessage(seq, {
      ...{ state, rev: before.rev + 1, tries: Number(tried?.[at]), crashes: Number(crashed?.[at]), owner: null },
      ended: before.ended + (isResult ? `${before.fence},` : ""),
      ...{ turn: gets, next_ms: nowMs + Number(delays?.[at]), reason: reasons?.[at] ?? null },
      ...(before.state === 3 && state < 2 ? { since_ms: nowMs } : {}),
      ...(ended?.[at] ? { error: errors?.[at] ?? null, last_ms: nowMs } : {}),
      ended_ms: state < 2 || state === 3 ? null : nowMs,
      redriven: redrives?.[at] ?? before.redriven,
      ...{ forwarding: Number(forwards?.[at]), failures: 0, delayed_until_ms: 0, forward_error: null },
    });
    if (state >= 2 && before.turn && before.key !== null) {
      const [next] = tables.where((row) => isOpen(row) && isSame(row.key, before.key));
      if (next !== undefined) tables.setMessage(next.seq, { turn: true });
    }
    if (state >= 2 && state !== 3) tables.bodies.delete(seq);
    return [{ seq }];
  });
}
