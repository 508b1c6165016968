/**
 * A client that changes what is below a folder of its own at random, some requests ahead of the answers, and knows what
 * has to be there.
 */
import type { Address } from "../../src/base/sockets/connection.ts";
import { aclPermission, createFlag } from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Acl } from "../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import type { MultiRequest } from "../../src/protocols/zookeeper/jute/multi_request.ts";
import { bytes, node, openAcl, text } from "../coordination/conformance/zookeeper_fixture.ts";
import { eventually } from "./eventually.ts";
import { RawClient, type Reply } from "./raw_client.ts";
import { type Change, type FoundNode, type Kind, type Step, TreeModel } from "./tree_model.ts";

const ahead = 6;
const nodesMax = 40;
const depthMax = 4;
const ttlMs = 3_600_000n;
const flags: Readonly<Record<Exclude<Kind, "ttl">, number>> = {
  persistent: createFlag.persistent,
  ephemeral: createFlag.ephemeral,
  container: createFlag.container,
};
const readOnly: Acl[] = [{ perms: aclPermission.read | aclPermission.admin, id: { scheme: "world", id: "anyone" } }];

export class ModelClient {
  readonly #address: Address;
  readonly #root: string;
  readonly #random: () => number;
  #client: RawClient | null = null;
  /** What is certain, and what was asked for since, in order. */
  #steps: Step[] = [];
  #certain = 0;
  #next = 0;
  /** The largest transaction number of any answer. */
  seenZxid = 0n;
  acknowledged = 0;

  constructor(address: Address, root: string, random: () => number) {
    this.#address = address;
    this.#root = root;
    this.#random = random;
  }

  /** Makes the folder; to be called once, when the server is well. */
  async begin(): Promise<void> {
    await this.#connect();
    this.#saw(await this.#open.call("create", node(this.#root, { data: bytes("") })));
    this.#steps = [];
  }

  /**
   * Works until the connection ends, or for so many steps; then the connection is gone, and perhaps the session has
   * ended.
   */
  async work(stepsMax: number): Promise<void> {
    await this.#connect();
    const model = this.#modelAfter(this.#steps.length);
    const pending = new Set<Promise<void>>();
    const isLeaving = this.#random() < 0.2;
    for (let count = 0; count < stepsMax && !this.#open.isClosed; count++) {
      const isLast = isLeaving && count === stepsMax - 1;
      const step: Step = {
        session: this.#open.sessionId,
        changes: isLast ? [{ type: "endSession" }] : this.#chosen(model),
        zxid: null,
      };
      model.apply(step);
      this.#steps.push(step);
      const done = this.#asked(step).then(() => {}, () => {}).finally(() => pending.delete(done));
      pending.add(done);
      if (pending.size >= ahead) await Promise.race(pending);
    }
    await Promise.all(pending);
    await this.#open.drop();
  }

  /** What does not hold, in words. Whatever the server has of what nobody was told is certain from then on. */
  async problems(): Promise<string[]> {
    const isGone = this.#client !== null && await this.#connect() === "new session";
    const found = await this.#found();
    let best: string[] | null = null;
    for (let count = this.#certain; count <= this.#steps.length; count++) {
      const model = this.#modelAfter(count);
      const problems = model.differences(found);
      if (problems.length === 0) {
        const last = this.#steps[count - 1];
        if (isGone && last?.changes[0]?.type !== "endSession") return ["the session is gone, and nobody has ended it"];
        this.#settle(count);
        await this.#open.drop();
        return [];
      }
      if (best === null || problems.length < best.length) best = problems;
    }
    return [`${this.#steps.length - this.#certain} steps were not acknowledged`, ...best ?? []];
  }

  /** The wrong password is refused, and leaves the session as it is. */
  async isGuarded(): Promise<boolean> {
    const { sessionId, passwd } = this.#open.hello;
    const wrong = (passwd ?? new Uint8Array(16)).map((byte) => byte ^ 1);
    const thief = await RawClient.connect(this.#address, { sessionId, passwd: wrong });
    await thief.drop();
    return thief.sessionId === 0n;
  }

  get #open(): RawClient {
    if (this.#client === null) throw new Error("The model's client is not connected");
    return this.#client;
  }

  /** Resumes the session if it is there. A server behind what was seen before would close the connection. */
  async #connect(): Promise<"resumed" | "new session"> {
    const before = this.#client?.hello;
    const more = { timeoutMs: 60_000, lastZxidSeen: this.seenZxid };
    const resume = before?.passwd ? { ...more, sessionId: before.sessionId, passwd: before.passwd } : more;
    const connect = (options: object) =>
      eventually(() => RawClient.connect(this.#address, options), { withinMs: 20_000 });
    let client = await connect(resume);
    if (client.sessionId === 0n) client = await connect(more);
    this.#client = client;
    return client.sessionId === before?.sessionId ? "resumed" : "new session";
  }

  async #asked(step: Step): Promise<void> {
    const replies = await this.#send(step.changes);
    this.#saw(replies);
    step.zxid = replies.zxid;
    this.acknowledged++;
    this.#certain = Math.max(this.#certain, this.#steps.indexOf(step) + 1);
  }

  #saw({ zxid, err }: Reply<unknown>): void {
    if (err !== 0) throw new Error(`A step was refused with ${err}`);
    if (zxid < this.seenZxid) throw new Error(`Transaction ${zxid} came after ${this.seenZxid}`);
    this.seenZxid = zxid;
  }

