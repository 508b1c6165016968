/**
 * CURVE's handshake as the server: WELCOME, READY. RFC 26; another part decides who is accepted (RFC 27). Between
 * WELCOME and INITIATE the server keeps 32 bytes and a counter for an unknown client. Its transient key waits at the
 * client, in the cookie. The key of the cookie belongs to one connection and is forgotten at the first INITIATE, so
 * that no cookie opens twice, and a recorded one never opens on another connection.
 */
import { timingSafeEqual } from "node:crypto";
import { prepareX25519Secret, type X25519Secret } from "../../../base/support/x25519.ts";
import { encodeZ85 } from "../../../base/wire/z85.ts";
import { encodeCommand, encodeErrorCommand, type ZmtpCommand } from "./zmtp_command.ts";
import { type RandomBytes, sharedBoxKey, unexpectedCommandError, unopenedBoxError } from "./curve_agreement.ts";
import { openBox, sealBox } from "./curve_box.ts";
import {
  boxLayouts,
  commandLayouts,
  curveVersion,
  helloPadding,
  helloSignature,
  longNonceBox,
} from "./curve_layout.ts";
import { NonceCounter, NonceOrder } from "./curve_nonce.ts";
import { CurveTraffic } from "./curve_traffic.ts";
import {
  handshakeFailed,
  handshakeGoesOn,
  handshakeRefusedError,
  type HandshakeStep,
  type Mechanism,
  type MechanismContext,
  type MechanismFactory,
} from "./security_mechanism.ts";
import { decodeMetadata, type Metadata } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

export interface CurveServerOptions {
  /** The server's own long-term key pair. */
  readonly key: X25519Secret;
  readonly randomBytes: RandomBytes;
  /** Decides whether a client that has proven this public key (Z85) is accepted. If omitted, every client is. */
  isAllowed?(publicKey: string): boolean;
}

/** The `userId` of a peer is its public key in Z85. */
export function curveServer(options: CurveServerOptions): MechanismFactory {
  return { name: "CURVE", asServer: true, create: (context) => new CurveServer(options, context) };
}

type State =
  | { readonly awaits: "HELLO" }
  | { readonly awaits: "INITIATE"; readonly cookieKey: Uint8Array }
  | { readonly awaits: "nothing" };

class CurveServer implements Mechanism {
  readonly #options: CurveServerOptions;
  readonly #context: MechanismContext;
  readonly #sent = new NonceCounter();
  readonly #received = new NonceOrder();
  #state: State = { awaits: "HELLO" };
  #traffic: CurveTraffic | null = null;

  constructor(options: CurveServerOptions, context: MechanismContext) {
    this.#options = options;
    this.#context = context;
  }

  get traffic(): CurveTraffic | null {
    return this.#traffic;
  }

  start(): readonly Uint8Array[] {
    return [];
  }

  receive({ name, data }: ZmtpCommand): HandshakeStep {
    const state = this.#state;
    this.#state = { awaits: "nothing" };
    if (state.awaits === "HELLO" && name === "HELLO") return this.#handleHello(data);
    if (state.awaits === "INITIATE" && name === "INITIATE") return this.#handleInitiate(data, state.cookieKey);
    throw unexpectedCommandError(
      name,
      state.awaits === "nothing" ? "the handshake is over" : `${state.awaits} is to come`,
    );
  }

