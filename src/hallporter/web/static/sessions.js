// The list of sessions: who logs out leaves no words behind in the browser.

import { drop } from "./kept.js";

document.querySelector("form[data-own]")?.addEventListener("submit", drop);
