/** The harness's end of the observer process. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import type { Section } from "./observer.ts";

export type ObserverOrder =
  | { kind: "watch"; group: string; name: string; path: string }
  | { kind: "forget"; group: string }
  | { kind: "now"; id: number };
export type ObserverReport =
  | { kind: "section"; section: Section }
  | { kind: "now"; id: number; nowMs: number; longestGapMs: number };

export class ObserverProcess implements Disposable {
  readonly #child: ChildProcess;
  readonly #sections = new Map<string, Section>();
  readonly #asked = new Map<number, { resolve: (nowMs: number) => void; reject: (error: Error) => void }>();
  #nextId = 0;
  /** Why it says nothing more; null while it runs. */
  #end: Error | null = null;
  /** Of the observer's looks, in milliseconds: what is shorter may have gone unseen. */
  longestGapMs = 0;

  constructor() {
    this.#child = spawn(process.execPath, [join(import.meta.dir, "observer_main.ts")], {
      stdio: ["pipe", "pipe", "inherit"],
      detached: true, // an interrupt of the harness must not blind it first
    });
    this.#child.on("exit", (code, signal) => this.#ended(`with ${signal ?? code}`));
    this.#child.on("error", (error) => this.#ended(`before it began: ${error.message}`));
    this.#child.stdin?.on("error", () => {}); // its end says more
    if (this.#child.stdout === null) throw new Error("The observer has no stdout");
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      const report = JSON.parse(line) as ObserverReport;
      if (report.kind === "section") {
        this.#sections.set(`${report.section.group}/${report.section.name}`, report.section);
      } else {
        this.longestGapMs = report.longestGapMs;
        this.#asked.get(report.id)?.resolve(report.nowMs);
        this.#asked.delete(report.id);
      }
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  watch(group: string, name: string, path: string): void {
    this.#order({ kind: "watch", group, name, path });
  }

  /**
   * What is known of a section; null while it has not begun. Throws when the observer is gone: its silence is no proof.
   */
  section(group: string, name: string): Section | null {
    if (this.#end !== null) throw this.#end;
    return this.#sections.get(`${group}/${name}`) ?? null;
  }

  /** The observer's clock, in milliseconds. All that it saw before has been reported when this is fulfilled. */
  now(): Promise<number> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      if (this.#end !== null) return reject(this.#end);
      this.#asked.set(id, { resolve, reject });
      this.#order({ kind: "now", id });
    });
  }

  forget(group: string): void {
    this.#order({ kind: "forget", group });
    for (const key of this.#sections.keys()) if (key.startsWith(`${group}/`)) this.#sections.delete(key);
  }

  [Symbol.dispose](): void {
    this.#child.stdin?.end();
  }

  #ended(how: string): void {
    this.#end ??= new Error(`The observer has ended ${how}; what it wrote to stderr is above`);
    for (const { reject } of this.#asked.values()) reject(this.#end);
    this.#asked.clear();
  }

  #order(order: ObserverOrder): void {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`);
  }
}
