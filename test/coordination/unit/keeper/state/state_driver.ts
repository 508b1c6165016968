/** A keeper's state with typed requests in and typed answers out, the bytes between them included. */
import type { ClientIdentity } from "../../../../../src/coordination/keeper/state/acl_check.ts";
import { openAcl } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { type KeeperLimits, keeperLimitsDefault } from "../../../../../src/coordination/keeper/state/keeper_limits.ts";
import type { KeeperSession } from "../../../../../src/coordination/keeper/state/session_table.ts";
import { KeeperState } from "../../../../../src/coordination/keeper/state/keeper_state.ts";
import { ByteReader, ByteWriter } from "../../../../../src/base/wire/bytes.ts";
import type { JuteCodec } from "../../../../../src/base/wire/record_codec.ts";
import {
  type MultiRequest,
  multiRequestCodec,
  multiResponseCodec,
  type MultiResult,
} from "../../../../../src/protocols/zookeeper/jute/multi_request.ts";
import {
  createFlag,
  multiOperationCode,
  type ZooKeeperOperationName,
  type ZooKeeperOperationRequest,
  type ZooKeeperOperationResponse,
  zooKeeperOperations,
} from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";

export interface Driven<T> {
  readonly error: number;
  readonly zxid: bigint;
  readonly value: T | null;
}

export class StateDriver {
  readonly state: KeeperState<string>;
  /** Events as "watcher type:path", in the order in which they were told. */
  readonly events: string[] = [];
  wallMs = 1_700_000_000_000;
  readonly #identities = new Map<string, readonly ClientIdentity[]>();

  constructor(options: { sequenceStart?: number; limits?: Partial<KeeperLimits> } = {}) {
    this.state = new KeeperState<string>({
      tickTimeMs: 500,
      limits: { ...keeperLimitsDefault, ...options.limits },
      wallClock: () => this.wallMs,
      notify: (watcher, type, path) => this.events.push(`${watcher} ${type}:${path}`),
      identitiesOf: (watcher) => this.#identities.get(watcher) ?? [],
      sequenceStart: options.sequenceStart ?? 0,
    });
    this.state.initialize();
  }

  client(name = "a", identities: readonly ClientIdentity[] = []): DrivenClient {
    this.#identities.set(name, identities);
    return new DrivenClient(this, this.state.openSession(10_000, 0), { name, identities });
  }

  takeEvents(): string[] {
    return this.events.splice(0);
  }
}

export class DrivenClient {
  readonly session: KeeperSession;
  readonly #driver: StateDriver;
  readonly #who: { readonly name: string; readonly identities: readonly ClientIdentity[] };

  constructor(
    driver: StateDriver,
    session: KeeperSession,
    who: { name: string; identities: readonly ClientIdentity[] },
  ) {
    this.#driver = driver;
    this.session = session;
    this.#who = who;
  }

  call<Name extends ZooKeeperOperationName>(
    name: Name,
    request: ZooKeeperOperationRequest<Name>,
  ): Driven<ZooKeeperOperationResponse<Name>> {
    const { code, request: sent, response } = zooKeeperOperations[name];
    return this.#apply(
      code,
      sent as unknown as JuteCodec<ZooKeeperOperationRequest<Name>>,
      request,
      response as unknown as JuteCodec<ZooKeeperOperationResponse<Name>>,
    );
  }

  multi(requests: MultiRequest[]): Driven<MultiResult[]> {
    return this.#apply(multiOperationCode, multiRequestCodec, requests, multiResponseCodec);
  }

  create(path: string, flags: number = createFlag.persistent): Driven<{ path: string }> {
    return this.call("create", { path, data: null, acl: [...openAcl], flags });
  }

  exists(path: string, watch = false): boolean {
    return this.call("exists", { path, watch }).error === 0;
  }

  children(path: string, watch = false): string[] {
    return this.call("getChildren", { path, watch }).value?.children?.sort() ?? [];
  }

  #apply<Q, A>(code: number, sent: JuteCodec<Q>, request: Q, response: JuteCodec<A>): Driven<A> {
    const { name, identities } = this.#who;
    const question = new ByteWriter();
    sent.write(question, request);
    const requester = { session: this.session, identities, watcher: name };
    const { error, zxid, write } = this.#driver.state.apply(code, new ByteReader(question.finish()), requester);
    if (error !== 0) return { error, zxid, value: null };
    const answer = new ByteWriter();
    write?.(answer);
    return { error, zxid, value: response.read(new ByteReader(answer.finish())) };
  }
}
