// The chat page: what the server rendered, kept up to date by one event stream.

import { store, whenDropped } from "./kept.js";
import { tellTimes } from "./times.js";

const COME_AGAIN = 2000; // milliseconds between two tries while the host is away
const LOOK_AGAIN = 30000; // milliseconds between two looks whether a chat that is gone is back
const NEAR = 120; // pixels from the end that still count as reading along

const { chat, csrf, last } = document.body.dataset;
const address = `/chats/${encodeURIComponent(chat)}`;
const byId = (id) => document.getElementById(id);
const scroll = byId("scroll");
const log = byId("log");
const text = byId("text");

// --- Reading ---------------------------------------------------------------------------------

const isAtEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR;
const toEnd = () => {
  scroll.scrollTop = scroll.scrollHeight;
};

/** Change the log, and stay at its end if the reader was there. */
function keepingPlace(change) {
  const follows = isAtEnd();
  change();
  if (follows) toEnd();
  byId("newest").hidden = isAtEnd();
}

function fragment(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html; // rendered and escaped by the server; the page's policy runs no script
  tellTimes(holder.content);
  return holder.content;
}

function show({ id, seq, html }) {
  const known = byId(`m-${id}`);
  if (known && !known.classList.contains("pending")) return;
  const item = fragment(html).firstElementChild;
  const isNotice = item.classList.contains("notice");
  keepingPlace(() => {
    known?.remove();
    if (!isNotice) byId("welcome")?.remove();
    log.insertBefore(item, log.querySelector(".pending"));
  });
  newest = Math.max(newest, seq);
  if (isNotice) showNotices(); // the host itself has spoken
}

/** What was said is gone in the house, and must not stay here; what is on its way does. */
function empty() {
  for (const item of log.querySelectorAll("[data-seq]")) item.remove();
  byId("earlier").hidden = true;
  turn(false);
}

async function showNotices() {
  try {
    const answer = await ask("/notices");
    if (answer.ok) byId("notices").replaceChildren(fragment(await answer.text()));
  } catch {
    // The host is away: they come with the next look.
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) showNotices();
});

async function showEarlier() {
  const button = byId("earlier");
  const first = log.querySelector("[data-seq]");
  if (button.disabled || !first) return;
  button.disabled = true;
  try {
    const answer = await ask(`${address}/earlier?before=${first.dataset.seq}`);
    if (!answer.ok) return;
    const html = await answer.text();
    const below = scroll.scrollHeight - scroll.scrollTop;
    byId("live").setAttribute("aria-live", "off"); // old words are no news
    first.before(fragment(html));
    scroll.scrollTop = scroll.scrollHeight - below;
    button.hidden = answer.headers.get("X-Earlier") !== "yes";
  } catch {
    // The host is away: the banner says so, and the button is still there.
  } finally {
    button.disabled = false;
    setTimeout(() => byId("live").setAttribute("aria-live", "polite"));
  }
}

byId("earlier").addEventListener("click", showEarlier);
byId("newest").addEventListener("click", toEnd);
scroll.addEventListener("scroll", () => {
  if (isAtEnd()) byId("newest").hidden = true;
  if (scroll.scrollTop < NEAR && !byId("earlier").hidden) showEarlier();
}, { passive: true });

// --- Asking the host -------------------------------------------------------------------------

async function ask(url, options = {}) {
  const headers = { Accept: "application/json", "X-CSRF-Token": csrf };
  const answer = await fetch(url, { ...options, headers });
  if (answer.status === 401) location.assign(outbox.length || text.value ? "/login#kept" : "/login");
  return answer;
}

log.addEventListener("toggle", async ({ target }) => {
  if (!target.open || !target.dataset.id) return;
  const story = target.querySelector(".story");
  try {
    const answer = await ask(`/fates/${encodeURIComponent(target.dataset.id)}`);
    if (answer.ok) story.replaceChildren(fragment(await answer.text()));
    else story.textContent = (await answer.json()).message;
  } catch {
    story.textContent = "The host is away: ask again when it is back.";
  }
  story.scrollIntoView({ block: "nearest" });
}, true);

log.addEventListener("click", async ({ target }) => {
  if (!target.classList.contains("copy")) return;
  const code = target.closest(".code").querySelector("code");
  target.textContent = (await copied(code)) ? "Copied" : "Press Ctrl+C";
  setTimeout(() => {
    target.textContent = "Copy";
  }, 1500);
});

