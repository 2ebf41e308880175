// Moments in the reader's own zone and words; without script they stay in UTC.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const dated = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function tellTimes(root) {
  const today = new Date().toDateString();
  for (const place of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(place.dateTime);
    const isToday = moment.toDateString() === today;
    const format = isToday ? ("exact" in place.dataset ? exact : clock) : dated;
    place.textContent = format.format(moment);
    place.title = dated.format(moment);
  }
}

tellTimes(document);
