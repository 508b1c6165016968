/**
 * A stock service: takes an order by POST and writes it down, each Idempotency-Key once.
 * usage: stock_service.mjs PORT FILE      any JavaScript runtime: node, bun, deno run -A
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import process from "node:process";

const [port, file] = process.argv.slice(-2);
const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
const known = new Set(lines.map((line) => line.split(" ")[0]));

createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const key = request.headers["idempotency-key"] ?? "";
    if (!known.has(key)) {
      known.add(key);
      appendFileSync(file, `${key} ${Buffer.concat(chunks).toString().trim()}\n`);
    }
    response.end("ordered\n");
  });
}).listen(Number(port), "127.0.0.1", () => console.log("the stock service is open"));
