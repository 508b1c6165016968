/**
 * Known defects of publish/subscribe: those of test/pubsub/fault/pubsub/defects that a simulation reaches, and others.
 */
import type { Mutant } from "../../../world/mutant.ts";

/** All of them break the promise of exactly once. */
const exactlyOnce = ["lost", "id reused", "duplicated", "stored twice", "all or none", "hidden", "publisher order"];

/** What follows when a topic does not know what its publishers have stored. */
const publisherForgotten = [
  ...["stored twice", "duplicated", "publisher order", "gap"],
  ...["never published", "never answered", "after healing"],
];

export const pubsubMutants: readonly Mutant[] = [
  {
    name: "a put is answered before its commit is flushed",
    world: "pubsub",
    changes: [{
      in: "store_engine:StoreEngine.#put",
      from:
        "    // A duplicate must also wait for the commit, because the original may be in this batch.\n    this.#mustCommit = true;\n",
      to: "",
    }],
    kinds: [...exactlyOnce, "same last", "after healing"],
    from: 4,
    seeds: 40,
  },
  {
    name: "a topic moves without what is known of its publishers",
    world: "pubsub",
    changes: [{
      in: "import_topic:TopicImport.#receive",
      from: "this.#addWindow(this.#requireClientId(), record.window);",
      to: "this.#requireClientId();",
    }],
    kinds: publisherForgotten,
    from: 19,
    seeds: 40,
  },
  {
    name: "what is known of publishers is not read again after a restart",
    world: "pubsub",
    changes: [{
      in: "sqlite_client_rows:SqliteClientRows.readWindows",
      from: "      for (const entry of entries) window.add(entry);\n",
      to: "",
    }],
    kinds: publisherForgotten,
    from: 2,
    seeds: 40,
  },
  {
    name: "a put is stored before the one that it follows",
    world: "pubsub",
    changes: [{
      in: "decide_put:refuseOutOfOrder",
      from: "  const { after } = put;\n  if (after === null ||",
      to: "  const { after } = put;\n  if (put.counter > 0 || after === null ||",
    }],
    kinds: ["gap", "publisher order"],
    from: 4,
    seeds: 40,
  },
  {
    name: "of a publisher only the greatest counter is known: what is below it was done",
    world: "pubsub",
    changes: [{
      in: "decide_put:decidePut",
      from: "const known = window.get(counter) ?? view.sameMsgId;",
      to: `const newest = window.entries().at(-1);
    const passed = newest !== undefined && counter < newest.counter;
    const known = window.get(counter) ?? view.sameMsgId ??
      (passed ? { id: newest.id, fingerprint: fingerprints[index] as number } : null);`,
    }, {
      in: "decide_put:refuseOutOfOrder",
      from: "  const { after } = put;\n  if (after === null ||",
      to: "  const { after } = put;\n  if (put.counter > 0 || after === null ||",
    }],
    kinds: ["lost", "id reused", "publisher order", "gap"],
    from: 4,
    seeds: 40,
  },
  {
    name: "a put is noted as done before its message is stored",
    world: "pubsub",
    changes: [{
      in: "store_engine:StoreEngine.#commit",
      from: "    for (const topic of this.#appendedTopics) topic.log.flush();\n",
      to: `    const early = new Map<number, TopicChange>();
    this.topics.clients.takeChanges((id) => early.get(id) ?? early.set(id, emptyTopicChange(id)).get(id) as TopicChange);
    this.#rows.commit([...early.values()]);
    for (const topic of this.#appendedTopics) topic.log.flush();
`,
    }],
    kinds: [...exactlyOnce, "after healing"],
    from: 15,
    seeds: 40,
  },
  {
    name: "a server takes a log that a dead process has left for damaged",
    world: "pubsub",
    changes: [{
      in: "topic_database:TopicDatabase.constructor",
      from: "acceptDamagedLog ? null : findWalDamage(path)",
      to:
        'acceptDamagedLog ? null : existsSync(`${path}-wal`) && statSync(`${path}-wal`).size > 0 ? "the log is not empty" : null',
    }],
    kinds: ["never answered", "never published", "never drained"],
    from: 2,
    seeds: 40,
  },
  {
    name: "a topic takes requests after its seal: neither the server nor its store looks",
    world: "pubsub",
    changes: [{
      in: "owned_topic:OwnedTopic.#transfer",
      from: '        this.state = { kind: "handing off", deadlineMs: endMs };\n',
      to: "",
    }, {
      in: "store_engine:StoreEngine.#topicFor",
      from: "topic.epoch === operation.epoch && topic.sealedFor === null) return topic;",
      to: "topic.epoch === operation.epoch) return topic;",
    }],
    kinds: [...exactlyOnce, "one owner"],
    from: 2,
    seeds: 40,
  },
  {
    name: "a server answers without a look at its lease",
    world: "pubsub",
    changes: [{
      in: "request_handler:ServerRequestHandler.handleStoreResponses",
      from: "isConfirmed = confirmsByCommit || permit.lease.isConfirmed()",
      to: "isConfirmed = confirmsByCommit || permit.lease !== null",
    }],
    kinds: ["one owner"],
    from: 38,
    seeds: 40,
  },
  {
    name: "a proxy takes a put without a response for one that was not done",
    world: "pubsub",
    changes: [{
      in: "decide_forwarding:decideRequestForwarding",
      from: 'return { do: "respond", status: mayBeDone || (isSent && traits.changesState) ? "ERROR" : "OVERLOADED" };',
      to: 'return { do: "respond", status: mayBeDone && isSent && !traits.changesState ? "ERROR" : "OVERLOADED" };',
    }],
    kinds: ["fail delivered", "gap", ...exactlyOnce],
    seeds: 40,
  },
  {
    name: "a client puts what had no response again, under a number of its new session",
    world: "pubsub",
    changes: [{
      in: "publisher:Publisher.#resend",
      from: "      ...(session.number === own.number && session.key === own.key ? {} : { fromSession: session }),\n",
      to: "",
    }, {
      in: "publisher:Publisher.#resend",
      from: "    const own = this.#client.token;\n",
      to: "    void session; // the number is one of the new session\n",
    }],
    kinds: exactlyOnce,
    seeds: 40,
  },
  {
    name: "a get is answered before the acknowledgement in it is stored",
    world: "pubsub",
    changes: [{
      in: "store_engine:StoreEngine.#get",
      from: "      if (next <= last) this.#mustCommit = true;\n",
      to: "",
    }],
    kinds: ["duplicated", "same last"],
    from: 1045,
    seeds: 60,
  },
  {
    name: "a server has in memory only what a subscriber has had",
    world: "pubsub",
    changes: [{
      in: "store_engine:StoreEngine.#get",
      from: `      topic.moveSubscriber(client, decision.position);
      this.topics.clients.markChanged(client);
      this.#changedTopics.add(topic);
      // The next`,
      to: `      topic.moveSubscriber(client, decision.position);
      // The next`,
    }],
    kinds: ["duplicated", "lost"],
    seeds: 40,
  },
  {
    name: "a client has in memory only what it has had",
    world: "pubsub",
    changes: [{
      in: "subscriber:Subscriber.acknowledge",
      from: "    state.setPosition(this.topic, { cursor: id, intent: Math.max(id, intent), folder: null }, options);",
      to: "    void [state, intent, options];\n    this.#had = id;",
    }, {
      in: "subscriber",
      from: "  readonly #client: PubsubClientSession;\n",
      to: "  readonly #client: PubsubClientSession;\n  #had = -1;\n",
    }, {
      in: "subscriber:Subscriber.#fetchOnce",
      from: "    const { cursor, intent } = this.#client.state.subscriberPosition(this.topic);\n",
      to: `    const { cursor: stored, intent } = this.#client.state.subscriberPosition(this.topic);
    const cursor = Math.max(stored, this.#had);
`,
    }],
    kinds: ["duplicated"],
    seeds: 40,
  },
  {
    name: "retention keeps one message, however many it is to keep",
    world: "pubsub",
    changes: [{
      in: "stored_topic:retentionDeletesOldestRow",
      from: "topic.pendingAfter(oldest.last) >= retainMessages)",
      to: "topic.pendingAfter(oldest.last) >= 1)",
    }],
    kinds: ["given up too early"],
    from: 25,
    seeds: 60,
  },
  {
    name: "a seek to the start leaves the oldest message out",
    world: "pubsub",
    changes: [{
      in: "decide_read:decideSeek",
      from: 'seek.to === "start" ? log.firstId - 1 :',
      to: 'seek.to === "start" ? log.firstId :',
    }],
    kinds: ["left out by a seek"],
    from: 19,
    seeds: 60,
  },
];