async function copied(node) {
  try {
    await navigator.clipboard.writeText(node.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(node); // without TLS browsers give no clipboard to a page
    return false;
  }
}

// --- Writing ---------------------------------------------------------------------------------

const DRAFT = `draft:${chat}`;
const OUTBOX = `outbox:${chat}`;
const RELOADED = `reloaded:${chat}`;
// Survives a reload; the id makes saying it twice harmless.
const outbox = JSON.parse(store("sessionStorage", OUTBOX) || "[]");
let isSending = false;

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `w_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function say(words) {
  const saying = { id: newId(), text: words };
  outbox.push(saying);
  store("sessionStorage", OUTBOX, JSON.stringify(outbox));
  showPending(saying);
  toEnd();
  send();
}

function showPending({ id, text: words }) {
  if (byId(`m-${id}`)) return;
  const item = byId("pending").content.cloneNode(true).firstElementChild;
  item.id = `m-${id}`;
  item.querySelector(".plain").textContent = words;
  byId("welcome")?.remove();
  log.append(item);
}

async function send() {
  if (isSending) return;
  isSending = true;
  try {
    while (outbox.length) {
      const [saying] = outbox;
      const answer = await ask(`${address}/say`, {
        method: "POST",
        body: new URLSearchParams(saying),
      });
      if (answer.status >= 500 || answer.status === 401) break;
      if (answer.status === 403 && !store("sessionStorage", RELOADED)) {
        store("sessionStorage", RELOADED, "once"); // another log-in: a fresh page has its token
        location.reload();
        return;
      }
      store("sessionStorage", RELOADED, "");
      outbox.shift();
      store("sessionStorage", OUTBOX, outbox.length ? JSON.stringify(outbox) : "");
      if (!answer.ok) {
        remark(saying.id, `not sent: ${(await answer.json()).message}`, "failed");
        if (!text.value) {
          text.value = saying.text; // what was refused is not thrown away
          store("localStorage", DRAFT, text.value);
          fit();
        }
      }
    }
  } catch {
    // The host is away.
  } finally {
    isSending = false;
    if (outbox.length) setTimeout(send, COME_AGAIN);
  }
}

function remark(id, words, state) {
  const place = byId(`m-${id}`)?.querySelector(".remark");
  if (!place) return;
  place.textContent = words;
  place.dataset.state = state;
}

function fit() {
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
}

text.addEventListener("input", () => {
  store("localStorage", DRAFT, text.value);
  fit();
});
text.addEventListener("keydown", (event) => {
  const hasKeys = !matchMedia("(pointer: coarse)").matches; // a phone's Enter is a new line
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && hasKeys) {
    event.preventDefault();
    byId("composer").requestSubmit();
  }
});
byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!text.value.trim()) return;
  say(text.value);
  text.value = "";
  store("localStorage", DRAFT, "");
  fit();
  text.focus();
});
whenDropped(() => {
  outbox.length = 0;
  text.value = "";
  location.assign("/login");
});
for (const button of document.querySelectorAll("[data-say]")) {
  button.addEventListener("click", () => {
    say(button.dataset.say);
    text.focus();
  });
}

// --- A turn ----------------------------------------------------------------------------------

const REMARKS = { stopped: "stopped", failed: "failed" };
let since = 0;
let ticking = 0;

function tick() {
  const seconds = Math.max(0, Math.floor((Date.now() - since) / 1000));
  byId("elapsed").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** `age`: the seconds for which it has run, where the host says so. */
function turn(isRunning, age) {
  if (age !== undefined || !ticking) since = Date.now() - (age ?? 0) * 1000;
  if (isRunning === Boolean(ticking)) return;
  clearInterval(ticking);
  ticking = isRunning ? setInterval(tick, 1000) : 0;
  tick();
  byId("stop").disabled = false;
  keepingPlace(() => {
    byId("working").hidden = !isRunning;
  });
}

byId("stop").addEventListener("click", ({ target }) => {
  target.disabled = true;
  say("/stop");
  text.focus();
});

// --- Following -------------------------------------------------------------------------------

let newest = Number(last);
let trouble = ""; // "away": the host; "gone": this chat
const told = (event) => JSON.parse(event.data);

function connect() {
  const events = new EventSource(`${address}/events?after=${newest}`);
  events.addEventListener("open", () => {
    if (trouble) {
      tell("");
      showNotices();
    }
    send();
  });
  events.addEventListener("message", (event) => show(told(event)));
  events.addEventListener("typing", (event) => turn(told(event).typing));
  events.addEventListener("turn", (event) => {
    const { state, covers, age } = told(event);
    turn(state === "started", age);
    for (const id of covers) remark(id, REMARKS[state] ?? "", state);
  });
  events.addEventListener("forgotten", empty);
  events.addEventListener("error", () => {
    turn(false); // whether one still runs comes first thing on a fresh stream
    if (events.readyState === EventSource.CLOSED) learnWhy();
    else tell("away"); // it comes again by itself
  });
}

/** The stream was refused: the host may be away, we may be logged out, the chat may be gone. */
async function learnWhy() {
  let isGone = false;
  try {
    const answer = await ask(`${address}/earlier?before=0`); // leads to the door if we are out
    isGone = answer.status === 404;
  } catch {
    // Still away.
  }
  tell(isGone ? "gone" : "away");
  if (isGone) send(); // what waits is refused, each with its reason, and stays to be read
  setTimeout(connect, isGone ? LOOK_AGAIN : COME_AGAIN);
}

let fading = 0;

const TROUBLES = {
  away: "The host is away. What you write is kept, and sent when it is back.",
  gone: "This chat is no longer here: its group was removed. What you write is not sent; it stays in this browser.",
};
const BACK = { away: "The host is back.", gone: "This chat is here again." };

/** Stands at the top for as long as it lasts; an empty one is over. */
function tell(what) {
  const banner = byId("banner");
  const words = TROUBLES[what] ?? BACK[trouble];
  clearTimeout(fading);
  banner.className = what || "back";
  if (trouble !== what || banner.hidden) {
    banner.textContent = words;
    if (what === "gone") banner.append(" ", byId("elsewhere").content.cloneNode(true));
  }
  banner.hidden = false;
  trouble = what;
  if (!what) {
    fading = setTimeout(() => {
      banner.hidden = true;
    }, 3000);
  }
}

text.value = store("localStorage", DRAFT) || text.value;
fit();
outbox.forEach(showPending);
if (!byId("welcome")) toEnd();
connect();
