import { expect, test } from "bun:test";
import { ScramExchange } from "../../../../src/protocols/kafka/scram.ts";
import { failureCode } from "../../../support/failure_code.ts";

const nonce = "rOprNGfwEbeRWgbNEkqO";
const serverFirst = `r=${nonce}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`;
const exchange = () => new ScramExchange({ hash: "sha256", user: "user", password: "pencil", nonce });

test("SCRAM-SHA-256 is the example of RFC 7677, section 3", async () => {
  const client = exchange();
  expect(client.clientFirstMessage()).toBe(`n,,n=user,r=${nonce}`);
  expect(await client.clientFinalMessage(serverFirst)).toBe(
    `c=biws,r=${nonce}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=`,
  );
  client.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
  expect(() => client.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=")).toThrow("may be an impostor");
  expect(() => client.verify("e=other-error")).toThrow("may be an impostor");
});

test("a server that answers for another, asks for too little or too much, or has no salt is refused", async () => {
  for (
    const wrong of [
      serverFirst.replace(nonce, "somebody-else"),
      `r=${nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096`,
      serverFirst.replace("i=4096", "i=1"),
      serverFirst.replace("i=4096", "i=9999999"),
      `r=${nonce}x,i=4096`,
      "e=unknown-user",
      "",
    ]
  ) expect([wrong, await failureCode(exchange().clientFinalMessage(wrong))]).toEqual([wrong, "REFUSED"]);
});

test("a comma and an equals sign in a user's name are no end of it", () => {
  const client = new ScramExchange({ hash: "sha512", user: "a,b=c", password: "x", nonce });
  expect(client.clientFirstMessage()).toBe(`n,,n=a=2Cb=3Dc,r=${nonce}`);
});
