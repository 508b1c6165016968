/**
 * The tables and functions of message queues in a PostgreSQL schema. A function runs as one statement in autocommit.
 * Each statement inside the function sees everything that was committed before, so that no decision under a lock uses
 * an older snapshot (test/retry/model/postgres_claims_model.ts). message_life.ts decides the next state; `queue_write`
 * applies it if the message has not changed since. Lock order: keys by their numbers, the queue, messages by their
 * numbers. Times are milliseconds of the database's wall clock. Keys and errors are bytes, because PostgreSQL text
 * cannot contain U+0000.
 */
import { requireChangedRowsPlpgsql } from "../../../base/postgres/required_rows.ts";

/** SQL for the time of the database in a statement, in milliseconds. */
export const databaseNowSql = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const now = databaseNowSql;

const busyTable =
  "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0";

const tables = [
  // `forwarder` is the process that sends dead letters until `forwarder_end`.
  `CREATE TABLE IF NOT EXISTS SCHEMA.queue (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" UNIQUE NOT NULL, key text COLLATE "C" NOT NULL, paused bool NOT NULL DEFAULT false,
    redrives bigint NOT NULL DEFAULT 0, next_seq bigint NOT NULL DEFAULT 1, forwarder uuid,
    forwarder_end bigint NOT NULL DEFAULT 0, forward_error bytea)`,
  `CREATE TABLE IF NOT EXISTS SCHEMA.processor (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue int NOT NULL,
    name text NOT NULL, epoch bigint NOT NULL DEFAULT 0, lease_end bigint NOT NULL, ended bool NOT NULL DEFAULT false)`,
  "CREATE INDEX IF NOT EXISTS processor_queue ON SCHEMA.processor (queue)",
  `CREATE TABLE IF NOT EXISTS SCHEMA.retry (queue int, seq bigint, state smallint NOT NULL,
    rev bigint NOT NULL DEFAULT 0, key bytea, turn bool NOT NULL, tries int NOT NULL, crashes int NOT NULL,
    fence bigint NOT NULL, owner bigint, first_ms bigint NOT NULL, since_ms bigint NOT NULL, last_ms bigint,
    next_ms bigint NOT NULL, ended_ms bigint, reason text, error bytea, redriven bigint NOT NULL DEFAULT 0,
    forwarding smallint NOT NULL DEFAULT 0, forward_offset bigint, failures int NOT NULL DEFAULT 0,
    delayed_until_ms bigint NOT NULL DEFAULT 0, forward_error bytea, bytes bigint NOT NULL,
    PRIMARY KEY (queue, seq)) WITH (fillfactor = 60, ${busyTable})`,
  "CREATE INDEX IF NOT EXISTS retry_due ON SCHEMA.retry (queue, next_ms, seq) WHERE state = 0",
  "CREATE INDEX IF NOT EXISTS retry_turn ON SCHEMA.retry (queue, next_ms, seq) WHERE state = 0 AND turn",
  "CREATE INDEX IF NOT EXISTS retry_open ON SCHEMA.retry (queue, seq) WHERE state < 2",
  "CREATE INDEX IF NOT EXISTS retry_owner ON SCHEMA.retry (owner) WHERE state = 1",
  "CREATE INDEX IF NOT EXISTS retry_key ON SCHEMA.retry (queue, key, seq) WHERE state < 2 AND key IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS retry_dead ON SCHEMA.retry (queue, seq) WHERE state = 3",
  "CREATE INDEX IF NOT EXISTS retry_forwarding ON SCHEMA.retry (queue, forwarding, seq) WHERE state = 3",
  "CREATE INDEX IF NOT EXISTS retry_ended ON SCHEMA.retry (queue, ended_ms) WHERE ended_ms IS NOT NULL",
  `CREATE TABLE IF NOT EXISTS SCHEMA.retry_body (queue int, seq bigint, crc bigint NOT NULL, head bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (queue, seq)) WITH (${busyTable})`,
  "ALTER TABLE SCHEMA.retry_body ALTER COLUMN body SET STORAGE EXTERNAL, ALTER COLUMN head SET STORAGE EXTERNAL",
  // A batch of accepted messages. If the statement is repeated after a lost reply, it finds the numbers of its messages
  // here.
  `CREATE TABLE IF NOT EXISTS SCHEMA.retry_batch (queue int, token uuid, first_seq bigint NOT NULL,
    at_ms bigint NOT NULL,
    PRIMARY KEY (queue, token))`,
  // The last message that was moved from a topic into the queue.
  `CREATE TABLE IF NOT EXISTS SCHEMA.retry_ingest (queue int, topic bytea, last_id bigint NOT NULL,
    PRIMARY KEY (queue, topic))`,
  // The process that uses a topic client until `role_end`, and the session of the client.
  `CREATE TABLE IF NOT EXISTS SCHEMA.retry_client (queue int, client text COLLATE "C", holder uuid NOT NULL,
    role_end bigint NOT NULL, session bigint NOT NULL,
    PRIMARY KEY (queue, client))`,
  // The number of ended and removed messages, for the totals.
  `CREATE TABLE IF NOT EXISTS SCHEMA.retry_removed (queue int, state smallint, count bigint NOT NULL,
    PRIMARY KEY (queue, state))`,
];

