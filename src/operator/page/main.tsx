/** Starts the page. */
import { render } from "preact";
import { Page, startPageView } from "./page.tsx";
import { tickPageClock } from "./page_state.ts";
import { followRowStream, takeTokenFromAddress } from "./read_stream.ts";

takeTokenFromAddress();
startPageView();
render(<Page />, document.body);
followRowStream();
setInterval(() => document.hidden || tickPageClock(), 1000);
