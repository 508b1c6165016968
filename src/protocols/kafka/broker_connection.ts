/**
 * A connection to a Kafka broker that carries one request and its response at a time. Owns the socket; does not retry.
 */
import { BatonError, errorMessage } from "../../base/errors.ts";
import {
  type Address,
  type Connection,
  currentTlsOptions,
  type Dial,
  formatAddress,
  type TlsSource,
} from "../../base/sockets/connection.ts";
import { onAbort, throwIfAborted } from "../../base/support/abort.ts";
import { newGuid } from "../../base/support/guid.ts";
import { protocolError } from "../../base/wire/bytes.ts";
import { kafkaErrorName } from "./kafka_error_codes.ts";
import {
  decodeKafkaResponse,
  encodeKafkaRequest,
  kafkaApiVersionsRequest,
  type KafkaRequest,
  type KafkaRequestValue,
  type KafkaResponseValue,
  kafkaSaslAuthenticateRequest,
  kafkaSaslHandshakeRequest,
  readKafkaCorrelationId,
} from "./kafka_requests.ts";
import { describeSocketFailure } from "../../base/sockets/describe_failure.ts";
import { FrameStream } from "../../base/sockets/frame_stream.ts";
import type { KafkaCredentials } from "./sasl_mechanisms.ts";
import { ScramExchange } from "./scram.ts";

export interface KafkaBrokerOptions {
  readonly clientId: string;
  readonly dial: Dial;
  readonly tls: TlsSource | null;
  readonly credentials: KafkaCredentials | null;
}

interface PendingResponse {
  readonly correlation: number;
  readonly answered: (frame: Uint8Array) => void;
  readonly failed: (error: unknown) => void;
}

export class KafkaBrokerConnection {
  readonly name: string;
  readonly #clientId: string;
  readonly #frames: FrameStream;
  readonly #versions = new Map<number, { readonly min: number; readonly max: number }>();
  #connection: Connection | null = null;
  #pending: PendingResponse | null = null;
  #correlation = 0;
  #isClosed = false;

  private constructor(name: string, clientId: string) {
    this.name = name;
    this.#clientId = clientId;
    this.#frames = new FrameStream({
      onFrame: (frame) => this.#handleResponse(frame),
      onChunkEnd: () => {},
      onClosed: (error) => this.#handleClose(error),
    });
  }

  /**
   * Connects and authenticates. Rejects with UNREACHABLE if no broker responds, with REFUSED for wrong credentials, or
   * with the signal's reason.
   */
  static async open(
    address: Address,
    options: KafkaBrokerOptions,
    signal: AbortSignal,
  ): Promise<KafkaBrokerConnection> {
    const { clientId, dial, tls, credentials } = options;
    const broker = new KafkaBrokerConnection(formatAddress(address), clientId);
    try {
      const connection = await dial(address, broker.#frames, {
        signal,
        ...(tls === null ? {} : { tls: currentTlsOptions(tls) }),
      });
      broker.#connection = connection;
      broker.#frames.attach(connection);
    } catch (error) {
      throwIfAborted(signal);
      throw new BatonError("UNREACHABLE", `${broker.name}: ${describeSocketFailure(error)}`, { cause: error });
    }
    try {
      if (credentials !== null) await broker.#authenticate(credentials, signal);
      await broker.#fetchVersions(signal);
      return broker;
    } catch (error) {
      broker.close();
      throw error;
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  supports({ key, version }: KafkaRequest): boolean {
    const known = this.#versions.get(key);
    return known !== undefined && version >= known.min && version <= known.max;
  }

  /**
   * Sends a request and returns the response. Rejects with CONNECTION_LOST if the connection ends before the response;
   * the outcome is then unknown.
   */
  async request<R extends KafkaRequest>(
    request: R,
    value: KafkaRequestValue<R>,
    signal: AbortSignal,
  ): Promise<KafkaResponseValue<R>> {
    if (this.#pending !== null) throw new BatonError("INTERNAL", `Two requests at the same time to ${this.name}`);
    if (this.#isClosed) throw this.#connectionLostError(null);
    const correlation = this.#correlation++;
    const answer = Promise.withResolvers<KafkaResponseValue<R>>();
    // Decodes the frame immediately, because the socket reuses its memory.
    const answered = (frame: Uint8Array) => answer.resolve(decodeKafkaResponse(request, frame));
    this.#pending = { correlation, answered, failed: answer.reject };
    const off = onAbort(signal, (reason) => {
      // The response may still arrive, so the connection cannot be used for another request.
      answer.reject(reason);
      this.close();
    });
    try {
      this.#frames.send(encodeKafkaRequest(request, value, { correlation, clientId: this.#clientId }));
      return await answer.promise;
    } finally {
      off();
      this.#pending = null;
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#connection?.destroy();
    this.#frames.destroy();
  }

  async #fetchVersions(signal: AbortSignal): Promise<void> {
    const { error, apis } = await this.request(kafkaApiVersionsRequest, {}, signal);
    if (error !== 0) throw protocolError(`${this.name} returned an error for ApiVersions: ${kafkaErrorName(error)}`);
    for (const { key, min, max } of apis ?? []) this.#versions.set(key, { min, max });
  }

  async #authenticate({ mechanism, user, password }: KafkaCredentials, signal: AbortSignal): Promise<void> {
    const shaken = await this.request(kafkaSaslHandshakeRequest, { mechanism }, signal);
    if (shaken.error !== 0) {
      const known = (shaken.mechanisms ?? []).join(", ");
      throw new BatonError("REFUSED", `${this.name} does not support ${mechanism}; it supports ${known}`);
    }
    const say = async (text: string): Promise<string> => {
      const { error, message, bytes } = await this.request(
        kafkaSaslAuthenticateRequest,
        { bytes: Buffer.from(text) },
        signal,
      );
      if (error === 0) return new TextDecoder().decode(bytes ?? new Uint8Array(0));
      throw new BatonError("REFUSED", `${this.name} refuses the user "${user}": ${message ?? kafkaErrorName(error)}`);
    };
    if (mechanism === "PLAIN") return void await say(`\0${user}\0${password}`);
    const hash = mechanism === "SCRAM-SHA-256" ? "sha256" : "sha512";
    const exchange = new ScramExchange({ hash, user, password, nonce: newGuid() });
    exchange.verify(await say(await exchange.clientFinalMessage(await say(exchange.clientFirstMessage()))));
  }

  /** Handles a response. An exception ends the connection. */
  #handleResponse(frame: Uint8Array): void {
    const waiting = this.#pending;
    if (waiting === null || readKafkaCorrelationId(frame) !== waiting.correlation) {
      throw protocolError(`${this.name} sent an unexpected response`);
    }
    waiting.answered(frame);
  }

  #handleClose(error: Error | null): void {
    this.#isClosed = true;
    this.#pending?.failed(this.#connectionLostError(error));
  }

  #connectionLostError(error: Error | null): BatonError {
    // The broker did not send these bytes; they may be text or a TLS record.
    if (error instanceof BatonError) {
      const hint = `${this.name} does not use Kafka's protocol, or only over TLS (?tls=yes): ${error.message}`;
      return new BatonError(error.code, hint, { cause: error });
    }
    const why = error === null ? "it closed the connection" : errorMessage(error);
    return new BatonError("CONNECTION_LOST", `${this.name}: ${why}`, { cause: error ?? undefined });
  }
}
