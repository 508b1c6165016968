/**
 * The server's side of CURVE's handshake (RFC 26), which sends WELCOME and READY. `isAllowed` decides which clients are
 * accepted (RFC 27). Between WELCOME and INITIATE the server keeps only 32 bytes and a counter, because its transient
 * key is in the cookie, which the client sends back. The key of the cookie belongs to one connection. The server
 * forgets this key at the first INITIATE, so that a recorded cookie can never be used again.
 */
import { timingSafeEqual } from "node:crypto";
import { prepareX25519Secret, type X25519Secret } from "../../../base/support/x25519.ts";
import { encodeZ85 } from "../../../base/wire/z85.ts";
import { encodeZmtpCommand, encodeZmtpError, type ZmtpCommand } from "./zmtp_command.ts";
import {
  type RandomBytes,
  requireCurveBoxKey,
  unexpectedCurveCommandError,
  unopenedCurveBoxError,
} from "./curve_agreement.ts";
import { openCurveBox, sealCurveBox } from "./curve_box.ts";
import {
  curveBoxLayouts,
  curveCommandLayouts,
  curveHelloPadding,
  curveHelloSignature,
  curveLongNonceBoxLayout,
  curveVersion,
} from "./curve_layout.ts";
import { CurveNonceCounter, CurveNonceOrderCheck } from "./curve_nonce.ts";
import { CurveTrafficCipher } from "./curve_traffic.ts";
import {
  continuedHandshakeStep,
  failedHandshakeStep,
  refusedHandshakeStep,
  type SecurityMechanism,
  type SecurityMechanismContext,
  type SecurityMechanismFactory,
  type ZmtpHandshakeStep,
} from "./security_mechanism.ts";
import { decodeZmtpMetadata, type ZmtpMetadata } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

export interface CurveServerOptions {
  readonly key: X25519Secret;
  readonly randomBytes: RandomBytes;
  /**
   * Decides whether to accept a client that has proven to own this public key (Z85). By default, every client is
   * accepted.
   */
  isAllowed?(publicKey: string): boolean;
}

/** Makes the security mechanism for a server. A peer's `userId` is its public key in Z85. */
export function curveServerMechanism(options: CurveServerOptions): SecurityMechanismFactory {
  return { name: "CURVE", asServer: true, create: (context) => new CurveServer(options, context) };
}

type State =
  | { readonly awaits: "HELLO" }
  | { readonly awaits: "INITIATE"; readonly cookieKey: Uint8Array }
  | { readonly awaits: "nothing" };

class CurveServer implements SecurityMechanism {
  readonly #options: CurveServerOptions;
  readonly #context: SecurityMechanismContext;
  readonly #sent = new CurveNonceCounter();
  readonly #received = new CurveNonceOrderCheck();
  #state: State = { awaits: "HELLO" };
  #traffic: CurveTrafficCipher | null = null;

  constructor(options: CurveServerOptions, context: SecurityMechanismContext) {
    this.#options = options;
    this.#context = context;
  }

  get traffic(): CurveTrafficCipher | null {
    return this.#traffic;
  }

  start(): readonly Uint8Array[] {
    return [];
  }

  receive({ name, data }: ZmtpCommand): ZmtpHandshakeStep {
    const state = this.#state;
    this.#state = { awaits: "nothing" };
    if (state.awaits === "HELLO" && name === "HELLO") return this.#handleHello(data);
    if (state.awaits === "INITIATE" && name === "INITIATE") return this.#handleInitiate(data, state.cookieKey);
    throw unexpectedCurveCommandError(
      name,
      state.awaits === "nothing" ? "the handshake is over" : `${state.awaits} is to come`,
    );
  }