  destroy(): void {
    if (this.#state.awaits === "INITIATE") this.#state.cookieKey.fill(0);
    this.#state = { awaits: "nothing" };
    this.#traffic?.destroy();
  }

  #handleHello(data: Uint8Array): HandshakeStep {
    const { version, padding, clientTransientKey, nonce, box } = commandLayouts.HELLO.read(data);
    if (!isEqual(version, curveVersion)) {
      throw new ZmtpError("COMMAND", `The peer speaks CurveZMQ ${version.join(".")}, and 1.0 is wanted`);
    }
    if (!isEqual(padding, helloPadding)) throw new ZmtpError("COMMAND", "The padding of a HELLO is not all zeros");
    const key = sharedBoxKey(this.#options.key, clientTransientKey);
    const signature = openBox(key, { prefix: "CurveZMQHELLO---", rest: nonce }, box);
    if (signature === null) throw unopenedBoxError("HELLO", "it expects another server key than this one");
    if (!isEqual(signature, helloSignature)) {
      throw new ZmtpError("COMMAND", "The signature of a HELLO is not all zeros");
    }
    this.#received.accept(nonce);
    return handshakeGoesOn(encodeCommand("WELCOME", this.#makeWelcome(key, clientTransientKey)));
  }

  #makeWelcome(key: Uint8Array, clientTransientKey: Uint8Array): Uint8Array {
    const { randomBytes } = this.#options;
    const serverTransientSecret = randomBytes(32);
    const serverTransientKey = prepareX25519Secret(serverTransientSecret).publicKey;
    const cookieKey = randomBytes(32);
    const cookieNonce = randomBytes(16);
    const secrets = boxLayouts.cookie.write({ clientTransientKey, serverTransientSecret });
    const cookie = longNonceBox.write({
      nonce: cookieNonce,
      box: sealBox(cookieKey, { prefix: "COOKIE--", rest: cookieNonce }, secrets),
    });
    secrets.fill(0);
    serverTransientSecret.fill(0);
    this.#state = { awaits: "INITIATE", cookieKey };
    const nonce = randomBytes(16);
    const inside = boxLayouts.WELCOME.write({ serverTransientKey, cookie });
    const welcome = { nonce, box: sealBox(key, { prefix: "WELCOME-", rest: nonce }, inside) };
    key.fill(0);
    return commandLayouts.WELCOME.write(welcome);
  }

  #handleInitiate(data: Uint8Array, cookieKey: Uint8Array): HandshakeStep {
    const { cookie, nonce, box } = commandLayouts.INITIATE.read(data);
    if (!this.#received.isNext(nonce)) {
      throw new ZmtpError("AUTHENTICATION", "The nonce of an INITIATE is not above that of the HELLO: it was replayed");
    }
    const { nonce: cookieNonce, box: cookieBox } = longNonceBox.read(cookie);
    const secrets = openBox(cookieKey, { prefix: "COOKIE--", rest: cookieNonce }, cookieBox);
    cookieKey.fill(0);
    if (secrets === null) throw unopenedBoxError("cookie", "it was made for another connection, or changed on the way");
    const { clientTransientKey, serverTransientSecret } = boxLayouts.cookie.read(secrets);
    const transient = prepareX25519Secret(serverTransientSecret);
    const key = sharedBoxKey(transient, clientTransientKey);
    const plain = openBox(key, { prefix: "CurveZMQINITIATE", rest: nonce }, box);
    if (plain === null) throw unopenedBoxError("INITIATE", "it was changed on the way, or is of another connection");
    this.#received.accept(nonce);
    const { clientKey, vouch, metadata } = boxLayouts.INITIATE.read(plain);
    this.#checkVouch({ vouch, clientTransientKey, vouchKey: sharedBoxKey(transient, clientKey) });
    secrets.fill(0);
    return this.#finish({ key, userId: encodeZ85(clientKey), properties: decodeMetadata(metadata) });
  }

  /** The long-term key vouches for the transient key, to this server only. */
  #checkVouch({ vouch, clientTransientKey, vouchKey }: {
    readonly vouch: Uint8Array;
    readonly clientTransientKey: Uint8Array;
    readonly vouchKey: Uint8Array;
  }): void {
    const { nonce, box } = longNonceBox.read(vouch);
    const plain = openBox(vouchKey, { prefix: "VOUCH---", rest: nonce }, box);
    vouchKey.fill(0);
    if (plain === null) {
      throw unopenedBoxError("vouch", "the peer does not have the secret key of the public key it claims");
    }
    const told = boxLayouts.vouch.read(plain);
    if (
      !isEqual(told.clientTransientKey, clientTransientKey) || !isEqual(told.serverKey, this.#options.key.publicKey)
    ) {
      throw new ZmtpError("AUTHENTICATION", "The peer's vouch is for another connection or another server");
    }
  }

  #finish({ key, properties, userId }: {
    readonly key: Uint8Array;
    readonly properties: Metadata;
    readonly userId: string;
  }): HandshakeStep {
    if (this.#options.isAllowed?.(userId) === false) {
      key.fill(0);
      const message = `The client with the public key ${userId} is refused (400): this key is not accepted`;
      return handshakeFailed(new ZmtpError("AUTHENTICATION", message), encodeErrorCommand("400"));
    }
    const error = this.#context.acceptProperties(properties, userId);
    if (error !== null) {
      key.fill(0);
      return handshakeRefusedError(error);
    }
    const nonce = this.#sent.takeNext();
    const ready = commandLayouts.READY.write({
      nonce,
      box: sealBox(key, { prefix: "CurveZMQREADY---", rest: nonce }, this.#context.ownMetadata),
    });
    this.#traffic = new CurveTraffic({ side: "server", key, sent: this.#sent, received: this.#received });
    key.fill(0);
    return { send: [encodeCommand("READY", ready)], outcome: { kind: "done", properties, userId } };
  }
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.byteLength === other.byteLength && timingSafeEqual(one, other);
}
