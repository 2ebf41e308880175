// What a browser keeps of the chats: drafts, and what is on its way. It goes when one logs out.

const LEFT = "left"; // set for a moment, so that the other tabs hear of it

/** `area`: "localStorage" for all tabs, "sessionStorage" for this one. */
export function store(area, key, value) {
  try {
    if (value === undefined) return window[area].getItem(key);
    if (value) window[area].setItem(key, value);
    else window[area].removeItem(key);
  } catch {
    // A browser may forbid storage: then a draft lives as long as the page.
  }
  return null;
}

/** On logging out; the other tabs hear of it. */
export function drop() {
  store("localStorage", LEFT, "yes");
  clear();
}

/** Call back when another tab has logged out, and what this one kept is gone. */
export function whenDropped(then) {
  addEventListener("storage", ({ key, newValue }) => {
    if (key !== LEFT || !newValue) return;
    then();
    clear();
  });
}

function clear() {
  try {
    localStorage.clear();
    sessionStorage.clear();
  } catch {
    // Then nothing was kept either.
  }
}