  destroy(): void {
    if (this.#state.awaits === "INITIATE") this.#state.cookieKey.fill(0);
    this.#state = { awaits: "nothing" };
    this.#traffic?.destroy();
  }

  #handleHello(data: Uint8Array): ZmtpHandshakeStep {
    const { version, padding, clientTransientKey, nonce, box } = curveCommandLayouts.HELLO.read(data);
    if (!isEqual(version, curveVersion)) {
      throw new ZmtpError("COMMAND", `The peer speaks CurveZMQ ${version.join(".")}, and 1.0 is expected`);
    }
    if (!isEqual(padding, curveHelloPadding)) throw new ZmtpError("COMMAND", "The padding of a HELLO is not all zeros");
    const key = requireCurveBoxKey(this.#options.key, clientTransientKey);
    const signature = openCurveBox(key, { prefix: "CurveZMQHELLO---", rest: nonce }, box);
    if (signature === null) throw unopenedCurveBoxError("HELLO", "it expects another server key than this one");
    if (!isEqual(signature, curveHelloSignature)) {
      throw new ZmtpError("COMMAND", "The signature of a HELLO is not all zeros");
    }
    this.#received.accept(nonce);
    return continuedHandshakeStep(encodeZmtpCommand("WELCOME", this.#makeWelcome(key, clientTransientKey)));
  }

  #makeWelcome(key: Uint8Array, clientTransientKey: Uint8Array): Uint8Array {
    const { randomBytes } = this.#options;
    const serverTransientSecret = randomBytes(32);
    const serverTransientKey = prepareX25519Secret(serverTransientSecret).publicKey;
    const cookieKey = randomBytes(32);
    const cookieNonce = randomBytes(16);
    const secrets = curveBoxLayouts.cookie.write({ clientTransientKey, serverTransientSecret });
    const cookie = curveLongNonceBoxLayout.write({
      nonce: cookieNonce,
      box: sealCurveBox(cookieKey, { prefix: "COOKIE--", rest: cookieNonce }, secrets),
    });
    secrets.fill(0);
    serverTransientSecret.fill(0);
    this.#state = { awaits: "INITIATE", cookieKey };
    const nonce = randomBytes(16);
    const inside = curveBoxLayouts.WELCOME.write({ serverTransientKey, cookie });
    const welcome = { nonce, box: sealCurveBox(key, { prefix: "WELCOME-", rest: nonce }, inside) };
    key.fill(0);
    return curveCommandLayouts.WELCOME.write(welcome);
  }

  #handleInitiate(data: Uint8Array, cookieKey: Uint8Array): ZmtpHandshakeStep {
    const { cookie, nonce, box } = curveCommandLayouts.INITIATE.read(data);
    if (!this.#received.isNext(nonce)) {
      throw new ZmtpError("AUTHENTICATION", "The nonce of an INITIATE is not above the HELLO's: it was replayed");
    }
    const { nonce: cookieNonce, box: cookieBox } = curveLongNonceBoxLayout.read(cookie);
    const secrets = openCurveBox(cookieKey, { prefix: "COOKIE--", rest: cookieNonce }, cookieBox);
    cookieKey.fill(0);
    if (secrets === null) {
      throw unopenedCurveBoxError("cookie", "it was made for another connection, or changed on the way");
    }
    const { clientTransientKey, serverTransientSecret } = curveBoxLayouts.cookie.read(secrets);
    const transient = prepareX25519Secret(serverTransientSecret);
    const key = requireCurveBoxKey(transient, clientTransientKey);
    const plain = openCurveBox(key, { prefix: "CurveZMQINITIATE", rest: nonce }, box);
    if (plain === null) {
      throw unopenedCurveBoxError("INITIATE", "it was changed, or belongs to another connection");
    }
    this.#received.accept(nonce);
    const { clientKey, vouch, metadata } = curveBoxLayouts.INITIATE.read(plain);
    this.#checkVouch({ vouch, clientTransientKey, vouchKey: requireCurveBoxKey(transient, clientKey) });
    secrets.fill(0);
    return this.#finish({ key, userId: encodeZ85(clientKey), properties: decodeZmtpMetadata(metadata) });
  }

  /** Checks the vouch: the proof that the client's long-term key has chosen its transient key for this server. */
  #checkVouch({ vouch, clientTransientKey, vouchKey }: {
    readonly vouch: Uint8Array;
    readonly clientTransientKey: Uint8Array;
    readonly vouchKey: Uint8Array;
  }): void {
    const { nonce, box } = curveLongNonceBoxLayout.read(vouch);
    const plain = openCurveBox(vouchKey, { prefix: "VOUCH---", rest: nonce }, box);
    vouchKey.fill(0);
    if (plain === null) {
      throw unopenedCurveBoxError("vouch", "the peer does not have the secret key of the public key it claims");
    }
    const told = curveBoxLayouts.vouch.read(plain);
    if (
      !isEqual(told.clientTransientKey, clientTransientKey) || !isEqual(told.serverKey, this.#options.key.publicKey)
    ) {
      throw new ZmtpError("AUTHENTICATION", "The peer's vouch is for another connection or another server");
    }
  }

  #finish({ key, properties, userId }: {
    readonly key: Uint8Array;
    readonly properties: ZmtpMetadata;
    readonly userId: string;
  }): ZmtpHandshakeStep {
    if (this.#options.isAllowed?.(userId) === false) {
      key.fill(0);
      const message = `The client with the public key ${userId} is refused (400): this key is not accepted`;
      return failedHandshakeStep(new ZmtpError("AUTHENTICATION", message), encodeZmtpError("400"));
    }
    const error = this.#context.acceptProperties(properties, userId);
    if (error !== null) {
      key.fill(0);
      return refusedHandshakeStep(error);
    }
    const nonce = this.#sent.takeNext();
    const ready = curveCommandLayouts.READY.write({
      nonce,
      box: sealCurveBox(key, { prefix: "CurveZMQREADY---", rest: nonce }, this.#context.ownMetadata),
    });
    this.#traffic = new CurveTrafficCipher({ side: "server", key, sent: this.#sent, received: this.#received });
    key.fill(0);
    return { send: [encodeZmtpCommand("READY", ready)], outcome: { kind: "done", properties, userId } };
  }
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.byteLength === other.byteLength && timingSafeEqual(one, other);
}