/** Locks keys until the end of the statement. Two keys with the same number only wait for each other. */
const lockKeys =
  `CREATE OR REPLACE FUNCTION SCHEMA.queue_lock_keys(q int, keys bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE number bigint; BEGIN
  FOR number IN SELECT DISTINCT hashtextextended(encode(k, 'hex'), q) FROM unnest(keys) k WHERE k IS NOT NULL
    ORDER BY 1 LOOP
    PERFORM pg_advisory_xact_lock(number);
  END LOOP;
END $$`;

/**
 * Stores a batch of messages and returns the number of the first one. A repetition with the same token changes nothing,
 * but it locks the row of the queue, so its commit waits for the synchronous standby as the first one's does.
 * `content` contains the head and body of each message, one after the other.
 */
const accept =
  `CREATE OR REPLACE FUNCTION SCHEMA.queue_accept(q int, batch uuid, keys bytea[], states smallint[], tried int[],
  delays bigint[], reasons text[], errors bytea[], forwards smallint[], crcs bigint[], heads int[], bodies int[],
  content bytea)
  RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE start bigint; at_ms bigint; n int := cardinality(states); changed bigint; BEGIN
  PERFORM SCHEMA.queue_lock_keys(q, keys);
  SELECT next_seq INTO STRICT start FROM SCHEMA.queue WHERE id = q FOR UPDATE;
  INSERT INTO SCHEMA.retry_batch VALUES (q, batch, start, ${now}) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT b.first_seq INTO start FROM SCHEMA.retry_batch b WHERE b.queue = q AND b.token = batch;
    ${requireChangedRowsPlpgsql("retry_batch", "1")}
    RETURN start;
  END IF;
  UPDATE SCHEMA.queue SET next_seq = start + n WHERE id = q;
  ${requireChangedRowsPlpgsql("queue", "1")}
  at_ms := ${now};
  INSERT INTO SCHEMA.retry (queue, seq, state, key, turn, tries, crashes, fence, first_ms, since_ms, last_ms, next_ms,
      ended_ms, reason, error, forwarding, bytes)
    SELECT q, start + i - 1, states[i], keys[i], states[i] < 2 AND (keys[i] IS NULL OR NOT EXISTS (
        SELECT 1 FROM SCHEMA.retry o WHERE o.queue = q AND o.key = keys[i] AND o.state < 2) AND NOT EXISTS (
        SELECT 1 FROM generate_series(1, i - 1) e WHERE keys[e] = keys[i] AND states[e] < 2)),
      tried[i], 0, 0, at_ms, at_ms, CASE WHEN tried[i] > 0 THEN at_ms END, at_ms + delays[i],
      CASE WHEN states[i] < 2 OR states[i] = 3 THEN NULL ELSE at_ms END, reasons[i], errors[i], forwards[i], bodies[i]
    FROM generate_series(1, n) i;
  ${requireChangedRowsPlpgsql("retry", "n")}
  INSERT INTO SCHEMA.retry_body SELECT q, start + c.i - 1, crcs[c.i], substring(content FROM c.place FOR heads[c.i]),
      substring(content FROM c.place + heads[c.i] FOR bodies[c.i])
    FROM (SELECT i, (1 + sum(heads[i] + bodies[i]) OVER (ORDER BY i) - heads[i] - bodies[i])::int AS place
      FROM generate_series(1, n) i) c
    WHERE states[c.i] < 2 OR states[c.i] = 3;
  ${requireChangedRowsPlpgsql("retry_body", "(SELECT count(*) FROM unnest(states) state WHERE state < 2 OR state = 3)")}
  RETURN start;
END $$`;

