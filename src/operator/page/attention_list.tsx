/** Draws what needs attention: one sentence, the object, and the command that mends it. */
import type { JSX } from "preact";
import { countText, shownText } from "../ui/shown_text.ts";
import { type AttentionItem, attentionItems } from "./attention.ts";
import { CopyButton } from "./copy_button.tsx";
import { Card } from "./frame.tsx";
import { Mark } from "./marks.tsx";

/** How many items of one kind are drawn before the rest becomes one line. */
const ofKindMax = 3;
const itemsMax = 50;

export function AttentionList(): JSX.Element {
  const items = attentionItems.value;
  const kinds = [...Map.groupBy(items, ({ id }) => id).values()].slice(0, itemsMax);
  return (
    <Card title="Needs attention" size="wide" more={items.length === 0 ? "" : "worst first"}>
      {items.length === 0
        ? <p class="empty">Nothing. Problems and warnings appear here, with the command that mends them.</p>
        : (
          <ul class="attention">
            {kinds.map((kind) => (
              <>
                {kind.slice(0, ofKindMax).map((item) => <Item key={`${item.id} ${item.where}`} item={item} />)}
                {kind.length > ofKindMax && <More kind={kind} />}
              </>
            ))}
          </ul>
        )}
    </Card>
  );
}

const linkOf = ({ view, key }: AttentionItem) => key === null ? `#${view}` : `#${view}/${encodeURIComponent(key)}`;

function Item({ item }: { readonly item: AttentionItem }): JSX.Element {
  const { severity, where, what, action } = item;
  const isCommand = action.startsWith("baton ");
  return (
    <li>
      <Mark kind={severity === "problem" ? "bad" : "warn"} label={severity} />
      <div class="what">
        <a href={linkOf(item)}>{shownText(where.replace(/^./, (letter) => letter.toUpperCase()))}</a>: {shownText(what)}
        <span class="sub">{isCommand ? <code>{shownText(action)}</code> : shownText(action)}</span>
      </div>
      {isCommand && <CopyButton text={action} />}
    </li>
  );
}

function More({ kind }: { readonly kind: readonly AttentionItem[] }): JSX.Element {
  const first = kind[0];
  return (
    <li>
      <span />
      <div class="what">
        <a href={`#${first?.view ?? "overview"}`}>
          {countText(kind.length - ofKindMax)} more: {shownText(first?.what ?? "")}
        </a>
      </div>
    </li>
  );
}
