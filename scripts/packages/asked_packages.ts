/**
 * Tries the packages that baton was asked to use, and prints what they do today: npm's cliffy, zookeeper and zeromq.
 * Usage: bun scripts/packages/asked_packages.ts       needs the npm registry; ADRs 3, 5 and 6 have the last result
 */
import { join } from "node:path";
import process from "node:process";
import { runTool } from "./run_tool.ts";
import { inScratchFolder } from "./use_binary.ts";

const minutesMax = 5;
const runs = 5;

/** A program that succeeds if the package can be used. The zeromq program sends a request and receives its answer. */
const programs: Readonly<Record<string, string>> = {
  zookeeper: `import ZooKeeper from "zookeeper";
    new ZooKeeper({ connect: "127.0.0.1:9", timeout: 5000 });
    process.exit(0);`,
  zeromq: `import { Reply, Request } from "zeromq";
    const [reply, request] = [new Reply(), new Request()];
    await reply.bind("tcp://127.0.0.1:*");
    request.connect(reply.lastEndpoint);
    await request.send("ping");
    const [[heard]] = await Promise.all([reply.receive()]);
    await reply.send("pong to " + heard);
    const [answer] = await request.receive();
    process.exit(String(answer) === "pong to ping" ? 0 : 1);`,
};

/** Returns how many of the runs succeed, and the last words of the first that does not. */
async function countSuccesses(command: readonly string[], folder: string): Promise<string> {
  let successes = 0;
  let words = "";
  for (let run = 0; run < runs; run++) {
    const { code, stdout, stderr } = await runTool(["timeout", "-s", "KILL", "20", ...command], { cwd: folder });
    if (code === 0) successes++;
    else words ||= code === 137 ? "no end within 20 s" : describe(code, stdout + stderr);
  }
  return `${successes} of ${runs} runs succeed${words === "" ? "" : `; ${words}`}`;
}

function describe(code: number | null, output: string): string {
  const line = output.split("\n").find((one) => /error|panic|unsupported|cannot/i.test(one)) ?? "";
  return `exit code ${code}: ${line.trim().slice(0, 140)}`;
}

async function tryNativePackage(name: string, folder: string): Promise<void> {
  const install = await runTool(["npm", "install", "--no-audit", "--no-fund", name], { cwd: folder, minutesMax });
  if (install.code !== 0) return say(name, "install", describe(install.code, install.stdout + install.stderr));
  const program = join(folder, `${name}_program.mjs`);
  await Bun.write(program, `import process from "node:process";\n${programs[name]}\n`);
  const { version } = await Bun.file(join(folder, "node_modules", name, "package.json")).json();
  say(name, "version", version);
  say(name, "Node.js", await countSuccesses(["node", program], folder));
  say(name, "Bun", await countSuccesses([process.execPath, program], folder));
  say(name, "Deno", await countSuccesses(["deno", "run", "-A", "--no-lock", program], folder));
  const compile = [process.execPath, "build", "--compile", program, "--outfile", join(folder, "compiled")];
  const compiled = await runTool(compile, { cwd: folder, minutesMax });
  const result = compiled.code === 0
    ? await countSuccesses([join(folder, "compiled")], folder)
    : describe(compiled.code, compiled.stdout + compiled.stderr);
  say(name, "compiled by Bun", result);
}

const say = (name: string, what: string, result: string) => console.log(`${name}: ${what}: ${result}`);

const cliffy = await runTool(["npm", "view", "@cliffy/command", "version"], { minutesMax });
say("cliffy", "@cliffy/command on npm", cliffy.code === 0 ? cliffy.stdout.trim() : "no such package");
for (const name of Object.keys(programs)) {
  await inScratchFolder(async (folder) => {
    await Bun.write(join(folder, "package.json"), '{ "type": "module" }');
    await tryNativePackage(name, folder);
  });
}
