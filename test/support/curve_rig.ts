/** Two ends of a CURVE handshake without a wire between them. Chance comes from a seed. */
import { prepareX25519Secret, type X25519Secret } from "../../src/base/support/x25519.ts";
import { decodeZmtpCommand, type ZmtpCommand } from "../../src/protocols/zeromq/zmtp/zmtp_command.ts";
import type { RandomBytes } from "../../src/protocols/zeromq/zmtp/curve_agreement.ts";
import { curveClientMechanism } from "../../src/protocols/zeromq/zmtp/curve_client.ts";
import { curveServerMechanism } from "../../src/protocols/zeromq/zmtp/curve_server.ts";
import type {
  SecurityMechanism,
  SecurityMechanismContext,
  SecurityMechanismFactory,
  ZmtpHandshakeOutcome,
  ZmtpHandshakeStep,
  ZmtpTrafficCipher,
} from "../../src/protocols/zeromq/zmtp/security_mechanism.ts";
import { encodeZmtpMetadata } from "../../src/protocols/zeromq/zmtp/zmtp_metadata.ts";
import { seededRandom } from "./random.ts";

/** For tests alone: whoever knows the seed knows the keys. */
export function seededBytes(seed: number): RandomBytes {
  const random = seededRandom(seed);
  return (count) => Uint8Array.from({ length: count }, () => Math.floor(random() * 256));
}

export function seededKey(seed: number): X25519Secret {
  return prepareX25519Secret(seededBytes(seed)(32));
}

export const serverKey = seededKey(1);
export const clientKey = seededKey(2);

export function contextOf(
  socketType: string,
  changes: Partial<SecurityMechanismContext> = {},
): SecurityMechanismContext {
  return {
    ownMetadata: encodeZmtpMetadata([["Socket-Type", socketType], ["Identity", `${socketType.toLowerCase()} 1`]]),
    acceptProperties: () => null,
    ...changes,
  };
}

/** Options of a socket that accepts clients of CURVE. */
export function curveServing(): { security: SecurityMechanismFactory } {
  return { security: curveServerMechanism({ key: serverKey, randomBytes: seededBytes(3) }) };
}

/** Options of a socket that connects to one of `curveServing` as the user with the key `seededKey(user)`. */
export function curveUser(user: number): { security: SecurityMechanismFactory } {
  const randomBytes = seededBytes(100 + user);
  return { security: curveClientMechanism({ key: seededKey(user), serverKey: serverKey.publicKey, randomBytes }) };
}

export interface CurveEnds {
  readonly client?: {
    key?: X25519Secret;
    serverKey?: Uint8Array;
    context?: Partial<SecurityMechanismContext>;
    seed?: number;
  };
  readonly server?: {
    key?: X25519Secret;
    context?: Partial<SecurityMechanismContext>;
    seed?: number;
    isAllowed?(publicKey: string): boolean;
  };
}

export class CurveRig {
  readonly client: SecurityMechanism;
  readonly server: SecurityMechanism;

  constructor({ client = {}, server = {} }: CurveEnds = {}) {
    this.client = curveClientMechanism({
      key: client.key ?? clientKey,
      serverKey: client.serverKey ?? serverKey.publicKey,
      randomBytes: seededBytes(client.seed ?? 3),
    }).create(contextOf("DEALER", client.context));
    this.server = curveServerMechanism({
      key: server.key ?? serverKey,
      randomBytes: seededBytes(server.seed ?? 4),
      isAllowed: (publicKey) => server.isAllowed?.(publicKey) ?? true,
    }).create(contextOf("ROUTER", server.context));
  }

  /** The four commands, each made by its sender of what came before. `change` may put another in the place of one. */
  run(change: (command: Uint8Array, name: string) => Uint8Array = (command) => command): {
    readonly client: ZmtpHandshakeOutcome | null;
    readonly server: ZmtpHandshakeOutcome | null;
  } {
    let toServer = this.client.start();
    for (;;) {
      const server = give(this.server, toServer, change);
      const client = give(this.client, server.send, change);
      if (client.outcome !== null || server.outcome !== null) {
        return { client: client.outcome, server: server.outcome };
      }
      toServer = client.send;
    }
  }

  /** Past the handshake. */
  established(): { readonly client: ZmtpTrafficCipher; readonly server: ZmtpTrafficCipher } {
    this.run();
    if (this.client.traffic === null || this.server.traffic === null) throw new Error("The handshake has failed");
    return { client: this.client.traffic, server: this.server.traffic };
  }
}

function give(
  to: SecurityMechanism,
  commands: readonly Uint8Array[],
  change: (command: Uint8Array, name: string) => Uint8Array,
): ZmtpHandshakeStep {
  let step: ZmtpHandshakeStep = { send: [], outcome: null };
  for (const command of commands) step = to.receive(read(change(command, decodeZmtpCommand(command).name)));
  return step;
}

export function read(command: Uint8Array): ZmtpCommand {
  return decodeZmtpCommand(command);
}

/** The only command of a step. */
export function only({ send }: Pick<ZmtpHandshakeStep, "send">): ZmtpCommand {
  const [first, ...more] = send;
  if (first === undefined || more.length > 0) throw new Error(`${send.length} commands where one was expected`);
  return decodeZmtpCommand(first);
}
