/** Starts the page. */
import { render } from "preact";
import { OperatorPage, startPageView } from "./page.tsx";
import { tickPageClock } from "./page_state.ts";
import { followRowStream, takeTokenFromAddress } from "./read_stream.ts";

takeTokenFromAddress();
startPageView();
render(<OperatorPage />, document.body);
followRowStream();
setInterval(() => document.hidden || tickPageClock(), 1000);
