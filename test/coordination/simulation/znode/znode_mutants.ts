/** Known defects of the keeper and its client. */
import type { Mutant } from "../../../world/mutant.ts";

export const znodeMutants: readonly Mutant[] = [
  {
    name: "a write does not compare the version",
    world: "znode",
    changes: [{
      in: "transaction:checkVersion",
      from: "  if (expected !== -1 && expected !== actual) refuse",
      to: "  if (expected < -1) refuse",
    }],
    kinds: ["not linearizable"],
    seeds: 10,
  },
  {
    name: "a transaction that fails keeps what it has done",
    world: "znode",
    changes: [{
      in: "operation_table:runMulti",
      from: "      transaction.rollback();\n",
      to: "",
    }],
    kinds: ["not linearizable"],
    seeds: 10,
  },
  {
    name: "a response to a read does not wait for the commit of what it shows",
    world: "znode",
    changes: [{
      in: "client_connection:KeeperClientConnection.#handleRequest",
      from: "    this.#reply(commitQueue.enqueue(this), { xid, zxid: result.zxid, err: result.error }, result);",
      to:
        "    const entry = state.isWrite(code) ? commitQueue.enqueue(this) : commitQueue.enqueueUnconditional(this);\n    this.#reply(entry, { xid, zxid: result.zxid, err: result.error }, result);",
    }],
    kinds: ["not linearizable", "change seen before its watch event", "watch without a change"],
    seeds: 1,
    faults: "test/world/found/read_of_a_change_that_a_power_cut_takes_back.json",
  },
  {
    name: "changes that are made during a commit are answered by it",
    world: "znode",
    changes: [{
      in: "group_commit_queue:KeeperCommitQueue.enqueue",
      from: "    if (this.#options.hasUrgentChanges()) return pendingReplyIn(this.#open, recipient);\n",
      to: "",
    }],
    kinds: ["not linearizable", "sequence number", "sequence number twice", "watch without a change"],
    seeds: 60,
  },
  {
    name: "a watch event is sent behind the response that shows its change",
    world: "znode",
    changes: [{
      in: "keeper_state:KeeperState.#fire",
      from:
        "      for (const watcher of this.watches.fire({ type, path, mayLearn })) this.#options.notify(watcher, type, path);",
      to:
        "      for (const watcher of this.watches.fire({ type, path, mayLearn })) {\n        setTimeout(() => this.#options.notify(watcher, type, path), 30);\n      }",
    }],
    kinds: ["change seen before its watch event"],
    seeds: 10,
  },
  {
    name: "a client does not set its watches again after a reconnect",
    world: "znode",
    changes: [{
      in: "watches:SessionWatches.rearm",
      from: "    return [...paths].flatMap(([sinceZxid, watched]) => this.#batches(sinceZxid, watched));",
      to: "    return [];",
    }],
    kinds: ["change seen before its watch event"],
    seeds: 20,
  },
  {
    name: "a watch that is set again ignores what has changed meanwhile",
    world: "znode",
    changes: [{
      in: "operation_table",
      from: "    else if (node.mzxid > request.relativeZxid && mayRead(node)) {",
      to: "    else if (node.version < 0 && mayRead(node)) {",
    }],
    kinds: ["change seen before its watch event"],
    from: 20,
    seeds: 40,
  },
  {
    name: "a one-shot watch of a client stays after its event",
    world: "znode",
    changes: [{
      in: "watches:SessionWatches.takeWatchers",
      from: "      this.#tables[kind].delete(path);\n",
      to: "",
    }],
    kinds: ["watch fired twice"],
    seeds: 10,
  },
  {
    name: "a sequence number is the number of children",
    world: "znode",
    changes: [{
      in: "transaction:KeeperTransaction.create",
      from: "request.path + String(parent.creates)",
      to: "request.path + String(parent.children?.size ?? 0)",
    }],
    kinds: ["sequence number", "sequence number twice", "program failed"],
    seeds: 10,
  },
  {
    name: "only requests, not heartbeats, renew a session",
    world: "znode",
    changes: [{
      in: "client_connection:KeeperClientConnection.#handleRequest",
      from: "    state.sessions.touch(requester.session, this.#host.now());\n    if (code",
      to:
        "    if (code !== zooKeeperOperations.ping.code) state.sessions.touch(requester.session, this.#host.now());\n    if (code",
    }],
    kinds: ["session ended early"],
    seeds: 60,
  },
  {
    name: "a request whose connection was lost counts as not sent",
    world: "znode",
    changes: [
      {
        in: "zookeeper_link:ZooKeeperRequest.connectionLost",
        from: '    if (cause === null) this.fail("CONNECTIONLOSS");',
        to: '    if (cause === null) this.fail("OPERATIONTIMEOUT");',
      },
      {
        in: "zookeeper_link:ZooKeeperRequest.connectionLost",
        from: '    else this.fail("CONNECTIONLOSS", cause,',
        to: '    else this.fail("OPERATIONTIMEOUT", cause,',
      },
    ],
    kinds: ["not linearizable"],
    seeds: 60,
  },
  {
    name: "the counters of a node are not stored",
    world: "znode",
    changes: [{
      in: "keeper_rows:decodeKeeperNode",
      from: "    creates: stored.creates,\n",
      to: "    creates: 0,\n",
    }],
    kinds: ["sequence number", "sequence number twice", "program failed"],
    seeds: 60,
  },
  {
    name: "a row is taken without a look at its checksum",
    world: "znode",
    changes: [{
      in: "keeper_rows:verifiedBody",
      from: "if (stored === checksumOf(id, content)) return content;",
      to: "if (stored !== checksumOf(id, content)) return content;\n    return content;",
    }],
    kinds: ["flipped bit believed"],
    seeds: 60,
  },
  {
    name: "neither the log nor the mark is compared with what SQLite reads",
    world: "znode",
    changes: [{
      in: "keeper_database:prepareFile",
      from: "  const damage = findWalDamage(path) ?? describeOutdatedKeeperData(path);",
      to:
        "  const damage = existsSync(`${path}-none`) ? findWalDamage(path) ?? describeOutdatedKeeperData(path) : null;",
    }],
    kinds: ["flipped bit believed"],
    from: 14,
    seeds: 200,
  },
];
