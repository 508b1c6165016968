import { expect, test } from "bun:test";
import { encodeProxyResponse, readServerResponseStatus } from "../../../../src/pubsub/proxy/proxy_response.ts";
import { decodePubsubMessage } from "../../../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../../../src/pubsub/wire/encode_message.ts";
import { statusCodes } from "../../../../src/pubsub/wire/status_codes.ts";

const encode = (text: string) => new TextEncoder().encode(text);

test("the status of whatever answer a server can write is read without reading the rest", () => {
  const body = new Uint8Array(1000).fill(255);
  for (const status of statusCodes) {
    for (const sender of ["s", "a b", "täglich", "😀".repeat(256)]) {
      for (const rest of [{}, { messageId: 5 }, { body }, { headers: { epoch: 3 } }, { batch: [body, body] }]) {
        expect(readServerResponseStatus(encodePubsubMessage({ name: "STATUS", sender, status, ...rest })[0])).toBe(
          status,
        );
      }
    }
  }
});

test("what is no STATUS has none", () => {
  for (
    const text of [
      "",
      "STATUS",
      "STATUS s",
      "STATUS s \r\n",
      "STATUS s FINE\r\n\r\n",
      "GET a b -1\r\n\r\n",
      "status s OK\r\n",
    ]
  ) {
    expect(readServerResponseStatus(encode(text))).toBe(null);
  }
  expect(readServerResponseStatus(undefined)).toBe(null);
  expect(readServerResponseStatus(encode(`STATUS ${"x".repeat(1 << 16)}`))).toBe(null);
});

test("a response of the proxy has headers only for a client that sends headers, and its text is cut", () => {
  const response = { status: "ERROR", reason: "w".repeat(5000), headers: { unknown: true } } as const;
  expect(decodePubsubMessage(encodeProxyResponse("p1", response, true))).toMatchObject({
    status: "ERROR",
    headers: { unknown: true },
  });
  const plain = decodePubsubMessage(encodeProxyResponse("p1", response, false));
  expect(plain).toMatchObject({ name: "STATUS", sender: "p1", status: "ERROR" });
  expect(plain.name === "STATUS" && [plain.headers, plain.body?.byteLength]).toEqual([undefined, 1000]);
});
