/** Known defects of locks, leases, elections and the keeper that the worlds of locks must find. */
import type { Mutant } from "../../../world/mutant.ts";

export const lockMutants: readonly Mutant[] = [
  {
    name: "a grant does not check the version",
    world: "lock",
    changes: [{
      in: "lock_contender:LockQueueContender.#grant",
      from: "data: state, version: view.version },",
      to: "data: state, version: -1 },",
    }],
    kinds: ["two holders"],
    from: 22,
    seeds: 100,
  },
  {
    name: "a grant in advance does not check the version",
    world: "lock",
    changes: [{
      in: "lock_contender:LockQueueContender.#advance",
      from: `    const requesting = this.#zk.multi([
      { type: "setData", path: path.lock, data: this.#state.unchanged(view), version: view.version },`,
      to: `    const requesting = this.#zk.multi([
      { type: "setData", path: path.lock, data: this.#state.unchanged(view), version: -1 },`,
    }],
    kinds: ["passed in the queue", "two holders"],
    from: 10,
    seeds: 300,
  },
  {
    name: "a withdrawal does not check that the holder's grant is there",
    world: "lock",
    changes: [{
      in: "lock_contender:LockQueueContender.#withdraw",
      from: '      { type: "check", path: `${path.holders}/${oldest}`, version: -1 },\n',
      to: "",
    }],
    kinds: ["two holders"],
    from: 265,
    seeds: 300,
  },
  {
    name: "a contender holds with a grant in advance while an older one is there",
    world: "lock",
    changes: [{
      in: "lock_contender:LockQueueContender.#awaitOlder",
      from: "      if (isCurrent && grants.isOldest) {",
      to: "      if (isCurrent) {",
    }],
    kinds: ["two holders"],
    seeds: 20,
  },
  {
    name: "a lease is counted from the response instead of from the request",
    world: "lock",
    changes: [{
      in: "zookeeper_link:ZooKeeperLink.onFrame",
      from: "this.#proof.recordResponse(pending, { err, nowMs });",
      to: "this.#proof.recordResponse({ ...pending, provesMs: nowMs }, { err, nowMs });",
    }],
    kinds: ["two holders"],
    seeds: 1,
    faults: "test/world/found/lease_counted_from_the_response.json",
  },
  {
    name: "a lease has no margin",
    world: "lock",
    changes: [{
      in: "session_timing:leaseEndMs",
      from: "return provenMs + timeoutMs - deriveSessionTiming(timeoutMs).marginMs;",
      to: "return provenMs + timeoutMs;",
    }],
    kinds: ["two holders"],
    seeds: 1,
    faults: "test/world/found/lease_without_margin.json",
  },
  {
    name: "every lost connection ends the lease",
    world: "lock",
    changes: [{
      in: "zookeeper_lease:ZooKeeperLease.#onSession",
      from: "    const movedMs = this.#zk.session.leaseEndMs() - this.#reportedEndMs;",
      to: `    if (change === "state" && this.inDoubt()) this.#lose("the connection is lost");
    const movedMs = this.#zk.session.leaseEndMs() - this.#reportedEndMs;`,
    }],
    kinds: ["lost without a reason"],
    seeds: 20,
  },
  {
    name: "a holder does not notice that its node was deleted",
    world: "lock",
    changes: [{
      in: "zookeeper_lease:ZooKeeperLease.#watchNode",
      from: '        return this.#lose(`its node "${this.#holderPath}" was deleted`);',
      to: "        return;",
    }],
    kinds: ["not told"],
    from: 73,
    seeds: 100,
  },
  {
    name: "a leader does not notice that it is asked to step down",
    world: "election",
    changes: [{
      in: "zookeeper_lease:ZooKeeperLease.#watchNode",
      from: "      if (revoke === null) return;",
      to: "      if (revoke === null || this.#kind !== this.name) return;",
    }],
    kinds: ["not told"],
    from: 27,
    seeds: 100,
  },
  {
    name: "the last contender is served first",
    world: "lock",
    changes: [{
      in: "queue_position:contenderComesBefore",
      from: "  if (left.sequence !== right.sequence) return left.sequence < right.sequence;",
      to: "  if (left.sequence !== right.sequence) return left.sequence > right.sequence;",
    }],
    kinds: ["passed in the queue"],
    seeds: 20,
  },
  {
    name: "the worst priority is served first",
    world: "lock",
    changes: [{
      in: "queue_position:contenderComesBefore",
      from: "  if (left.priority !== right.priority) return left.priority < right.priority;",
      to: "  if (left.priority !== right.priority) return left.priority > right.priority;",
    }],
    kinds: ["passed in the queue"],
    seeds: 20,
  },
  {
    name: "a reader passes a writer that waits",
    world: "lock",
    changes: [{
      in: "queue_position:lockQueuePosition",
      from: 'mode === "shared" ? before.every((node) => node.mode === "shared") : before.length === 0;',
      to: 'mode === "shared" ? true : before.length === 0;',
    }],
    kinds: ["passed in the queue"],
    seeds: 50,
  },
  {
    name: "a contender that does not wait takes a free lock for a busy one",
    world: "lock",
    changes: [{
      in: "lock_contender:LockQueueContender.#decide",
      from: '    } else if (position.kind === "eligible") return { do: "grant", view };',
      to: '    } else if (waits && position.kind === "eligible") return { do: "grant", view };',
    }],
    kinds: ["free lock said to be busy"],
    seeds: 20,
  },
  {
    name: "the session of a dead client lives for two timeouts",
    world: "lock",
    changes: [{
      in: "session_table:KeeperSessionTable.touch",
      from: "(nowMs + session.timeoutMs)",
      to: "(nowMs + 2 * session.timeoutMs)",
    }],
    kinds: ["session ended late"],
    seeds: 50,
  },
  {
    name: "a session that is renewed before the keeper notices its own stall gets the time of the stall, too",
    world: "lock",
    changes: [{
      in: "session_clock:KeeperSessionClock.now",
      from: "    return nowMs - this.#lateMs(nowMs - this.#lastTickMs) - this.#stalledMs;",
      to: "    return nowMs - this.#stalledMs;",
    }],
    kinds: ["session ended late"],
    from: 70_000_203,
    seeds: 1,
  },
  {
    name: "a session gives up each connection after a third of its timeout, however slow its server is",
    world: "lock",
    changes: [{
      in: "session_timing:SilencePatience.limitMs",
      from: "    return Math.max(dropMs, Math.min(this.#longestMs, leaseMs - dropMs));",
      to: "    return Math.min(dropMs, leaseMs);",
    }],
    kinds: ["never served"],
    from: 129,
    seeds: 2,
  },
  {
    name: "a patient session sends no heartbeat while a request has no response",
    world: "lock",
    changes: [{
      in: "session_timing:decideSessionHeartbeat",
      from: "  const isPingDue = nowMs >= (isHeartbeatPending ? laterPingAtMs : pingAtMs);",
      to: "  const isPingDue = !isHeartbeatPending && nowMs >= pingAtMs;",
    }],
    kinds: ["never served"],
    from: 129,
    seeds: 2,
  },
  {
    name: "the keeper gives a session the time of all slow commits",
    world: "lock",
    changes: [{
      in: "keeper_server:KeeperServer.#expire",
      from: "      if (nowMs < deadlineMs + this.#stalls.longestSince(deadlineMs - timeoutMs, nowMs)) continue;",
      to: "      if (nowMs < deadlineMs + 5 * this.#stalls.longestSince(deadlineMs - timeoutMs, nowMs)) continue;",
    }],
    kinds: ["session ended late"],
    from: 107,
    seeds: 60,
  },
  {
    name: "a holder does not notice that its machine was suspended",
    world: "lock",
    changes: [{
      in: "zookeeper_lease:ZooKeeperLease.isHeld",
      from: "    this.#clock.noticeSuspend();\n    if (this.#isOver) return false;",
      to: "    if (this.#isOver) return false;",
    }],
    kinds: ["two holders"],
    seeds: 100,
  },
  {
    name: "a lease ignores the clock",
    world: "lock",
    changes: [{
      in: "zookeeper_lease:ZooKeeperLease.isHeld",
      from: "    if (!this.#isUsed || this.#clock.now() < this.#zk.session.leaseEndMs()) return true;",
      to: "    if (this.#zk.session.id !== 0n) return true;",
    }],
    kinds: ["two holders", "busy loop"],
    seeds: 20,
  },
  {
    name: "the keeper answers before its commit is durable",
    world: "lock",
    changes: [{
      in: "keeper_server:KeeperServer.#commit",
      from:
        "    const room = await this.#store.commit(encodeKeeperChanges(changes)).finally(() => this.#stalls.end(this.now()));\n",
      to:
        "    void this.#store.commit(encodeKeeperChanges(changes)).catch(() => {});\n    const room = await Promise.resolve(null);\n",
    }],
    kinds: ["two holders", "node of a dead session"],
    seeds: 20,
  },
  {
    name: "the disk acknowledges before it has flushed",
    world: "lock",
    changes: [{
      in: "sim_disk:SimDisk.commit",
      from: "    return durationMs;\n",
      to: "    return durationMs * 0.3;\n",
    }],
    kinds: ["two holders"],
    seeds: 20,
  },
  {
    name: "the keeper restores sessions with no time left",
    world: "lock",
    changes: [{
      in: "keeper_state:KeeperState.restore",
      from: "for (const session of piece.sessions) this.sessions.add(session, nowMs);",
      to: "for (const session of piece.sessions) this.sessions.add(session, nowMs - session.timeoutMs);",
    }],
    kinds: ["two holders"],
    from: 25,
    seeds: 100,
  },
  {
    name: "the end of a session fires no watches",
    world: "lock",
    changes: [{
      in: "keeper_state:KeeperState.closeSession",
      from: "    this.sessions.removeSession(session);\n    this.#fire(transaction);",
      to: "    this.sessions.removeSession(session);",
    }],
    kinds: ["never served"],
    from: 5,
    seeds: 20,
  },
  {
    name: "the keeper shows the zxid of a start before it is stored",
    world: "lock",
    changes: [{
      in: "keeper_state:KeeperState.initialize",
      from:
        "    if (this.tree.size > 0) return;\n    if (this.#zxidBefore > this.#zxid) this.#zxid = this.#zxidBefore;\n",
      to:
        "    if (this.#zxidBefore > this.#zxid) this.#zxid = this.#zxidBefore;\n    if (this.tree.size > 0) return;\n",
    }],
    kinds: ["never served"],
    seeds: 1,
    faults: "test/world/found/zxid_seen_but_not_stored.json",
  },
  {
    name: "a holder that was granted in advance leaves its place in the queue",
    world: "lock",
    changes: [{
      in: "zookeeper_lease:ZooKeeperLease.#deleteNodes",
      from: "    if (this.#queueNode === null) return await deleteNodeIfThere(this.#zk, this.#holderPath);\n",
      to: '    if (this.#holderPath !== "") return await deleteNodeIfThere(this.#zk, this.#holderPath);\n',
    }],
    kinds: ["passed in the queue", "never served"],
    seeds: 60,
  },
  {
    name: "a contender that lost a response joins the queue a second time",
    world: "lock",
    changes: [{
      in: "lock_contender:LockQueueContender.run",
      from: '      step = { do: "recover" };\n',
      to: '      step = { do: "contend" };\n',
    }],
    kinds: ["never served", "two holders"],
    seeds: 100,
  },
  {
    name: "a leak: the real wall clock reaches the nodes of a lock",
    world: "lock",
    changes: [{
      in: "holder_info:formatNewHolderNodeInfo",
      from: "export function formatNewHolderNodeInfo(",
      to: "const savedNow = Date.now;\nexport function formatNewHolderNodeInfo(",
    }, {
      in: "holder_info:formatNewHolderNodeInfo",
      from: "sinceMs: Date.now(), sessionTimeoutMs: session.timeoutMs, revoke: null",
      to: "sinceMs: savedNow(), sessionTimeoutMs: session.timeoutMs, revoke: null",
    }],
    kinds: ["not deterministic"],
    seeds: 3,
    twice: true,
  },
  {
    name: "a wait for a lock ends after half of its time",
    world: "lock",
    changes: [{
      in: "acquire_lock:LockAcquisition.#waitMs",
      from: "this.#zk.session.timeoutMs : wait as number;",
      to: "this.#zk.session.timeoutMs : (wait as number) / 2;",
    }],
    kinds: ["wait too short"],
    seeds: 20,
  },
];