/** Stores messages of a topic if the last message before them is still `after_id`. Returns true if they were stored. */
const ingest =
  `CREATE OR REPLACE FUNCTION SCHEMA.queue_ingest(q int, of_topic bytea, after_id bigint, newest bigint, batch uuid,
  keys bytea[], states smallint[], tried int[], delays bigint[], reasons text[], errors bytea[], forwards smallint[],
  crcs bigint[], heads int[], bodies int[], content bytea)
  RETURNS bool LANGUAGE plpgsql AS $$
DECLARE last bigint; changed bigint; BEGIN
  INSERT INTO SCHEMA.retry_ingest VALUES (q, of_topic, -1) ON CONFLICT DO NOTHING;
  SELECT i.last_id INTO last FROM SCHEMA.retry_ingest i WHERE i.queue = q AND i.topic = of_topic FOR UPDATE;
  ${requireChangedRowsPlpgsql("retry_ingest", "1")}
  IF last <> after_id THEN RETURN false; END IF;
  PERFORM SCHEMA.queue_accept(q, batch, keys, states, tried, delays, reasons, errors, forwards, crcs, heads, bodies,
    content);
  UPDATE SCHEMA.retry_ingest i SET last_id = newest WHERE i.queue = q AND i.topic = of_topic;
  ${requireChangedRowsPlpgsql("retry_ingest", "1")}
  RETURN true;
END $$`;

/**
 * Claims at most `most` messages that were due `age` milliseconds ago. Their bodies have at most `most_bytes`, but at
 * least one message is claimed. A row without a message means that the lease was given up. The row of the processor
 * stays locked until the commit. Bodies are read after the claim, because an earlier snapshot may not contain the body
 * of a new message.
 */
const claim =
  `CREATE OR REPLACE FUNCTION SCHEMA.queue_claim(q int, processor bigint, at_epoch bigint, ordering text, most int,
  age bigint, most_bytes bigint)
  RETURNS TABLE (message SCHEMA.retry, body_crc bigint, head_bytes bytea, body_bytes bytea) LANGUAGE plpgsql AS $$
DECLARE due bigint[]; claimed bigint[]; due_by bigint; changed bigint; BEGIN
  PERFORM 1 FROM SCHEMA.processor p WHERE p.id = processor AND p.epoch = at_epoch AND NOT p.ended
    AND p.lease_end > ${now} FOR UPDATE;
  IF NOT FOUND THEN RETURN NEXT; RETURN; END IF;
  IF (SELECT w.paused FROM SCHEMA.queue w WHERE w.id = q) THEN RETURN; END IF;
  due_by := ${now} - age;
  IF ordering = 'fifo' THEN
    PERFORM 1 FROM SCHEMA.queue w WHERE w.id = q FOR UPDATE;
    SELECT array_agg(f.seq) INTO due FROM (SELECT o.seq, o.state, o.next_ms FROM SCHEMA.retry o
      WHERE o.queue = q AND o.state < 2 ORDER BY o.seq LIMIT 1) f WHERE f.state = 0 AND f.next_ms <= due_by
      AND NOT EXISTS (SELECT 1 FROM SCHEMA.retry o WHERE o.queue = q AND o.state < 2 AND o.state = 1);
  ELSIF ordering = 'key' THEN
    SELECT array_agg(f.seq) INTO due FROM (
      SELECT d.seq, d.bytes, sum(d.bytes) OVER (ORDER BY d.next_ms, d.seq) AS upto FROM (
      SELECT r.seq, r.next_ms, r.bytes FROM SCHEMA.retry r WHERE r.queue = q AND r.state = 0 AND r.turn
        AND r.next_ms <= due_by
      ORDER BY r.next_ms, r.seq LIMIT most FOR UPDATE SKIP LOCKED) d) f WHERE f.upto <= most_bytes OR f.upto = f.bytes;
  ELSE
    SELECT array_agg(f.seq) INTO due FROM (
      SELECT d.seq, d.bytes, sum(d.bytes) OVER (ORDER BY d.next_ms, d.seq) AS upto FROM (
      SELECT r.seq, r.next_ms, r.bytes FROM SCHEMA.retry r WHERE r.queue = q AND r.state = 0 AND r.next_ms <= due_by
      ORDER BY r.next_ms, r.seq LIMIT most FOR UPDATE SKIP LOCKED) d) f WHERE f.upto <= most_bytes OR f.upto = f.bytes;
  END IF;
  WITH taken AS (UPDATE SCHEMA.retry m SET state = 1, owner = processor, fence = m.fence + 1, rev = m.rev + 1
    WHERE m.queue = q AND m.seq = ANY (due) AND m.state = 0 RETURNING m.seq)
    SELECT array_agg(t.seq) INTO claimed FROM taken t;
  PERFORM 1 FROM SCHEMA.retry m WHERE m.queue = q AND m.seq = ANY (due) AND m.state <> 0;
  ${requireChangedRowsPlpgsql("retry", "(SELECT count(*) FROM SCHEMA.retry m WHERE m.queue = q AND m.seq = ANY (due))")}
  RETURN QUERY SELECT r, b.crc, b.head, b.body FROM SCHEMA.retry r
    LEFT JOIN SCHEMA.retry_body b ON b.queue = r.queue AND b.seq = r.seq
    WHERE r.queue = q AND r.seq = ANY (claimed) ORDER BY r.next_ms, r.seq;
END $$`;

