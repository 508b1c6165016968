/** The public types of the library as one text: the declarations of what the entries export, and of what these use. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

interface Declared {
  readonly text: string;
  readonly file: DeclarationFile;
}

interface Import {
  readonly path: string;
  readonly name: string;
}

/** What one .d.ts file declares, imports and exports from others, by name. */
class DeclarationFile {
  readonly declared = new Map<string, string>();
  /** Names that it has from other files of the library. */
  readonly imported = new Map<string, Import>();
  /** Names that it exports from other files, in their order. */
  readonly reexported = new Map<string, Import & { readonly isTypeOnly: boolean }>();

  constructor(path: string) {
    const text = readFileSync(path, "utf8").replaceAll(/^ *\/\*\*.*?\*\/\n/gms, "");
    const lists = /^(import|export) (type )?\{([^}]*)\} from "(\.[^"]+)";/gm;
    for (const [, verb, type = "", names = "", from = ""] of text.matchAll(lists)) {
      const place = join(dirname(path), from.replace(/\.[jt]s$/, ".d.ts"));
      for (const word of names.split(",").map((one) => one.trim()).filter((one) => one !== "")) {
        const [, own = "", name = "", renamed = name] = /^(type )?(\w+)(?: as (\w+))?$/.exec(word) ?? [];
        if (verb === "import") this.imported.set(renamed, { path: place, name });
        else this.reexported.set(renamed, { path: place, name, isTypeOnly: `${type}${own}` !== "" });
      }
    }
    const declarations =
      /^(?:export )?(?:declare )?(?:interface|type|class|const|function) (\w+).*?(?=^\w|$(?![^]))/gms;
    for (const [found, name = ""] of text.matchAll(declarations)) this.declared.set(name, found.trimEnd());
  }
}

class PublicTypes {
  readonly #files = new Map<string, DeclarationFile>();

  /** Returns the text for one entry: its exports, sorted by name, and then the other types that they use. */
  describe(path: string): string {
    const exported = new Map<string, string>();
    const used = new Map<string, string>();
    const waiting: Declared[] = [];
    for (const [name, { isTypeOnly, ...place }] of this.#file(path).reexported) {
      const { text, file } = this.#find(place);
      // A class that is exported as a type cannot be constructed by programs.
      const visible = isTypeOnly ? text.replaceAll(/^ +constructor\(.*?\);\n/gms, "") : text;
      exported.set(name, visible);
      waiting.push({ text: visible, file });
    }
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for (const [word] of next.text.matchAll(/\b[A-Za-z]\w+\b/g)) {
        const found = this.#findIn(next.file, word);
        if (found === null || exported.has(word) || used.has(word)) continue;
        used.set(word, found.text);
        waiting.push(found);
      }
    }
    const sorted = (texts: ReadonlyMap<string, string>) => [...texts].sort().map(([, text]) => text).join("\n");
    return `${sorted(exported)}\n\n// Used by these, and not exported:\n${sorted(used)}\n`;
  }

  #file(path: string): DeclarationFile {
    const file = this.#files.get(path) ?? new DeclarationFile(path);
    this.#files.set(path, file);
    return file;
  }

  #findIn(file: DeclarationFile, name: string): Declared | null {
    const text = file.declared.get(name);
    if (text !== undefined) return { text, file };
    const place = file.imported.get(name);
    return place === undefined ? null : this.#find(place);
  }

  #find({ path, name }: Import): Declared {
    const file = this.#file(path);
    const further = file.reexported.get(name);
    const found = further === undefined ? this.#findIn(file, name) : this.#find(further);
    if (found === null) throw new Error(`${path} does not declare ${name}`);
    return found;
  }
}

/** Describes the entries of the library in a folder of emitted declarations. */
export function describePublicTypes(folder: string): string {
  const entries = { "": "baton", "/pubsub": "baton_pubsub", "/retry": "baton_retry" };
  const types = new PublicTypes();
  return Object.entries(entries)
    .map(([entry, file]) => `// @baton-locks/baton${entry}\n\n${types.describe(join(folder, `library/${file}.d.ts`))}`)
    .join("\n");
}