  #send(changes: readonly Change[]): Promise<Reply<unknown>> {
    const [change] = changes;
    if (changes.length > 1 || change?.type === "refused") {
      return this.#open.multi(changes.flatMap((one) => this.#asMulti(one)));
    }
    if (change?.type === "endSession") return this.#open.call("closeSession", {});
    if (change?.type === "setAcl") {
      return this.#open.call("setAcl", { path: change.path, acl: [...change.acl], version: -1 });
    }
    if (change?.type === "set") {
      return this.#open.call("setData", { path: change.path, data: bytes(change.data), version: -1 });
    }
    if (change?.type === "delete") return this.#open.call("delete", { path: change.path, version: -1 });
    if (change?.type !== "create") throw new Error("There is no such change");
    const request = this.#createRequest(change);
    if (request.type === "createTtl") return this.#open.call("createTtl", request);
    return this.#open.call(request.flags === createFlag.container ? "createContainer" : "create", request);
  }

  #asMulti(change: Change): MultiRequest[] {
    if (change.type === "refused") {
      return [
        { type: "create", ...node(`${this.#root}/never-`, { flags: createFlag.persistentSequential }) },
        { type: "check", path: this.#root, version: 1_000_000 },
      ];
    }
    if (change.type === "create") return [this.#createRequest(change)];
    if (change.type === "delete") return [{ type: "delete", path: change.path, version: -1 }];
    if (change.type === "set") return [{ type: "setData", path: change.path, data: bytes(change.data), version: -1 }];
    throw new Error(`${change.type} is none for a multi`);
  }

  /** A name that ends in a sequence's suffix is asked for without it: the model knows which comes. */
  #createRequest({ path, kind, data }: Change & { type: "create" }): MultiRequest & { type: "create" | "createTtl" } {
    const isSequential = /-\d{10}$/.test(path);
    const asked = isSequential ? path.slice(0, -10) : path;
    const base = { path: asked, data: bytes(data), acl: openAcl };
    if (kind === "ttl") {
      const flag = isSequential ? createFlag.persistentSequentialTtl : createFlag.persistentTtl;
      return { type: "createTtl", ...base, flags: flag, ttl: ttlMs };
    }
    return { type: "create", ...base, flags: flags[kind] + (isSequential ? createFlag.persistentSequential : 0) };
  }

  #chosen(model: TreeModel): Change[] {
    const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(this.#random() * items.length)];
    const entries = [...model.nodes];
    const leaves = entries.filter(([path, { children }]) => children.size === 0 && path !== this.#root).map(([path]) =>
      path
    );
    const writable = entries.filter(([, { acl }]) => acl !== readOnly);
    const parents = writable.filter(([path, { kind }]) => kind !== "ephemeral" && path.split("/").length < depthMax);
    const parent = pick(parents)?.[0] ?? this.#root;
    const kind = pick<Kind>(["persistent", "persistent", "ephemeral", "container", "ttl"]) ?? "persistent";
    const isSequential = kind !== "container" && this.#random() < 0.5;
    const path = `${parent}/${isSequential ? `s-${model.suffix(parent)}` : `n${this.#next++}`}`;
    const data = "x".repeat(Math.floor(this.#random() ** 4 * 3000));
    const create: Change = { type: "create", path, kind, data };
    const set: Change = { type: "set", path: pick(writable)?.[0] ?? this.#root, data: `${this.#next++}` };
    const leaf = pick(leaves.filter((one) => model.nodes.get(one.slice(0, one.lastIndexOf("/")))?.acl !== readOnly));
    const remove: Change[] = leaf === undefined || leaf === parent ? [] : [{ type: "delete", path: leaf }];
    const dice = this.#random();
    if (dice < 0.08) return [{ type: "refused" }];
    if (dice < 0.14) {
      const target = pick(leaves);
      return target === undefined
        ? [create]
        : [{ type: "setAcl", path: target, acl: this.#random() < 0.5 ? openAcl : readOnly }];
    }
    if (model.nodes.size > nodesMax || dice < 0.3) return remove.length > 0 ? remove : [set];
    if (dice < 0.45) return [set];
    return dice < 0.65 ? [set, create] : [create];
  }

  #modelAfter(count: number): TreeModel {
    const model = new TreeModel(this.#root, null, openAcl);
    for (const step of this.#steps.slice(0, count)) model.apply(step);
    return model;
  }

  #settle(count: number): void {
    this.#steps.length = count;
    this.#certain = count;
  }

  async #found(): Promise<Map<string, FoundNode>> {
    const found = new Map<string, FoundNode>();
    const look = async (path: string): Promise<void> => {
      const client = this.#open;
      const { value } = await client.call("getData", { path, watch: false });
      const acl = (await client.call("getAcl", { path })).value?.acl ?? [];
      const children = (await client.call("getChildren", { path, watch: false })).value?.children ?? [];
      if (value === null) return;
      const names = children.map(String);
      found.set(path, { data: text(value.data) ?? "", acl, stat: value.stat, children: names });
      await Promise.all(names.map((name) => look(`${path}/${name}`)));
    };
    await look(this.#root);
    return found;
  }
}