/**
 * Applies changes of message_life.ts to messages that still have these revisions. Returns their numbers. The open
 * message with `turn` is the next one of its key. A message that closes passes its turn to the oldest open one. A
 * message that is opened again takes the turn, unless a message of its key is in flight or older. `ended` is true if a
 * try ended, with an error of `errors`. `redrives` is the number of the redrive, or null.
 */
const write =
  `CREATE OR REPLACE FUNCTION SCHEMA.queue_write(q int, seqs bigint[], revs bigint[], states smallint[], tried int[],
  crashed int[], delays bigint[], reasons text[], errors bytea[], ended bool[], forwards smallint[], redrives bigint[])
  RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE m SCHEMA.retry; i int; holder SCHEMA.retry; is_open bool; gets bool; at_ms bigint;
  successor bigint; bodies bigint; changed bigint; BEGIN
  PERFORM SCHEMA.queue_lock_keys(q, ARRAY(SELECT r.key FROM SCHEMA.retry r WHERE r.queue = q AND r.seq = ANY (seqs)));
  FOR i IN SELECT n FROM generate_series(1, cardinality(seqs)) n ORDER BY seqs[n] LOOP
    SELECT * INTO m FROM SCHEMA.retry r WHERE r.queue = q AND r.seq = seqs[i] AND r.rev = revs[i] FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    at_ms := ${now};
    is_open := states[i] < 2;
    gets := m.turn;
    IF is_open AND m.state >= 2 THEN
      gets := true;
      IF m.key IS NOT NULL THEN
        SELECT * INTO holder FROM SCHEMA.retry o WHERE o.queue = q AND o.key = m.key AND o.state < 2 AND o.turn
          FOR UPDATE;
        IF FOUND AND holder.state = 0 AND holder.seq > m.seq THEN
          UPDATE SCHEMA.retry o SET turn = false WHERE o.queue = q AND o.seq = holder.seq;
          ${requireChangedRowsPlpgsql("retry", "1")}
        ELSIF FOUND THEN gets := false;
        END IF;
      END IF;
    ELSIF NOT is_open THEN gets := false;
    END IF;
    UPDATE SCHEMA.retry r SET state = states[i], rev = r.rev + 1, tries = tried[i], crashes = crashed[i],
      owner = NULL, turn = gets, next_ms = at_ms + delays[i],
      since_ms = CASE WHEN m.state = 3 AND is_open THEN at_ms ELSE r.since_ms END, reason = reasons[i],
      error = CASE WHEN ended[i] THEN errors[i] ELSE r.error END,
      last_ms = CASE WHEN ended[i] THEN at_ms ELSE r.last_ms END,
      ended_ms = CASE WHEN is_open OR states[i] = 3 THEN NULL ELSE at_ms END,
      redriven = coalesce(redrives[i], r.redriven),
      forwarding = forwards[i], forward_offset = NULL, failures = 0, delayed_until_ms = 0, forward_error = NULL
      WHERE r.queue = q AND r.seq = m.seq;
    ${requireChangedRowsPlpgsql("retry", "1")}
    IF NOT is_open AND m.turn AND m.key IS NOT NULL THEN
      SELECT min(w.seq) INTO successor FROM SCHEMA.retry w WHERE w.queue = q AND w.key = m.key AND w.state < 2;
      UPDATE SCHEMA.retry o SET turn = true WHERE o.queue = q AND o.seq = successor;
      ${requireChangedRowsPlpgsql("retry", "num_nonnulls(successor)")}
    END IF;
    IF NOT is_open AND states[i] <> 3 THEN
      SELECT count(*) INTO bodies FROM SCHEMA.retry_body b WHERE b.queue = q AND b.seq = m.seq;
      DELETE FROM SCHEMA.retry_body b WHERE b.queue = q AND b.seq = m.seq;
      ${requireChangedRowsPlpgsql("retry_body", "bodies")}
    END IF;
    RETURN NEXT m.seq;
  END LOOP;
END $$`;

/** Statements for `migrateDatabase`. */
export const postgresQueueTables: readonly string[] = [...tables, lockKeys, accept, ingest, claim, write];
